package learner

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zk-lite/zk-lite/internal/jute"
	"github.com/zk-lite/zk-lite/internal/testkit/clock"
	"github.com/zk-lite/zk-lite/internal/testkit/pipenet"
	"github.com/zk-lite/zk-lite/migration/replica"
	"github.com/zk-lite/zk-lite/session"
	"github.com/zk-lite/zk-lite/znode"
)

// at is the zxid with this counter in epoch 5, which is that of the tests' leader.
func at(counter int64) znode.Zxid { return znode.Zxid(5<<32 | counter) }

// history is the state of an ensemble, and its transactions with their digests.
type history struct {
	state   *replica.Replica
	x       znode.Txn
	raw     map[znode.Zxid][]byte
	creates map[string]int32 // by the parent
}

func newHistory() *history {
	return &history{
		state: replica.New(znode.NewTree(), session.NewTable(), 0), raw: map[znode.Zxid][]byte{},
		creates: map[string]int32{},
	}
}

func header(session, zxid znode.Zxid, op replica.Op) []byte {
	b := jute.AppendInt32(jute.AppendInt64(nil, int64(session)), 7)
	return jute.AppendInt32(jute.AppendInt64(jute.AppendInt64(b, int64(zxid)), 1000), int32(op))
}

// create makes a transaction that creates a znode. It has the digest of the state after it.
func (h *history) create(zxid znode.Zxid, path string) []byte {
	b := jute.AppendBuffer(jute.AppendUstring(header(9, zxid, replica.OpCreate), path), []byte("data"))
	b = jute.AppendInt32(jute.AppendInt32(b, 1), 31)
	b = jute.AppendUstring(jute.AppendUstring(b, "world"), "anyone")
	parent := path[:strings.LastIndex(path, "/")+1]
	h.creates[parent]++
	return h.commit(jute.AppendInt32(jute.AppendBool(b, false), h.creates[parent]+10))
}

// remove makes one that deletes a znode.
func (h *history) remove(zxid znode.Zxid, path string) []byte {
	return h.commit(jute.AppendUstring(header(9, zxid, replica.OpDelete), path))
}

func (h *history) commit(b []byte) []byte {
	t, err := replica.ParseTxn(b)
	if err == nil {
		err = h.state.Apply(&h.x, t, false)
	}
	if err != nil {
		panic(err)
	}
	b = jute.AppendInt64(jute.AppendInt32(b, 2), int64(h.state.Digest()))
	h.raw[t.Zxid] = b
	return b
}

// stream is a snapshot of the present state, as a leader sends it after SNAP.
func (h *history) stream() []byte {
	var b bytes.Buffer
	if err := h.state.Write(&b); err != nil {
		panic(err)
	}
	return jute.AppendUstring(b.Bytes(), signature)
}

// scripted is a leader's end of a connection. A goroutine reads all that the learner sends.
type scripted struct {
	net.Conn
	got chan packet // closed at the end of the connection
}

func newScripted(c net.Conn) *scripted {
	s := &scripted{Conn: c, got: make(chan packet, 1000)}
	go func() {
		defer close(s.got)
		in := jute.NewStream(c, 1<<20)
		for {
			p := packet{kind: packetType(in.Int32()), zxid: znode.Zxid(in.Int64()), data: in.Buffer()}
			for n := in.VectorLen(); n > 0; n-- {
				p.ids = append(p.ids, znode.ID{Scheme: in.Ustring(), ID: in.Ustring()})
			}
			if in.Err() != nil {
				return
			}
			s.got <- p
		}
	}()
	return s
}

// errScript ends a script whose learner does something else.
var errScript = errors.New("not as in the script")

// expect returns the learner's next packet, which has this type; it panics with errScript, which ends the script.
func (s *scripted) expect(kind packetType) packet {
	p, open := <-s.got
	if !open || p.kind != kind {
		panic(fmt.Errorf("%w: got %v, want %v; the connection is open: %v", errScript, p.kind, kind, open))
	}
	return p
}

func (s *scripted) send(kind packetType, zxid znode.Zxid, data []byte) {
	p := packet{kind: kind, zxid: zxid, data: data}
	s.write(append(p.append(nil)[:len(p.append(nil))-4], 0xff, 0xff, 0xff, 0xff)) // a null vector, as Java writes it
}

func (s *scripted) write(b []byte) {
	if _, err := s.Write(b); err != nil {
		panic(fmt.Errorf("%w: %w", errScript, err))
	}
}

// discover speaks up to ACKEPOCH, and returns it.
func (s *scripted) discover() packet {
	s.expect(observerInfo)
	s.send(leaderInfo, at(0), []byte{0, 1, 0, 0})
	return s.expect(ackEpoch)
}

