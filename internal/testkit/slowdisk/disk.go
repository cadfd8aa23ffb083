package slowdisk

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// maxWaiting bounds the syncs that wait at the same time; more than that wait for these.
	maxWaiting = 256
	// maxRecent bounds how far Between can look back.
	maxRecent = 8192
)

// Disk is the disk of one server, whose processes start and end.
type Disk struct {
	// Fillable makes Fill possible, for processes that are started from now on. It costs some 20 µs per
	// write at an offset.
	Fillable bool

	slots chan struct{}

	mu      sync.Mutex // protects the fields below
	profile Profile
	rng     *rand.Rand
	hanging chan struct{} // closed by Release; nil: it does not hang
	full    bool
	count   int64
	recent  []Sync // a ring of the newest, of which count%maxRecent is the next place
}

// Sync is one sync.
type Sync struct {
	Begun time.Time
	Delay time.Duration // that was added; not the time of a hanging disk
}

// New makes a disk. The seed determines which syncs are slower than the rest.
func New(p Profile, seed uint64) *Disk {
	return &Disk{slots: make(chan struct{}, maxWaiting), profile: p, rng: rand.New(rand.NewPCG(seed, 2))}
}

// Profile is the profile of syncs that begin now.
func (d *Disk) Profile() Profile {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.profile
}

// Set changes how long the syncs take that begin from now on.
func (d *Disk) Set(p Profile) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.profile = p
}

// Hang makes syncs that begin from now on wait for Release.
func (d *Disk) Hang() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.hanging == nil {
		d.hanging = make(chan struct{})
	}
}

// Release ends Hang.
func (d *Disk) Release() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.hanging != nil {
		close(d.hanging)
		d.hanging = nil
	}
}

// Fill makes writes at an offset and reservations of room fail with ENOSPC, as on a full disk whose file
// system copies on write. Plain writes go through, as they may be to sockets, and so do durable ones, which
// are to room that is reserved.
func (d *Disk) Fill() { d.setFull(true) }

// Empty ends Fill.
func (d *Disk) Empty() { d.setFull(false) }

func (d *Disk) setFull(full bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.full = full
}

func (d *Disk) isFull() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.full
}

// Syncs is how many syncs have begun.
func (d *Disk) Syncs() int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.count
}

// Between are the syncs that began in [from, to), in their order; of the newest 8,192 only.
func (d *Disk) Between(from, to time.Time) (all []Sync) {
	d.mu.Lock()
	defer d.mu.Unlock()
	next := int(d.count % maxRecent)
	for i := range d.recent {
		s := d.recent[(next+i)%len(d.recent)]
		if !s.Begun.Before(from) && s.Begun.Before(to) {
			all = append(all, s)
		}
	}
	return all
}

// begin notes a sync and returns how long it has to wait, and for which channel before that.
func (d *Disk) begin() (delay time.Duration, hanging <-chan struct{}) {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := Sync{Begun: time.Now(), Delay: d.profile.Draw(d.rng)}
	if len(d.recent) < maxRecent {
		d.recent = append(d.recent, s)
	} else {
		d.recent[d.count%maxRecent] = s
	}
	d.count++
	return s.Delay, d.hanging
}

// delay holds one sync up and then calls goOn.
func (d *Disk) delay(goOn func()) {
	delay, hanging := d.begin()
	d.slots <- struct{}{}
	go func() {
		defer func() { <-d.slots }()
		if hanging != nil {
			<-hanging
		}
		sleep(delay)
		goOn()
	}()
}

// sleep is more exact than time.Sleep, which rounds up to a millisecond.
func sleep(d time.Duration) {
	rest := unix.NsecToTimespec(int64(d))
	for d > 0 && unix.Nanosleep(&rest, &rest) == unix.EINTR {
		continue // a signal of Go's scheduler
	}
}

// With a tail, one sync in tailOdds takes tailFactor times as long.
const (
	tailOdds   = 100
	tailFactor = 100
	tailSuffix = "/tail"
)

// Profile is how much longer syncs take than the disk needs. The zero value adds nothing.
type Profile struct {
	Delay time.Duration
	Tail  bool // 1 % of the syncs take 100 times longer
}

// Profiles are the disks that tests have: from a fast one to a slow cloud volume, constant and with a tail.
func Profiles() (all []Profile) {
	const us, ms = time.Microsecond, time.Millisecond
	for _, delay := range []time.Duration{200 * us, ms, 5 * ms, 15 * ms, 50 * ms} {
		all = append(all, Profile{Delay: delay}, Profile{Delay: delay, Tail: true})
	}
	return all
}

// Parse reads "5ms" or "5ms/tail".
func Parse(text string) (p Profile, err error) {
	delay, tail := strings.CutSuffix(text, tailSuffix)
	p.Tail = tail
	if p.Delay, err = time.ParseDuration(delay); err != nil || p.Delay < 0 {
		return Profile{}, fmt.Errorf("sync time %q: want a duration, as 5ms, and %s behind it for 1 %% that take "+
			"100 times longer", text, tailSuffix)
	}
	return p, nil
}

// String returns the form that Parse reads.
func (p Profile) String() string {
	if p.Tail {
		return p.Delay.String() + tailSuffix
	}
	return p.Delay.String()
}

// Draw is the delay of the next sync.
func (p Profile) Draw(rng *rand.Rand) time.Duration {
	if p.Tail && rng.IntN(tailOdds) == 0 {
		return p.Delay * tailFactor
	}
	return p.Delay
}
