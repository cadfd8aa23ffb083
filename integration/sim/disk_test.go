package sim

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/hashicorp/raft"
	raftboltdb "github.com/hashicorp/raft-boltdb/v2"

	"github.com/zk-lite/zk-lite/consensus/raftlog"
	"github.com/zk-lite/zk-lite/consensus/raftlog/faultfs"
	"github.com/zk-lite/zk-lite/consensus/storage"
	"github.com/zk-lite/zk-lite/internal/testkit/clock"
	"github.com/zk-lite/zk-lite/internal/testkit/slowdisk"
)

var errPowerCut = errors.New("power cut")

// gate lets everyone through until it is shut.
type gate struct {
	mu   sync.Mutex // protects the field below
	shut chan struct{}
}

func (g *gate) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.shut == nil {
		g.shut = make(chan struct{})
	}
}

func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.shut != nil {
		close(g.shut)
		g.shut = nil
	}
}

func (g *gate) wait() {
	for {
		ch := g.closed()
		if ch == nil {
			return
		}
		<-ch
	}
}

func (g *gate) closed() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.shut
}

// disk is a server's disk. It survives the server's lives; each has its own view of it.
type disk struct {
	seed   uint64
	fs     *faultfs.FS // changed by wipe, while no process uses it
	freeze gate

	mu        sync.Mutex // protects the fields below
	profile   slowdisk.Profile
	wiped     uint64 // how often
	rng       *rand.Rand
	slow      time.Duration // a sync may take longer by this much
	syncs     int
	life      int
	stable    map[string][]byte
	identity  *storage.Identity
	snapshots []memSnapshot // the newest first
}

func newDisk(seed uint64, p slowdisk.Profile) *disk {
	d := &disk{seed: seed, profile: p, rng: rand.New(rand.NewPCG(seed, 7)), stable: map[string][]byte{}}
	d.fs = d.blank()
	return d
}

// blankAgain reports whether it was wiped, and its server has not joined since.
func (d *disk) blankAgain() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.wiped > 0 && d.identity == nil
}

// sync takes as long as the disk does, and a little more or less, as disks do not keep step.
func (d *disk) sync() {
	d.mu.Lock()
	d.syncs++
	t := d.profile.Draw(d.rng)
	t += time.Duration(d.rng.Int64N(int64(d.profile.Delay/4) + 1))
	if d.slow > 0 {
		t += time.Duration(d.rng.Int64N(int64(d.slow)))
	}
	d.mu.Unlock()
	clock.Sleep(t)
	d.freeze.wait()
}

func (d *disk) setSlow(t time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.slow = t
}

// end ends a life: with the power, what was not synced may go; a killed process leaves it.
func (d *disk) end(power bool) {
	d.mu.Lock()
	d.life++
	d.slow = 0
	d.mu.Unlock()
	if power {
		d.fs.PowerCut()
	} else {
		d.fs.Kill()
	}
	d.freeze.open()
}

// store is the disk as a new life sees it.
func (d *disk) store(logger *slog.Logger, fatal func(error)) (storage.Store, error) {
	d.mu.Lock()
	v := &view{disk: d, life: d.life}
	known := d.identity != nil
	d.mu.Unlock()
	log, err := raftlog.Open("log", raftlog.Options{
		FS: d.fs, Logger: logger, OnFatal: fatal, SegmentSize: 128 << 10, MustExist: known,
	})
	if err != nil {
		return storage.Store{}, err
	}
	return storage.Store{
		Identity: v, Log: log, Stable: v, Snapshots: v, Raftlog: log,
		Close: log.Close,
	}, nil
}

// view is a disk in one life of its server: identity, term and vote, snapshots. A life that has
// ended changes nothing more; raft panics on an error, which no one sees in any case.
type view struct {
	*disk
	life int
}

func (v *view) deadLocked() bool { return v.life != v.disk.life }

// Load implements storage.IdentityStore.
func (v *view) Load() (*storage.Identity, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.identity == nil {
		return nil, nil
	}
	id := *v.identity
	return &id, nil
}

// Save implements storage.IdentityStore. It is two syncs, as in bbolt.
func (v *view) Save(id storage.Identity) error {
	v.sync()
	v.sync()
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.deadLocked() {
		return errPowerCut
	}
	v.identity = &id
	return nil
}

// Set implements raft.StableStore. It is two syncs, as in bbolt: the pages, then the meta page.
func (v *view) Set(k, val []byte) error {
	v.sync()
	v.sync()
	v.mu.Lock()
	defer v.mu.Unlock()
	if !v.deadLocked() {
		v.stable[string(k)] = bytes.Clone(val)
	}
	return nil
}

// Get implements raft.StableStore.
func (v *view) Get(k []byte) ([]byte, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if b, ok := v.stable[string(k)]; ok {
		return b, nil
	}
	return nil, raftboltdb.ErrKeyNotFound // whose text raft expects
}

// SetUint64 implements raft.StableStore.
func (v *view) SetUint64(k []byte, n uint64) error { return v.Set(k, fmt.Append(nil, n)) }

// GetUint64 implements raft.StableStore.
func (v *view) GetUint64(k []byte) (uint64, error) {
	b, err := v.Get(k)
	if err != nil {
		return 0, err
	}
	var n uint64
	_, err = fmt.Sscan(string(b), &n)
	return n, err
}

// memSnapshot is a finished snapshot.
type memSnapshot struct {
	meta raft.SnapshotMeta
	data []byte
}

// sink is a snapshot that is being written; it counts when it is closed.
type sink struct {
	bytes.Buffer
	v    *view
	meta raft.SnapshotMeta
}

// Create implements raft.SnapshotStore.
func (v *view) Create(version raft.SnapshotVersion, index, term uint64,
	cfg raft.Configuration, cfgIndex uint64, _ raft.Transport,
) (raft.SnapshotSink, error) {
	return &sink{v: v, meta: raft.SnapshotMeta{
		Version: version, ID: fmt.Sprintf("%d-%d", term, index), Index: index, Term: term,
		Configuration: cfg, ConfigurationIndex: cfgIndex,
	}}, nil
}

func (s *sink) ID() string    { return s.meta.ID }
func (s *sink) Cancel() error { return nil }

func (s *sink) Close() error {
	s.v.sync()
	s.v.mu.Lock()
	defer s.v.mu.Unlock()
	if s.v.deadLocked() {
		return errPowerCut
	}
	s.meta.Size = int64(s.Len())
	keep := s.v.snapshots
	if len(keep) > 1 {
		keep = keep[:1]
	}
	s.v.snapshots = append([]memSnapshot{{s.meta, bytes.Clone(s.Bytes())}}, keep...)
	return nil
}

// List implements raft.SnapshotStore.
func (v *view) List() ([]*raft.SnapshotMeta, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	var list []*raft.SnapshotMeta
	for i := range v.snapshots {
		meta := v.snapshots[i].meta
		list = append(list, &meta)
	}
	return list, nil
}

// Open implements raft.SnapshotStore.
func (v *view) Open(id string) (*raft.SnapshotMeta, io.ReadCloser, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for i := range v.snapshots {
		if s := &v.snapshots[i]; s.meta.ID == id {
			meta := s.meta
			return &meta, io.NopCloser(bytes.NewReader(s.data)), nil
		}
	}
	return nil, nil, fmt.Errorf("no snapshot %q", id)
}
