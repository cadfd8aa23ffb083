package forward

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/internal/testkit/clock"
	"github.com/zk-lite/zk-lite/znode"
)

// lead makes the node lead, and returns its batcher.
func (n *testNode) lead() *Batcher {
	b := newTestBatcher(n.t.Context())
	n.leads.Store(true)
	n.SetBatcher(b)
	return b
}

// open connects a server, and opens the stream.
func (n *testNode) open(from state.ServerID) *peer {
	n.t.Helper()
	p := n.connect(from)
	p.send(numberFrame(frameOpen, 2))
	p.wantContact(0)
	return p
}

// A server whose contact is confirmed serves reads in the belief that no other server leads.
func TestAccept_ConfirmsOnlyWhileItLeads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newTestNode(t)
		n.leads.Store(true)
		n.connect(2).wantClosed() // there is no batcher yet
		b := n.lead()
		n.leads.Store(false)
		n.connect(2).wantClosed() // the batcher is there still
		n.leads.Store(true)
		stream := n.open(2)
		stream.send(appendTouch(nil, 77, []znode.SessionID{5, 6}))
		if ids := <-n.touched; !slices.Equal(ids, []znode.SessionID{5, 6}) {
			t.Errorf("the sessions %v were touched", ids)
		}
		stream.wantContact(77)
		stream.send(batchFrame(5, create("/a"), create("/b")))
		stream.send(batchFrame(7, create("/c")))
		synctest.Wait()
		if got := b.take(); len(got) != 2 || got[0].Server != 2 || got[0].First != 5 || got[1].First != 7 {
			t.Errorf("the batcher got %+v", got)
		}
		n.leads.Store(false)
		stream.send(appendTouch(nil, 78, []znode.SessionID{5}))
		stream.wantClosed()
		if len(n.touched) > 0 {
			t.Errorf("the sessions %v were touched on a server that does not lead", <-n.touched)
		}
	})
}

// A batch that a server cannot read must not get into the log, and a stream of which a part is lost must end, or its
// commands would never be sent again.
func TestAccept_DamagedFramesEndTheStream(t *testing.T) {
	batch := batchFrame(1, create("/a"))
	damaged := slices.Clone(batch)
	damaged[len(beginFrame(nil, 0))+batchHeader-1]++ // how many commands there are
	touch := appendTouch(nil, 1, []znode.SessionID{1})
	short := endFrame(slices.Clone(touch[:len(touch)-1]))
	for name, x := range map[string]struct {
		opened bool
		frame  []byte
	}{
		"a batch before the stream is open": {false, batch}, "a touch before it is open": {false, touch},
		"a damaged batch": {true, damaged}, "a short touch": {true, short},
		"an unknown type": {true, numberFrame(9, 1)},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newTestNode(t)
				b := n.lead()
				connect := n.connect
				if x.opened {
					connect = n.open
				}
				stream := connect(2)
				stream.send(x.frame)
				stream.wantClosed()
				if b.waiting() || len(n.touched) > 0 {
					t.Errorf("%d batches and %d touches were taken", len(b.take()), len(n.touched))
				}
			})
		})
	}
}

// An operator sees which servers are connected, and since when a server is silent. The others reconnect when the
// batcher ends, since its commands may be lost.
func TestAccept_Streams_AreTheConnectedServers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newTestNode(t)
		b := n.lead()
		check := func(id state.ServerID, open bool, silent time.Duration) {
			t.Helper()
			synctest.Wait()
			if got, last := n.cfg.Streams.Contact(id); got != open || time.Since(last) != silent {
				t.Errorf("server %d is connected: %v, silent for %v; want %v, %v",
					id, got, time.Since(last), open, silent)
			}
		}
		old, observer := n.open(2), n.open(3)
		clock.Sleep(time.Second)
		check(2, true, time.Second)
		old.send(batchFrame(1, create("/a")))
		check(2, true, 0)
		check(3, true, time.Second)
		clock.Sleep(time.Second)
		stream := n.open(2)
		synctest.Wait()
		old.Close() // which the leader may read only now
		check(2, true, 0)
		if voting, others := n.cfg.Streams.Count(map[state.ServerID]bool{2: true}); voting != 1 || others != 1 {
			t.Errorf("%d voters and %d others are connected", voting, others)
		}
		b.End()
		stream.wantClosed()
		observer.wantClosed()
		check(2, false, 0)
		check(3, false, 2*time.Second)
	})
}
