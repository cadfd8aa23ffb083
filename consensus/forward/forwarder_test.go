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

// A client whose command went to a leader that failed would wait forever if only later commands were sent to the next
// leader. Here no later command follows whose number would show that one is missing.
func TestForwarder_NextLeader_GetsAllWithoutAResult(t *testing.T) {
	for name, x := range map[string]struct {
		leader state.ServerID
		next   func(n *testNode) state.Batch // what the next leadership gets before it ends
	}{
		"another server": {2, func(n *testNode) state.Batch {
			stream := n.nextStream(2)
			defer stream.Close()
			return stream.readBatch()
		}},
		"this server": {1, func(n *testNode) state.Batch {
			b := newTestBatcher(n.t.Context())
			n.SetBatcher(b)
			clock.Sleep(time.Second)
			return append(b.take(), state.Batch{})[0]
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newTestNode(t)
				n.add(3)
				n.publish(x.leader)
				go n.Run(t.Context())
				for done := range 3 { // one gets its result each time
					if b := x.next(n); b.Server != 1 || b.First != uint64(done+1) || b.Count != 3-done {
						t.Fatalf("with %d results of 3, the next leader got %d commands from number %d",
							done, b.Count, b.First)
					}
					n.queue.Applied(uint64(done + 1))
				}
			})
		})
	}
}

// A server serves reads for some time after its last contact, so that is when it sent what the leader has
// confirmed, not when the answer came. Unconfirmed contact is reported to the next leader, or sessions would expire
// early.
func TestForwarder_Contact_IsWhenTheConfirmedTouchWasSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newTestNode(t)
		n.publish(2)
		go n.Run(t.Context())
		leader := n.nextStream(2)
		var stamps [3]uint64
		for i := range stamps {
			clock.Sleep(time.Second)
			n.Touch([]znode.SessionID{znode.SessionID(i)})
			var err error
			if stamps[i], _, err = parseTouch(leader.read(frameTouch)); err != nil || int64(stamps[i]) != n.now() {
				t.Fatalf("a touch of %d, sent at %d, %v", stamps[i], n.now(), err)
			}
		}
		for _, x := range []struct{ sent, want uint64 }{{stamps[1], stamps[1]}, {stamps[0], stamps[1]}} {
			clock.Sleep(time.Second)
			leader.send(numberFrame(frameContact, x.sent))
			synctest.Wait()
			if got := n.contact.Load(); got != int64(x.want) {
				t.Errorf("contact at %d after the leader confirmed %d, want %d", got, x.sent, x.want)
			}
		}
		leader.Close()
		_, ids, err := parseTouch(n.nextStream(2).read(frameTouch))
		if err != nil || !slices.Equal(ids, []znode.SessionID{2}) {
			t.Errorf("the next stream brought the touches %v, %v; want that which was not confirmed", ids, err)
		}
	})
}

// A damaged frame must not prolong the time for which this server serves reads.
func TestForwarder_Contact_NotFromADamagedFrame(t *testing.T) {
	const late = 1 << 40
	for name, bad := range map[string][]byte{
		"another type": numberFrame(frameTouch, late),
		"too long":     endFrame(append(appendContact(nil, late, 0, true), 1)),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newTestNode(t)
				n.publish(2)
				go n.Run(t.Context())
				first := n.nextDial(2)
				first.read(frameOpen)
				first.send(bad)
				first.wantClosed()
				if got := n.contact.Load(); got != 0 {
					t.Errorf("contact at %d, before any leader said that it leads", got)
				}
				second := n.nextStream(2)
				synctest.Wait()
				before := n.contact.Load()
				second.send(bad)
				second.wantClosed()
				if got := n.contact.Load(); got != before {
					t.Errorf("contact at %d, want %d", got, before)
				}
			})
		})
	}
}
