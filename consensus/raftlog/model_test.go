package raftlog_test

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/hashicorp/raft"

	"github.com/zk-lite/zk-lite/consensus/raftlog"
	"github.com/zk-lite/zk-lite/consensus/raftlog/faultfs"
	"github.com/zk-lite/zk-lite/internal/testkit/seed"
	"github.com/zk-lite/zk-lite/internal/testkit/tier"
)

var modelSteps = flag.Int("model.steps", 6000, "steps of the model test")

// model is the set of states that the log may have: every state since the last one known durable, oldest first. A
// reader sees the last one; after a power cut any of them may be found.
type model struct {
	states [][]*raft.Log
}

func (m *model) now() []*raft.Log { return m.states[len(m.states)-1] }

func (m *model) durable() { m.states = m.states[len(m.states)-1:] }

// append adds the states that a power cut in or after an append can leave.
func (m *model) append(es []*raft.Log) {
	for i := range es {
		m.states = append(m.states, join(m.now(), es[i:i+1]))
	}
}

func (m *model) set(es []*raft.Log) { m.states = append(m.states, es) }

// modelRun is one life after the other of a store, and the model beside it.
type modelRun struct {
	t     *testing.T
	rand  *rand.Rand
	fs    *faultfs.FS
	s     *raftlog.Store
	m     model
	term  uint64
	async bool
	cuts  int
	lost  int
}

func (r *modelRun) open() error {
	size := int64(2+r.rand.IntN(3)) * 4096
	cacheSize := []int{-1, 1, 7, 100}[r.rand.IntN(4)]
	s, err := tryOpen(r.fs, raftlog.Options{
		SegmentSize: size, CacheEntries: cacheSize,
	})
	if err == nil {
		s.SetAsync(func([]*raft.Log) bool { return r.async })
		r.s = s
	}
	return err
}

// found matches the log that was opened after a power cut with the states possible.
func (r *modelRun) found() {
	var err error
	for i := len(r.m.states) - 1; i >= 0; i-- {
		if err = compareLog(r.s, r.m.states[i]); err == nil {
			r.lost += len(r.m.states) - 1 - i
			r.m.states = [][]*raft.Log{r.m.states[i]}
			return
		}
		if errors.Is(err, faultfs.ErrPowerCut) {
			return // the power failed again, in the background; the next life finds out
		}
	}
	r.t.Fatalf("after a power cut the log is none of the %d possible ones; the oldest: %v",
		len(r.m.states), err)
}

func (r *modelRun) step() error {
	now := r.m.now()
	switch k := r.rand.IntN(100); {
	case k < 50:
		return r.store(now)
	case k < 58:
		return r.deletePrefix(now)
	case k < 66:
		return r.deleteSuffix(now)
	case k < 68:
		return r.deleteAll(now)
	case k < 84:
		err := compareLog(r.s, now)
		if err != nil && !errors.Is(err, faultfs.ErrPowerCut) {
			r.t.Fatal(err)
		}
		return err
	case k < 92:
		return r.wait(now)
	case k < 95:
		if err := r.s.Close(); err != nil {
			return err
		}
		r.m.durable()
		return r.open()
	case k < 96:
		r.fs.Kill() // written data is read again, but may still be lost
		return faultfs.ErrPowerCut
	case k < 97:
		r.fs.PowerCut()
		return faultfs.ErrPowerCut
	default:
		r.fs.CutAfter(1 + r.rand.IntN(60)) // in the middle of whatever comes
		return nil
	}
}

func (r *modelRun) store(now []*raft.Log) error {
	next := uint64(1 + r.rand.IntN(50))
	if len(now) > 0 {
		next = now[len(now)-1].Index + 1
		if r.rand.IntN(60) == 0 {
			r.m.set(nil) // a gap: the log is empty for a moment
			next += uint64(1 + r.rand.IntN(10))
		}
	}
	r.term += uint64(r.rand.IntN(2))
	var es []*raft.Log
	for i := range 1 + r.rand.IntN(1+r.rand.IntN(30)) {
		es = append(es, entry(next+uint64(i), r.term))
	}
	r.async = r.rand.IntN(2) == 0
	gap := len(now) > 0 && next > now[len(now)-1].Index+1
	r.m.append(es)
	err := r.s.StoreLogs(es)
	if err == nil && (!r.async || gap) {
		r.m.durable()
	}
	return err
}

