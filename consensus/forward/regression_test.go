package forward

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/internal/testkit/clock"
	"github.com/zk-lite/zk-lite/internal/testkit/wait"
	"github.com/zk-lite/zk-lite/znode"
)

// A stream that waited for room in the leader's inbox just when the batcher ended
// could miss the news: the end was announced without the lock, between its check
// and its wait. That server's commands then never moved again, and
// its Close did not return.
func TestRegression_Batcher_EndWakesWhoWaitsForRoom(t *testing.T) {
	for round := range 30_000 {
		r := newTestBatcher(t.Context())
		r.bytes = maxInboxBytes
		started, over := make(chan struct{}), make(chan bool)
		go r.Run()
		go func() {
			close(started)
			over <- r.submit(state.Batch{})
		}()
		<-started
		for range round % 3 {
			runtime.Gosched()
		}
		r.End()
		select {
		case ok := <-over:
			if ok {
				t.Fatal("a batcher that has ended accepted a batch")
			}
		case <-time.After(wait.Patience):
			t.Fatalf("round %d: still waiting for room in a batcher that has ended", round)
		}
	}
}

// A command that did not fit the chunk made append double it, and the doubled array
// became the next chunk: after ten thousand multis of 15 KB one array held 158 MB, and
// all of it was copied each time it grew.
func TestQueue_Add_ChunkStaysSmall(t *testing.T) {
	f := NewQueue(state.Origin{Server: 1, Incarnation: 1}, 1<<20, 1<<30)
	for _, size := range []int{15_000, 100, chunkSize - 300, chunkSize, 3 * chunkSize} {
		for range 200 {
			multi := &state.Command{Op: state.OpMulti, Ops: []state.Command{
				{Op: state.OpSetData, Path: "/x", Data: make([]byte, size)},
			}}
			if err := f.Add(multi, &note{}, From{}); err != nil {
				t.Fatal(err)
			}
			if got := cap(f.chunk); got > chunkSize+size+512 {
				t.Fatalf("commands of %d bytes: the chunk has %d", size, got)
			}
		}
	}
	g := f.take(nil)
	for g.Count > 0 {
		if err := state.CheckBatch(&g); err != nil {
			t.Fatal(err)
		}
		g = f.take(nil)
	}
}

// A server's heartbeats waited until all its commands were at the leader, whose inbox accepted them as fast as they
// became entries: for seconds, with thousands of requests in flight. Meanwhile its clients' sessions expired, although
// they had all sent heartbeats.
func TestRegression_Stream_HeartbeatsDoNotWaitForCommands(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	q := NewQueue(state.Origin{Server: 1, Incarnation: 1}, 1<<20, 1<<30)
	f := New(Config{Queue: q})
	const size = 16 << 10
	for range 8 * maxSentBytes / size { // none of which will ever be applied
		set := &state.Command{Op: state.OpSetData, Path: "/x", Data: make([]byte, size)}
		if err := q.Add(set, &note{}, From{}); err != nil {
			t.Fatal(err)
		}
	}
	conn, leader := net.Pipe()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = f.sendStream(ctx, conn, 2, nil)
	}()
	in := bufio.NewReader(leader)
	for sent := 0; ; {
		kind, body, err := readFrame(in)
		if err != nil {
			t.Fatal(err)
		}
		if kind == frameTouch {
			break
		}
		if sent == 0 {
			f.Touch([]znode.SessionID{7})
		}
		if sent += len(body); sent > 2*maxSentBytes {
			t.Fatalf("%d bytes of commands came before the heartbeat", sent)
		}
	}
	cancel()
	_ = conn.Close()
	<-ended
}

// AddServer told its caller that the server was added when this one was closed before that was known:
// all waiters of a node that ends get Lost, which otherwise means that the command is in the state.
func TestRegression_Do_StoppedMeanwhile_IsUnknown(t *testing.T) {
	for _, stopped := range []bool{false, true} {
		q := NewQueue(state.Origin{Server: 1, Incarnation: 1}, 10, 1000)
		ended := make(chan error, 1)
		go func() {
			_, err := q.Do(t.Context(), create("/a"))
			ended <- err
		}()
		wait.Until(t, "a command that is pending", func() bool { return q.Len() > 0 })
		if stopped {
			q.Stop()
		}
		for _, w := range q.SkipTo(1<<64 - 1) {
			w.Lost()
		}
		if err := <-ended; errors.Is(err, ErrStopped) != stopped || !stopped && err != nil {
			t.Errorf("stopped %v: %v", stopped, err)
		}
	}
}

