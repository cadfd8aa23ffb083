package consensus

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/zk-lite/zk-lite/consensus/raftlog/faultfs"
	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/internal/testkit/tier"
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
				t.Fatal("a group was taken by a batcher that has ended")
			}
		case <-time.After(10 * time.Second):
			t.Fatalf("round %d: still waiting for room in a batcher that has ended", round)
		}
	}
}

// An observer may lose its disk and come back. It began to number its commands
// from its first life on again, which the ensemble takes for repetitions: none
// of its clients' writes was ever answered.
func TestRegression_WipedObserver_WritesAgain(t *testing.T) {
	t.Parallel()
	e := prepare(t, 2, nil)
	e.servers[1].Voter = false
	e.mustStart(0)
	e.mustStart(1)
	e.fill(1, "/first", 5)
	e.stop(1)
	e.wipe(1)
	e.mustStart(1)
	e.fill(1, "/second", 3) // fewer than before
	e.agree()
}

// Likewise when its clock was behind in its new life.
func TestRegression_Queue_LearnsOfALaterIncarnation(t *testing.T) {
	t.Parallel()
	e := newTestEnsemble(t, 1, nil)
	e.must(0, "/a")
	x := e.nodes[0]
	later := state.Batch{
		Origin: state.Origin{Server: 1, Incarnation: x.queue.Origin().Incarnation + 1000},
		First:  1, Count: 1, Commands: state.AppendCommand(nil, create("/b")),
	}
	r := x.forwarder.batcher.Load()
	if !r.submit(later) {
		t.Fatal("the leader refused a group")
	}
	eventually(t, "the entry of the later life", func() bool { return x.handler.exists("/b") })
	if o := e.await("/c", e.propose(0, create("/c"))); o.lost || o.Code != znode.OK {
		t.Fatalf("lost %v, %v", o.lost, o.Code)
	}
	if got := x.queue.Origin().Incarnation; got <= later.Incarnation {
		t.Errorf("this life is %d, a later one was %d", got, later.Incarnation)
	}
}

// A server with the data of another ensemble was turned away by the others at
// every connection, and went on asking for ever, without saying that it could
// never work.
func TestRegression_ForeignData_EndsTheServer(t *testing.T) {
	tier.Seconds(t)
	t.Parallel()
	foreign := prepare(t, 3, nil)
	foreign.servers = foreign.servers[2:] // server 3, alone
	foreign.nodes[2], foreign.nodes[0] = foreign.nodes[0], foreign.nodes[2]
	foreign.mustStart(0)
	foreign.must(0, "/foreign")
	foreign.stop(0)

	e := newTestEnsemble(t, 3, nil)
	e.must(0, "/ours")
	e.waitFormed()
	e.stop(2)
	e.nodes[2].dir = foreign.nodes[0].dir
	e.mustStart(2)
	select {
	case err := <-e.nodes[2].fatal:
		for _, want := range []string{"another ensemble", "dataDir"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("the error %q does not say %q", err, want)
			}
		}
	case <-time.After(20 * time.Second):
		t.Fatal("a server with another ensemble's data goes on")
	}
	if s := e.nodes[2].Status(); s.Role != RoleNone {
		t.Errorf("it is a %s", s.Role)
	}
	e.stop(2)
	e.must(1, "/still")
	if e.nodes[0].handler.exists("/foreign") {
		t.Error("the other ensemble's data has come in")
	}
}

