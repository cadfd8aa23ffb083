package transport

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"github.com/zk-lite/zk-lite/internal/testkit/clock"
)

var errPowerCut = errors.New("power cut")

// disk is a simulated disk with a log, a stable store and a snapshot store. A record is volatile
// until its sync ends; a power cut keeps only a random prefix of the volatile tail. The disk
// survives power cuts; every life of a server gets its own view.
type disk struct {
	rng  *rand.Rand // under mu
	sync func(*rand.Rand) time.Duration

	mu      sync.Mutex
	cond    *sync.Cond
	life    int
	first   uint64
	logs    []raft.Log
	durable uint64 // records above are volatile
	oldest  time.Time
	stable  map[string][]byte
	snap    *memSnapshot
	slow    time.Duration // added to every sync
	lost    int           // volatile records that power cuts took
	fail    int           // that many StoreLogs fail
}

// diskView is a disk as one life of a server sees it: raft's LogStore, StableStore and
// SnapshotStore, and Durable.
type diskView struct {
	*disk
	life  int
	async func([]*raft.Log) bool
	done  chan struct{} // closed when the syncer has ended
}

// newDisk makes a disk whose syncs take the time that syncTime returns; nil: no time.
func newDisk(seed uint64, syncTime func(*rand.Rand) time.Duration) *disk {
	d := &disk{
		rng: rand.New(rand.NewPCG(seed, 1)), sync: syncTime, stable: map[string][]byte{},
	}
	d.cond = sync.NewCond(&d.mu)
	return d
}

func (d *disk) lastLocked() uint64 {
	if len(d.logs) == 0 {
		return 0
	}
	return d.first + uint64(len(d.logs)) - 1
}

func (d *disk) setSlow(t time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.slow = t
}

func (d *disk) slowness() time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.slow
}

func (d *disk) syncTimeLocked() time.Duration {
	t := d.slow
	if d.sync != nil {
		t += d.sync(d.rng)
	}
	return t
}

// cut ends the current life and forgets a random part of the volatile tail.
func (d *disk) cut() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.life++
	if last := d.lastLocked(); last > d.durable && len(d.logs) > 0 {
		keep := d.durable
		if d.rng.IntN(3) == 0 {
			keep += d.rng.Uint64N(last - d.durable + 1)
		}
		keep = max(keep, d.first-1)
		d.lost += int(last - keep)
		d.logs = d.logs[:keep+1-d.first]
		d.durable = keep // reopening syncs the tail that it finds
	}
	d.cond.Broadcast()
}

func (d *disk) open() *diskView {
	d.mu.Lock()
	defer d.mu.Unlock()
	v := &diskView{disk: d, life: d.life, done: make(chan struct{})}
	go v.syncer()
	return v
}

// close ends the life without losing anything.
func (v *diskView) close() {
	v.mu.Lock()
	if v.life == v.disk.life {
		v.disk.life++
		v.durable = v.lastLocked()
	}
	v.cond.Broadcast()
	v.mu.Unlock()
	<-v.done
}

func (v *diskView) deadLocked() bool { return v.life != v.disk.life }

func (v *diskView) syncer() {
	defer close(v.done)
	v.mu.Lock()
	defer v.mu.Unlock()
	for {
		for !v.deadLocked() && v.durable >= v.lastLocked() {
			v.cond.Wait()
		}
		if v.deadLocked() {
			return
		}
		target, d := v.lastLocked(), v.syncTimeLocked()
		if d > 0 {
			v.mu.Unlock()
			clock.Sleep(d) // of the bubble's clock
			v.mu.Lock()
		}
		if v.deadLocked() {
			return
		}
		v.durable = max(v.durable, target)
		v.oldest = time.Time{}
		if v.durable < v.lastLocked() {
			v.oldest = time.Now()
		}
		v.cond.Broadcast()
	}
}

// SyncTime implements AsyncLog.
func (v *diskView) SyncTime() time.Duration { return v.slowness() }

// SetAsync sets the rule that StoreLogs asks.
func (v *diskView) SetAsync(mayReturnEarly func([]*raft.Log) bool) { v.async = mayReturnEarly }

func (v *diskView) WaitDurable(i uint64) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	for !v.deadLocked() && i > v.durable && v.durable < v.lastLocked() {
		v.cond.Wait()
	}
	if v.deadLocked() {
		return errPowerCut
	}
	return nil
}

func (v *diskView) Stalled() time.Duration {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.oldest.IsZero() {
		return 0
	}
	return time.Since(v.oldest)
}

func (v *diskView) durableIndex() uint64 {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.durable
}

func (v *diskView) IsMonotonic() bool { return true }

func (v *diskView) FirstIndex() (uint64, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.logs) == 0 {
		return 0, nil
	}
	return v.first, nil
}

