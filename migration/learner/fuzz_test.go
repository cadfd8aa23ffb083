package learner

import (
	"bytes"
	"context"
	"net"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/migration/replica"
	"github.com/zk-lite/zk-lite/znode"
)

// playback is a connection from which the learner reads the given bytes, and which takes all that it writes.
type playback struct {
	net.Conn // nil: what the learner must not use
	bytes.Reader
}

func (c *playback) Read(b []byte) (int, error)       { return c.Reader.Read(b) }
func (c *playback) Write(b []byte) (int, error)      { return len(b), nil }
func (c *playback) Close() error                     { return nil }
func (c *playback) SetReadDeadline(time.Time) error  { return nil }
func (c *playback) SetWriteDeadline(time.Time) error { return nil }

// FuzzFollow: whatever a leader sends, Follow ends with an error; never before UPTODATE does it call the handler, and
// it hands transactions on in order.
func FuzzFollow(f *testing.F) {
	for _, from := range []Position{{}, {Zxid: at(1)}} {
		var sent []byte
		h := newHistory()
		s := &scripted{Conn: &tee{discard{}, &sent}, got: make(chan packet, 100)}
		for _, kind := range []packetType{observerInfo, ackEpoch, ack, ack, ping} {
			s.got <- packet{kind: kind}
		}
		speak(s, h, from)
		f.Add(sent, int64(from.Zxid))
		for cut := 20; cut < len(sent); cut += 50 {
			f.Add(sent[:cut], int64(from.Zxid))
		}
	}
	f.Fuzz(func(t *testing.T, sent []byte, from int64) {
		r := &ordered{t: t}
		l := New(Config{
			Servers: []string{"a:2888"}, ID: 200, MaxPacket: 1 << 16, MaxQueue: 1 << 20, MaxSnapshot: 1 << 20,
			Dial: func(context.Context, string) (net.Conn, error) {
				c := &playback{}
				c.Reset(sent)
				return c, nil
			},
		})
		if err := l.Follow(t.Context(), Position{Zxid: znode.Zxid(from)}, r); err == nil {
			t.Error("Follow = nil, want an error")
		}
	})
}

// discard is a connection that takes all that is written.
type discard struct{ net.Conn }

func (discard) Write(b []byte) (int, error) { return len(b), nil }

// ordered is a Handler that checks the order of its calls.
type ordered struct {
	t    *testing.T
	led  bool
	last znode.Zxid
}

func (o *ordered) Leader(Leader) error {
	if o.led {
		o.t.Error("Leader was called twice")
	}
	o.led = true
	return nil
}

func (o *ordered) Snapshot(state *replica.Replica) error {
	if !o.led || o.last != 0 || len(state.Unresolved()) > 0 {
		o.t.Errorf("Snapshot of %v was called, after Leader: %v, after %v, without %v", state.Zxid, o.led, o.last,
			state.Unresolved())
	}
	o.last = state.Zxid
	return nil
}

func (o *ordered) Transaction(raw []byte, t *replica.Txn) error {
	if !o.led || t.Zxid <= o.last {
		o.t.Errorf("Transaction %v was called, after Leader: %v, after %v", t.Zxid, o.led, o.last)
	}
	o.last = t.Zxid
	return nil
}

func (o *ordered) Revalidated(znode.SessionID, bool) error { return nil }
func (o *ordered) Synced() error                           { return nil }