func (s *scripted) inform(raw []byte) { s.send(inform, zxidOf(raw), raw) }

func (s *scripted) propose(raw []byte) {
	s.send(proposal, zxidOf(raw), raw)
	s.send(commit, zxidOf(raw), nil)
}

func zxidOf(raw []byte) znode.Zxid {
	r := jute.NewReader(raw[12:])
	return znode.Zxid(r.Int64())
}

const configText = "server.1=a:2888:3888:participant;a:2181\nserver.2=b:2888:3888:participant;b:2181\nversion=100000000"

// finish speaks NEWLEADER and UPTODATE.
func (s *scripted) finish() {
	s.send(newLeader, at(0), []byte(configText))
	s.expect(ack)
	s.send(upToDate, -1, nil)
	s.expect(ack)
}

// recorder is a Handler that holds the state, and notes its calls as text.
type recorder struct {
	calls    []string
	position Position
	state    *replica.Replica
	x        znode.Txn
	wrong    int           // digests that differ
	fail     error         // what Transaction returns
	block    chan struct{} // closed when Transaction may return; nil: at once
	leader   Leader
}

func (r *recorder) note(format string, args ...any) {
	r.calls = append(r.calls, fmt.Sprintf(format, args...))
}

func (r *recorder) Leader(l Leader) error {
	r.leader, r.position.Epoch = l, l.Epoch
	r.note("leader %s", l.Sync)
	return nil
}

func (r *recorder) Snapshot(state *replica.Replica) error {
	r.state, r.position.Zxid = state, state.Zxid
	r.note("snapshot %v", state.Zxid)
	return nil
}

func (r *recorder) Transaction(raw []byte, t *replica.Txn) error {
	if r.block != nil {
		<-r.block
	}
	if r.fail != nil {
		return r.fail
	}
	if r.state != nil {
		if err := r.state.Apply(&r.x, t, false); err != nil {
			return err
		}
		if !r.state.Fits(t) {
			r.wrong++
		}
	}
	if again, err := replica.ParseTxn(raw); err != nil || again.Zxid != t.Zxid {
		return fmt.Errorf("raw does not parse as the transaction: %v", err)
	}
	r.position.Zxid = t.Zxid
	r.note("%v", t.Zxid)
	return nil
}

func (r *recorder) Revalidated(id znode.SessionID, valid bool) error {
	r.note("revalidated %v %v", id, valid)
	return nil
}

func (r *recorder) Synced() error {
	r.note("synced")
	return nil
}

func (r *recorder) want(t *testing.T, calls ...string) {
	t.Helper()
	if !slices.Equal(r.calls, calls) {
		t.Errorf("got the calls\n\t%s\nwant\n\t%s", strings.Join(r.calls, "\n\t"), strings.Join(calls, "\n\t"))
	}
	if r.wrong > 0 {
		t.Errorf("got %d digests that differ, want none", r.wrong)
	}
}

// play has a learner follow a scripted leader, in virtual time, until Follow returns. After the script the leader ends
// the connection. It fails the test if the learner does not as the script expects.
func play(t *testing.T, cfg Config, from Position, h Handler, script func(s *scripted)) (err error) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		network := pipenet.New()
		host := network.Listen("a:2888")
		defer host.Close()
		cfg.Servers, cfg.Dial = []string{"a:2888"}, network.Dialer("learner")
		if cfg.ID == 0 {
			cfg.ID = 200
		}
		ended := make(chan any, 1)
		go func() {
			c, err := host.Accept()
			if err != nil {
				ended <- err
				return
			}
			s := newScripted(c)
			defer func() {
				ended <- recover()
				c.Close()
				for range s.got {
				}
			}()
			script(s)
		}()
		err = New(cfg).Follow(t.Context(), from, h)
		if failure := <-ended; failure != nil {
			t.Errorf("the script ended: %v; Follow: %v", failure, err)
		}
	})
	return err
}

// wantError fails the test unless err is one of the wanted.
func wantError(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("Follow = %v\nwant %v", err, want)
	}
}

// silent keeps the connection open and sends nothing, until the learner ends it.
func (s *scripted) silent() {
	for range s.got {
	}
}

// tee keeps what is written.
type tee struct {
	net.Conn
	sent *[]byte
}

func (c *tee) Write(b []byte) (int, error) {
	*c.sent = append(*c.sent, b...)
	return c.Conn.Write(b)
}

// slow is a connection whose writes take a tenth of a second.
type slow struct{ net.Conn }

func (c slow) Write(b []byte) (int, error) {
	clock.Sleep(time.Second / 10)
	return c.Conn.Write(b)
}
