package learner

import (
	"context"
	"net"
	"testing"

	"github.com/zk-lite/zk-lite/internal/jute"
	"github.com/zk-lite/zk-lite/migration/replica"
	"github.com/zk-lite/zk-lite/znode"
)

// BenchmarkFollow is the work for one transaction of 100 bytes of data: read, checked, queued, parsed.
func BenchmarkFollow(b *testing.B) {
	const batch = 10000
	var sent []byte
	s := &scripted{Conn: &tee{discard{}, &sent}, got: make(chan packet, 4)}
	for _, kind := range []packetType{observerInfo, ackEpoch, ack, ack} {
		s.got <- packet{kind: kind}
	}
	s.discover()
	s.send(diff, at(0), nil)
	s.finish()
	for i := range int64(batch) {
		s.inform(setData(at(1+i), "/a/path/of/some/length", make([]byte, 100)))
	}
	b.SetBytes(int64(len(sent) / batch))
	b.ReportAllocs()
	for done := 0; done < b.N; done += batch {
		l := New(Config{Servers: []string{"a:2888"}, ID: 200, Dial: func(context.Context, string) (net.Conn, error) {
			c := &playback{}
			c.Reset(sent)
			return c, nil
		}})
		h := &counter{}
		if _ = l.Follow(b.Context(), Position{Zxid: at(0)}, h); h.n != batch {
			b.Fatalf("%d transactions, want %d", h.n, batch)
		}
	}
}

func setData(zxid znode.Zxid, path string, data []byte) []byte {
	b := jute.AppendBuffer(jute.AppendUstring(header(9, zxid, replica.OpSetData), path), data)
	return jute.AppendInt32(b, 1)
}

// counter is a Handler that counts.
type counter struct{ n int }

func (c *counter) Leader(Leader) error                     { return nil }
func (c *counter) Snapshot(*replica.Replica) error         { return nil }
func (c *counter) Transaction([]byte, *replica.Txn) error  { c.n++; return nil }
func (c *counter) Revalidated(znode.SessionID, bool) error { return nil }
func (c *counter) Synced() error                           { return nil }