// A leader that was cut off, or stopped, just when a server had dialled it never answered. The server waited for
// it until TCP gave up, although another server led by then. And a connection on which not even the first frame
// could be sent was not closed before the server was.
func TestRegression_Forwarder_LeaderThatIsCutOffIsLeft(t *testing.T) {
	for _, when := range []string{"before the first frame", "before the contact", "later"} {
		t.Run(when, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newTestNode(t)
				n.publish(2)
				go n.Run(t.Context())
				cutOff := n.nextDial(2)
				if when != "before the first frame" {
					cutOff.read(frameOpen)
				}
				if when == "later" {
					cutOff.send(numberFrame(frameContact, 0))
					synctest.Wait()
					n.publish(2) // in another term, which is no reason to leave it
					n.add(1)
					cutOff.readBatch()
				}
				n.publish(3)
				n.nextStream(3)
				cutOff.wantClosed()
			})
		})
	}
}

// A leader's first frame counted as contact when it arrived. It may have been under way while the network was cut, and
// another server may lead since: the server kept serving reads from its old state.
func TestRegression_Forwarder_FirstContactIsAsOldAsTheDial(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newTestNode(t)
		dialled := n.now()
		n.publish(2)
		go n.Run(t.Context())
		leader := n.nextDial(2)
		leader.read(frameOpen)
		clock.Sleep(time.Minute)
		leader.send(numberFrame(frameContact, 0))
		synctest.Wait()
		if got := n.contact.Load(); got != dialled {
			t.Errorf("contact at %v, but the leader was dialled at %v", time.Duration(got), time.Duration(dialled))
		}
	})
}

// With a jute.maxbuffer above 16 MiB a server accepted commands that no leader read from its stream. It sent the same
// command again and again, and all later commands of its clients waited. The largest command passes, and so does any
// number of sessions.
func TestRegression_Stream_PassesWhatIsAccepted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newTestNode(t)
		n.publish(2)
		go n.Run(t.Context())
		leader := n.nextStream(2)
		set := &state.Command{Op: state.OpSetData, Path: "/x"}
		set.Data = make([]byte, state.MaxCommand-set.MaxSize())
		if err := n.queue.Add(set, &note{}, From{}); err != nil {
			t.Fatal(err)
		}
		if b := leader.readBatch(); b.Count != 1 || len(b.Commands) < len(set.Data) {
			t.Errorf("a batch of %d commands, %d bytes", b.Count, len(b.Commands))
		}
		sessions := make([]znode.SessionID, 5*maxTouched/2)
		for i := range sessions {
			sessions[i] = znode.SessionID(i)
		}
		n.Touch(sessions)
		for got := map[znode.SessionID]bool{}; len(got) < len(sessions); {
			body := leader.read(frameTouch)
			_, ids, err := parseTouch(body)
			if err != nil || len(ids) == 0 || len(ids) > maxTouched {
				t.Fatalf("a touch of %d sessions, %v", len(ids), err)
			}
			for _, id := range ids {
				got[id] = true
			}
		}
	})
}

// Neither a leader that could not read a stream reported it, nor the server whose stream it was.
func TestRegression_Stream_EndIsLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer // read when nothing writes
		n := newTestNode(t)
		n.cfg.Logger = slog.New(slog.NewTextHandler(&log, nil))
		n.lead()
		stranger := n.open(3)
		stranger.send([]byte{0xff, 0xff, 0xff, 0xff, frameBatch})
		stranger.wantClosed()
		n.publish(2)
		go n.Run(t.Context())
		n.nextStream(2).Close()
		synctest.Wait()
		for _, want := range []string{"server=3", "stream frame of 4294967295 bytes", "leader=2 error=EOF"} {
			if !strings.Contains(log.String(), want) {
				t.Errorf("%q is not in the log:\n%s", want, log.String())
			}
		}
	})
}