// Two of three servers were up and elected nobody, for ever: one had campaigned
// after a TimeoutNow, had then heard from the winner of the same term, and kept
// it for its leader when that one had died (see staleleader.go). The chaos test
// met it by chance; here the dead leader's messages are played.
func TestRegression_CandidateWithDeadLeader_VotesAgain(t *testing.T) {
	tier.Seconds(t)
	t.Parallel()
	e := newTestEnsemble(t, 3, func(c *Config) { c.NoFailover = true })
	e.must(0, "/a")
	e.waitFormed()
	e.stop(1)
	e.must(0, "/b") // server 2 has the shorter log, and cannot win
	e.stop(0)
	e.stop(2)
	e.mustStart(1)
	x := e.nodes[1]
	header := raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax, ID: []byte("3"), Addr: []byte("3")}
	heartbeat := func(term uint64) {
		request := raft.AppendEntriesRequest{RPCHeader: header, Term: term}
		if err := x.transport.AppendEntries("2", "2", &request, &raft.AppendEntriesResponse{}); err != nil {
			t.Fatal(err)
		}
	}
	term := x.raft.CurrentTerm() + 10
	heartbeat(term) // server 3 leads, server 2 follows
	request := raft.TimeoutNowRequest{RPCHeader: header}
	if err := x.transport.TimeoutNow("2", "2", &request, &raft.TimeoutNowResponse{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a campaign", func() bool { return x.raft.CurrentTerm() == term+1 })
	heartbeat(term + 1) // server 3 has won it
	if leader := x.Status().Leader; x.raft.State() != raft.Candidate || leader != 3 {
		t.Fatalf("raft is a %v with leader %d: its fault has gone, and so may clearStaleLeader", x.raft.State(), leader)
	}
	e.mustStart(0) // server 3 is never seen again
	e.must(0, "/c")
	e.must(1, "/d")
	e.agree()
}

// "Anyone else shall lead" was answered with success and changed nothing when the
// leader was so new that no follower had found it yet; and a repetition, its first
// answer lost, took leadership from the next leader too, which could give it back
// to the one that was to lose it. A test of the HTTP API met it under load.
func TestRegression_TransferToAnyone_TakesItFromOneLeaderOnce(t *testing.T) {
	t.Parallel()
	e := newTestEnsemble(t, 3, nil)
	for round := range 6 {
		from, to := e.leader(), (round+1)%3
		if err := e.nodes[from].TransferTo(e.patience(), e.servers[to].ID); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the new leader", func() bool { return e.nodes[to].Status().Role == RoleLeader })
		term := e.nodes[to].Status().Term
		if err := e.nodes[to].TransferTo(e.patience(), 0); err != nil {
			t.Fatal(err)
		}
		eventually(t, "another leader", func() bool {
			s := e.nodes[e.leader()].Status()
			return s.Term > term && s.Leader != e.servers[to].ID
		})
		again := controlRequest{Op: controlTransfer, Leader: e.servers[to].ID}
		leader := e.leader()
		if err := e.nodes[leader].ensemble.askLeader(e.patience(), again); err != nil {
			t.Fatal(err)
		}
		if now := e.leader(); now != leader {
			t.Fatalf("the repetition moved leadership from %d to %d", leader, now)
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
			if err := f.Add(multi, &note{}); err != nil {
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

// A leader whose disk hung went on to say that it was in touch with a majority, since raft calls a
// server leader until its main loop moves again. It kept its clients, whose sessions the next leader
// let expire: they were still answered, from a state in which their ephemerals lived. The simulation
// found it (integration/sim, seed 2).
func TestRegression_LeaderWithHungDisk_IsOutOfContact(t *testing.T) {
	t.Parallel()
	e := withFaultyDisks(t, 1)
	x := e.nodes[0]
	if s := x.Status(); s.Contact >= testElection || !x.leads() {
		t.Fatalf("a leader that works: contact %v ago, leads %v", s.Contact, x.leads())
	}
	moves := make(chan struct{})
	x.fs.SetFault(func(op faultfs.Op, _ string) error {
		if op == faultfs.OpWrite {
			<-moves
		}
		return nil
	})
	pending := e.propose(0, create("/b"))
	eventually(t, "a leader that knows of nobody", func() bool {
		return x.Status().Contact >= testElection && !x.leads()
	})
	x.fs.SetFault(nil)
	close(moves)
	if o := e.await("/b", pending); o.lost || o.Code != znode.OK {
		t.Fatalf("lost %v, %v", o.lost, o.Code)
	}
	eventually(t, "a leader whose disk answers again", func() bool {
		return x.Status().Contact < testElection && x.leads()
	})
}

// A server could not be closed any more when raft had forgotten a transfer of leadership:
// the request that had asked for it waited for ever, and Close for the request. The
// simulation found it (a seed of 30300 to 30649).
func TestRegression_Transfer_ThatNeverEnds_DoesNotHoldUpClose(t *testing.T) {
	t.Parallel()
	e := newTestEnsemble(t, 1, nil)
	e.must(0, "/a")
	x := e.nodes[0]
	asked, ended := make(chan struct{}), make(chan error, 1)
	x.tasks.Go(func() {
		ended <- x.ensemble.transfer(func() raft.Future {
			close(asked)
			return forgotten{t.Context()}
		})
	})
	<-asked
	e.stop(0)
	if err := <-ended; !errors.Is(err, ErrStopped) {
		t.Errorf("it ended with %v", err)
	}
}

// forgotten is a future that nobody answers while the test runs.
type forgotten struct{ context.Context }

func (f forgotten) Error() error {
	<-f.Done()
	return f.Err()
}

// A server's heartbeats waited until all its commands were at the leader, whose inbox let them in as
// fast as entries became of them: for seconds, with thousands of requests in flight. Meanwhile the
// sessions of its clients, who were heard all the time, expired.
func TestRegression_Stream_HeartbeatsDoNotWaitForCommands(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	q := NewQueue(state.Origin{Server: 1, Incarnation: 1}, 1<<20, 1<<30)
	f := NewForwarder(ForwarderConfig{Queue: q, Now: func() int64 { return 1 }})
	const size = 16 << 10
	for range 8 * maxSentBytes / size { // none of which will ever be applied
		set := &state.Command{Op: state.OpSetData, Path: "/x", Data: make([]byte, size)}
		if err := q.Add(set, &note{}); err != nil {
			t.Fatal(err)
		}
	}
	conn, leader := net.Pipe()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		f.sendStream(ctx, conn, 2, nil)
	}()
	in := bufio.NewReader(leader)
	for groups := 0; ; {
		kind, body, err := readFrame(in)
		if err != nil {
			t.Fatal(err)
		}
		if kind == frameTouch {
			break
		}
		if groups == 0 {
			f.Touch([]znode.SessionID{7})
		}
		if groups += len(body); groups > 2*maxSentBytes {
			t.Fatalf("%d bytes of commands came before the heartbeat", groups)
		}
	}
	cancel()
	_ = conn.Close()
	<-ended
}

// A server that was told to close while it joined its ensemble could leave raft running, on a
// transport that was closed: Close had looked whether there was a raft a moment too early.
func TestRegression_Close_WhileJoining_TakesNoRaft(t *testing.T) {
	n := &Node{ready: make(chan struct{})}
	n.ctx, n.cancel = context.WithCancelCause(t.Context())
	n.cancel(ErrStopped)
	if n.takeRaft(nil) {
		t.Error("a node that is being closed has taken a raft that nobody will stop")
	}
}

// AddServer told its caller that the server was added when this one was closed before that was known:
// all waiters of a node that ends are told Lost, which else means that the command is in the state.
func TestRegression_AddServer_ClosedMeanwhile_IsUnknown(t *testing.T) {
	for _, stopped := range []bool{false, true} {
		q := NewQueue(state.Origin{Server: 1, Incarnation: 1}, 10, 1000)
		ended := make(chan error, 1)
		go func() {
			_, err := q.Do(t.Context(), create("/a"))
			ended <- err
		}()
		eventually(t, "a command that is pending", func() bool { return q.Len() > 0 })
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

// Whoever had added a server could be told so before this node knew the server's addresses: they were
// published when all entries at hand had been applied, and the waiter was woken at its own.
func TestRegression_AddServer_KnowsTheMemberItAdded(t *testing.T) {
	e := newTestEnsemble(t, 1, nil)
	n := e.nodes[0].Node
	addr := e.servers[0].Addr
	seen := make(chan string, 1)
	w := whenApplied(func(*state.Result) { seen <- n.Members()[1].Client })
	m := state.Member{ID: 1, Addr: addr, Client: "client:2181", Vote: true}
	if err := n.Propose(&state.Command{Op: state.OpMember, Member: m}, w); err != nil {
		t.Fatal(err)
	}
	if got := <-seen; got != m.Client {
		t.Errorf("its client address is %q when the command has been applied, want %q", got, m.Client)
	}
}

// whenApplied waits for a command's result.
type whenApplied func(*state.Result)

func (f whenApplied) Applied(r *state.Result) { f(r) }
func (f whenApplied) Lost()                   { f(nil) }

// A server that was closed while entries waited for its state machine could hang for good: raft's
// goroutine for that machine ends without a word to whoever waits for them.
func TestRegression_Close_EntriesAtTheStateMachine_Ends(t *testing.T) {
	tier.Seconds(t)
	e := newTestEnsemble(t, 1, nil)
	for round := range 8 { // raft chooses at random whether it still applies them
		n, h := e.nodes[0].Node, e.nodes[0].handler
		done := make(chan outcome, maxInFlight)
		e.must(0, fmt.Sprintf("/before%d", round))
		h.BeginApply()               // applying waits
		for k := range maxInFlight { // one in the machine's hands, one behind it
			before := n.raft.CommitIndex()
			if err := n.Propose(create(fmt.Sprintf("/n%d-%d", round, k)), waiter{done}); err != nil {
				t.Fatal(err)
			}
			eventually(t, "an entry of its own", func() bool { return n.raft.CommitIndex() > before })
		}
		closed := make(chan error, 1)
		go func() { closed <- n.Close() }()
		eventually(t, "raft is told to end", func() bool { return n.raft.State() == raft.Shutdown })
		h.EndApply()
		select {
		case err := <-closed:
			if err != nil {
				t.Fatal(err)
			}
		case <-time.After(time.Minute):
			t.Fatal("the server does not close")
		}
		e.nodes[0].Node = nil
		e.mustStart(0)
	}
}
