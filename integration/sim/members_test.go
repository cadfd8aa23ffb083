package sim

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/zk-lite/zk-lite/consensus/raftlog/faultfs"
	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/internal/testkit/clock"
)

// wipe puts an empty disk in the place of this one. Its server must be down.
func (d *disk) wipe() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.life++
	d.wiped++
	d.fs = d.blank()
	d.stable, d.identity, d.snapshots = map[string][]byte{}, nil, nil
}

// blank is a file system with nothing on it.
func (d *disk) blank() *faultfs.FS {
	fs := faultfs.New(d.seed+d.wiped<<32, 0)
	fs.SetDirect(d.rng.IntN(2) == 0) // some servers write past the page cache, some through it
	fs.SetFault(func(op faultfs.Op, _ string) error {
		if op == faultfs.OpSync || op == faultfs.OpSyncDir {
			d.sync()
		} else {
			d.freeze.wait()
		}
		return nil
	})
	return fs
}

// replace does what an operator does with a server whose disk is lost: the server leaves the ensemble, gets
// an empty disk, is started, and is taken in again, sometimes without a vote at first. Other things go on
// meanwhile. Whatever of it fails because of them is left for complete.
func (w *chaos) replace() {
	i := w.anyone()
	m, through := w.servers[i], w.servers[(i+1+w.rng.IntN(len(w.servers)-1))%len(w.servers)].running()
	if through == nil || !w.replacing.CompareAndSwap(false, true) {
		return
	}
	if !w.allVote() {
		w.replacing.Store(false)
		return // the last one has not been finished, or a server is down: the ensemble would stop
	}
	ctx, cancel := context.WithTimeout(context.Background(), w.ms(1000, 4000))
	defer cancel()
	m.outside.Store(true) // perhaps, whatever the answer is
	err := through.node.Ensemble().RemoveServer(ctx, state.ServerID(i), false)
	m.back = time.Now().Add(w.ms(0, 1000))
	if err != nil {
		m.removalUnknown.Store(true)
		w.replacing.Store(false)
		w.logger.Info("removing", "server", i, "error", err)
		return
	}
	m.busy <- struct{}{}
	if w.rng.IntN(2) == 0 {
		m.stop()
	} else {
		m.crash(true)
	}
	m.disk.wipe()
	m.removalUnknown.Store(false)
	w.net.change(func() { w.net.counts["disk wiped, outside of the ensemble"]++ })
	clock.Sleep(w.ms(0, 1000))
	w.boot(m)
	<-m.busy
	vote, patience := w.rng.IntN(3) > 0, w.ms(1000, 4000)
	w.later.Go(func() {
		defer w.replacing.Store(false)
		select {
		case <-w.healed:
			return
		case <-time.After(time.Until(m.back)):
		}
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := w.admit(ctx, i, vote); err != nil {
			w.logger.Info("taking in again", "server", i, "error", err)
		}
	})
}

// admit takes a server into the ensemble through one of the others.
func (w *world) admit(ctx context.Context, i int, vote bool) error {
	err := errors.New("no other server knows a leader")
	for j, m := range w.servers {
		l := m.running()
		if j == i || l == nil || l.node.Status().Leader == state.NoServer {
			continue
		}
		member := state.Member{ID: state.ServerID(i), Peer: addrOf(i) + ":0", Addr: addrOf(i), Vote: vote}
		if err = l.node.Ensemble().AddServer(ctx, member); err == nil {
			if vote {
				w.servers[i].outside.Store(false)
			}
			return nil
		}
	}
	return err
}

// complete adds all removed servers again, and waits until every server knows that all have a vote:
// until then the ensemble still changes.
func (w *world) complete() {
	close(w.healed)
	w.later.Wait()
	for _, m := range w.servers {
		if m.outside.Load() {
			clock.Sleep(time.Until(m.back))
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), healLimit)
	defer cancel()
	var all sync.WaitGroup
	for i, m := range w.servers {
		if !m.outside.Load() {
			continue
		}
		all.Go(func() {
			for m.outside.Load() {
				w.emptyIfHalted(m)
				step, done := context.WithTimeout(ctx, healLimit/6)
				err := w.admit(step, i, true)
				done()
				if err != nil && wait(ctx, 100*time.Millisecond) != nil {
					w.record.violation("Growing and shrinking", "server %d was not taken in again within %v of the "+
						"end of all faults: %v: %s", i, healLimit, err, w.stand())
					return
				}
			}
		})
	}
	all.Wait()
	for !w.allVote() {
		for _, m := range w.servers { // it may have noticed only after it was admitted
			w.emptyIfHalted(m)
		}
		if wait(ctx, 50*time.Millisecond) != nil {
			w.record.violation("Growing and shrinking", "not every server had a vote within %v of the end of all "+
				"faults: %s", healLimit, w.stand())
			return
		}
	}
}

// emptyIfHalted does what a removed server asks for, once, if the answer to its removal was lost and it still has its
// data. No other server may be halted: it stays so, and the run fails.
func (w *world) emptyIfHalted(m *machine) {
	l := m.running()
	if l == nil || l.node.Status().Halt == nil || !m.removalUnknown.Swap(false) {
		return
	}
	m.busy <- struct{}{}
	m.stop()
	m.disk.wipe()
	w.boot(m)
	<-m.busy
}

func (w *world) allVote() bool {
	for _, m := range w.servers {
		l := m.running()
		if l == nil {
			return false
		}
		members := l.node.Ensemble().Members()
		for i := range w.servers {
			if !members[state.ServerID(i)].Voter {
				return false
			}
		}
	}
	return true
}