func (v *diskView) LastIndex() (uint64, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.lastLocked(), nil
}

func (v *diskView) GetLog(i uint64, out *raft.Log) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.logs) == 0 || i < v.first || i > v.lastLocked() {
		return raft.ErrLogNotFound
	}
	*out = v.logs[i-v.first]
	return nil
}

func (v *diskView) StoreLog(l *raft.Log) error { return v.StoreLogs([]*raft.Log{l}) }

func (v *diskView) StoreLogs(batch []*raft.Log) error {
	async := v.async != nil && v.async(batch)
	v.mu.Lock()
	if v.fail > 0 {
		v.fail--
		v.mu.Unlock()
		clock.Sleep(50 * time.Millisecond) // a disk takes its time to fail
		return errors.New("injected write error")
	}
	if v.deadLocked() {
		v.mu.Unlock()
		return errPowerCut
	}
	if len(v.logs) == 0 || batch[0].Index > v.lastLocked()+1 { // or a gap after a snapshot
		v.logs, v.first, v.durable = nil, batch[0].Index, batch[0].Index-1
	} else if batch[0].Index <= v.lastLocked() {
		panic("append below the tail without DeleteRange")
	}
	for _, l := range batch {
		v.logs = append(v.logs, *l)
	}
	if v.oldest.IsZero() {
		v.oldest = time.Now()
	}
	last := v.lastLocked()
	v.cond.Broadcast()
	v.mu.Unlock()
	if async {
		return nil
	}
	return v.WaitDurable(last)
}

func (v *diskView) DeleteRange(lo, hi uint64) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.logs) == 0 || v.deadLocked() {
		return nil
	}
	if lo <= v.first {
		n := min(hi-v.first+1, uint64(len(v.logs)))
		v.logs, v.first = v.logs[n:], v.first+n
		return nil
	}
	for !v.deadLocked() && v.durable < v.lastLocked() {
		v.cond.Wait()
	}
	if v.deadLocked() {
		return errPowerCut
	}
	v.logs = v.logs[:lo-v.first]
	v.durable = min(v.durable, lo-1)
	return nil
}

func (v *diskView) Set(k, val []byte) error {
	v.mu.Lock()
	d := v.syncTimeLocked() / 2
	v.mu.Unlock()
	if d > 0 {
		clock.Sleep(d)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if !v.deadLocked() { // raft panics on an error here, and no one sees the errors of a dead life
		v.stable[string(k)] = bytes.Clone(val)
	}
	return nil
}

func (v *diskView) Get(k []byte) ([]byte, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if b, ok := v.stable[string(k)]; ok {
		return b, nil
	}
	return nil, errors.New("not found") // the words that raft expects
}

func (v *diskView) SetUint64(k []byte, n uint64) error { return v.Set(k, fmt.Append(nil, n)) }

func (v *diskView) GetUint64(k []byte) (uint64, error) {
	b, err := v.Get(k)
	if err != nil {
		return 0, err
	}
	var n uint64
	_, err = fmt.Sscan(string(b), &n)
	return n, err
}

// memSnapshot is the one snapshot of a disk. Closing its sink installs it at once.
type memSnapshot struct {
	meta raft.SnapshotMeta
	data []byte
}

type memSink struct {
	bytes.Buffer
	v    *diskView
	meta raft.SnapshotMeta
}

func (v *diskView) Create(version raft.SnapshotVersion, index, term uint64,
	cfg raft.Configuration, cfgIndex uint64, _ raft.Transport,
) (raft.SnapshotSink, error) {
	return &memSink{v: v, meta: raft.SnapshotMeta{
		Version: version, ID: fmt.Sprintf("%d-%d", term, index), Index: index, Term: term,
		Configuration: cfg, ConfigurationIndex: cfgIndex,
	}}, nil
}

func (s *memSink) ID() string    { return s.meta.ID }
func (s *memSink) Cancel() error { return nil }
func (s *memSink) Close() error {
	s.v.mu.Lock()
	defer s.v.mu.Unlock()
	if s.v.deadLocked() {
		return errPowerCut
	}
	s.meta.Size = int64(s.Len())
	s.v.snap = &memSnapshot{s.meta, bytes.Clone(s.Bytes())}
	return nil
}

func (v *diskView) List() ([]*raft.SnapshotMeta, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.snap == nil {
		return nil, nil
	}
	meta := v.snap.meta
	return []*raft.SnapshotMeta{&meta}, nil
}

func (v *diskView) Open(id string) (*raft.SnapshotMeta, io.ReadCloser, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.snap == nil || v.snap.meta.ID != id {
		return nil, nil, fmt.Errorf("no snapshot %q", id)
	}
	meta := v.snap.meta
	return &meta, io.NopCloser(bytes.NewReader(v.snap.data)), nil
}