func (r *modelRun) remove(lo, hi uint64, left []*raft.Log) error {
	r.m.set(left)
	err := r.s.DeleteRange(lo, hi)
	if err == nil {
		r.m.durable()
	}
	return err
}

func (r *modelRun) deletePrefix(now []*raft.Log) error {
	if len(now) == 0 {
		return nil
	}
	n := 1 + r.rand.IntN(len(now))
	return r.remove(now[0].Index, now[n-1].Index, now[n:])
}

func (r *modelRun) deleteSuffix(now []*raft.Log) error {
	if len(now) == 0 {
		return nil
	}
	n := r.rand.IntN(min(len(now), 1+r.rand.IntN(40))) + 1
	keep := now[:len(now)-n]
	return r.remove(now[len(now)-n].Index, now[len(now)-1].Index, keep)
}

func (r *modelRun) deleteAll(now []*raft.Log) error {
	if len(now) == 0 {
		return nil
	}
	return r.remove(now[0].Index, now[len(now)-1].Index, nil)
}

func (r *modelRun) wait(now []*raft.Log) error {
	if len(now) == 0 {
		return r.s.WaitDurable(1 << 40)
	}
	i := now[len(now)-1].Index - uint64(r.rand.IntN(len(now)))
	if err := r.s.WaitDurable(i); err != nil {
		return err
	}
	// Every state without entry i is impossible from now on.
	for k, st := range r.m.states {
		if len(st) > 0 && st[len(st)-1].Index >= i {
			r.m.states = r.m.states[k:]
			break
		}
	}
	return nil
}

// Goal: whatever the order of appends, deletions, reopenings and power cuts, the log is one that
// a perfect store could hold. Method: random steps beside a model; the power goes between steps,
// or in the middle of one, after any write, sync or change of a name.
func TestStore_Model_RandomStepsAndPowerCuts(t *testing.T) {
	tier.Seconds(t)
	seed := seed.Of(t)
	for round := range uint64(4) {
		for _, direct := range []bool{false, true} {
			t.Run(fmt.Sprintf("%d direct=%v", round, direct), func(t *testing.T) {
				f := faultfs.New(seed+round, []int{64, 512, 4096, 512}[round])
				f.SetDirect(direct)
				runModel(t, rand.New(rand.NewPCG(seed, round)), f)
			})
		}
	}
}

func runModel(t *testing.T, rng *rand.Rand, f *faultfs.FS) {
	r := &modelRun{t: t, rand: rng, fs: f, m: model{states: [][]*raft.Log{nil}}}
	must(t, r.open())
	for i := range *modelSteps {
		if err := r.step(); err != nil {
			if !errors.Is(err, faultfs.ErrPowerCut) && !errors.Is(err, raftlog.ErrClosed) {
				t.Fatalf("step %d: %v", i, err)
			}
			r.restart()
		}
	}
	r.restart()
	t.Logf("%d power cuts, %d volatile steps lost", r.cuts, r.lost)
	if *modelSteps >= 1000 && (r.cuts == 0 || r.lost == 0) {
		t.Fatal("no power cut lost anything: the test tested nothing")
	}
}

// restart begins the next life after a power cut. The power may go again while the log opens.
func (r *modelRun) restart() {
	_ = r.s.Close()
	r.fs.PowerOn()
	r.cuts++
	for r.rand.IntN(3) == 0 {
		r.fs.CutAfter(1 + r.rand.IntN(30))
		s, err := tryOpen(r.fs, raftlog.Options{SegmentSize: raftlog.MinSegmentSize})
		if err == nil {
			r.s = s
			r.found()
			_ = s.Close()
		} else if !errors.Is(err, faultfs.ErrPowerCut) {
			r.t.Fatalf("Open: %v", err)
		}
		r.fs.PowerOn()
	}
	if err := r.open(); err != nil {
		r.t.Fatalf("Open: %v", err)
	}
	r.found()
}
