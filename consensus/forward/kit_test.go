package forward

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/consensus/leadership"
	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/session"
	"github.com/zk-lite/zk-lite/znode"
)

func create(path string) *state.Command {
	return &state.Command{Op: state.OpCreate, Path: path, Data: []byte("x"), ACL: znode.OpenACL}
}

// discard is an Observer that does nothing.
type discard struct{}

func (discard) Event(*znode.Event)                               {}
func (discard) SessionOpened(*session.Session)                   {}
func (discard) SessionAttached(*session.Session, state.ServerID) {}
func (discard) SessionClosed(*session.Session, []string, bool)   {}
func (discard) QuotaExceeded(string)                             {}
func (discard) Relayed(uint64, *state.Result)                    {}
func (discard) Result(state.Origin, uint64, *state.Result)       {}
func (discard) Gap(state.Origin, uint64)                         {}

// testNode is the Forwarder of server 1 in a bubble. The test plays the other servers.
type testNode struct {
	*Forwarder
	t          *testing.T
	leadership *leadership.Publisher
	leads      atomic.Bool
	dialled    chan *peer
	incoming   chan *peer
	touched    chan []znode.SessionID
}

// newTestNode returns a testNode that dials no server before Run.
func newTestNode(t *testing.T) *testNode {
	n := &testNode{
		t: t, leadership: leadership.New(),
		dialled: make(chan *peer, 100), incoming: make(chan *peer), touched: make(chan []znode.SessionID, 100),
	}
	n.Forwarder = New(Config{
		Self: 1, ElectionTimeout: time.Second, Logger: slog.New(slog.DiscardHandler),
		Queue:   NewQueue(state.Origin{Server: 1, Incarnation: 1}, 1<<20, 1<<30),
		Streams: &Streams{}, Leadership: n.leadership, Ensemble: testEnsemble{n}, Network: testNetwork{n},
		Touched: func(_ state.ServerID, ids []znode.SessionID) { n.touched <- ids },
		Tasks:   &sync.WaitGroup{},
	})
	go n.Accept()
	t.Cleanup(func() { close(n.incoming) })
	return n
}

// testEnsemble is an ensemble in which servers 1 and 2 vote.
type testEnsemble struct{ *testNode }

func (e testEnsemble) Leads() bool { return e.leads.Load() }
func (e testEnsemble) Voters() map[state.ServerID]bool {
	return map[state.ServerID]bool{1: true, 2: true}
}

// testNetwork has the test take and open the streams.
type testNetwork struct{ *testNode }

func (n testNetwork) Dial(_ context.Context, to state.ServerID) (net.Conn, error) {
	here, there := net.Pipe()
	n.dialled <- newPeer(n.t, there, to)
	return here, nil
}

func (n testNetwork) Accept() (net.Conn, state.ServerID, error) {
	if p := <-n.incoming; p != nil {
		return p, p.id, nil
	}
	return nil, state.NoServer, net.ErrClosed
}

// publish announces a new leadership.
func (n *testNode) publish(leader state.ServerID) {
	n.leadership.Publish(leadership.State{Term: n.leadership.Now().Term + 1, Leader: leader})
}

// add adds commands; results come only from the test.
func (n *testNode) add(count int) {
	n.t.Helper()
	for range count {
		if err := n.queue.Add(create("/x"), &note{}, From{}); err != nil {
			n.t.Fatal(err)
		}
	}
}

// nextDial returns the stream that the node opens next, as the dialled server sees it.
func (n *testNode) nextDial(to state.ServerID) *peer {
	n.t.Helper()
	select {
	case p := <-n.dialled:
		if p.id != to {
			n.t.Fatalf("server %d was dialled, want %d", p.id, to)
		}
		return p
	case <-time.After(time.Minute):
		n.t.Fatalf("server %d was not dialled", to)
		return nil
	}
}

// nextStream is nextDial, and the server leads.
func (n *testNode) nextStream(to state.ServerID) *peer {
	n.t.Helper()
	p := n.nextDial(to)
	p.read(frameOpen)
	p.send(numberFrame(frameContact, 0))
	return p
}

// connect has a server connect to the node.
func (n *testNode) connect(from state.ServerID) *peer {
	here, there := net.Pipe()
	n.incoming <- newPeer(n.t, here, from)
	return newPeer(n.t, there, 1)
}

// numberFrame is a frame that holds one number.
func numberFrame(kind byte, v uint64) []byte { return endFrame(appendU64(beginFrame(nil, kind), v)) }

// peer is the end of a stream to the server id.
type peer struct {
	net.Conn
	t  *testing.T
	id state.ServerID
	in *bufio.Reader
}

func newPeer(t *testing.T, c net.Conn, id state.ServerID) *peer {
	t.Cleanup(func() { c.Close() })
	return &peer{c, t, id, bufio.NewReader(c)}
}

func (p *peer) next() (kind byte, body []byte, err error) {
	p.SetReadDeadline(time.Now().Add(time.Minute))
	return readFrame(p.in)
}

// read returns the body of the next frame of a type. Only touches may come before it.
func (p *peer) read(want byte) []byte {
	p.t.Helper()
	for {
		kind, body, err := p.next()
		if err == nil && kind == want {
			return body
		}
		if err != nil || kind != frameTouch {
			p.t.Fatalf("read a frame of type %d, %v; want type %d", kind, err, want)
		}
	}
}

func (p *peer) readBatch() state.Batch {
	p.t.Helper()
	b, err := parseBatch(p.read(frameBatch), 1)
	if err != nil {
		p.t.Fatal(err)
	}
	return b
}

func (p *peer) wantContact(stamp uint64) {
	p.t.Helper()
	if body := p.read(frameContact); binary.BigEndian.Uint64(body) != stamp {
		p.t.Errorf("contact % x, want %d", body, stamp)
	}
}

func (p *peer) send(frame []byte) {
	p.t.Helper()
	if err := writeFrame(p, frame); err != nil {
		p.t.Fatalf("server %d does not read: %v", p.id, err)
	}
}

// wantClosed fails the test unless the other side closes the stream and sends nothing before.
func (p *peer) wantClosed() {
	p.t.Helper()
	if kind, _, err := p.next(); !errors.Is(err, io.EOF) {
		p.t.Errorf("read a frame of type %d, %v; want the end of the stream", kind, err)
	}
}
