package zk

import (
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/internal/jute"
	"github.com/zk-lite/zk-lite/internal/wire"
	"github.com/zk-lite/zk-lite/server"
	"github.com/zk-lite/zk-lite/watch"
	"github.com/zk-lite/zk-lite/znode"
)

// The stages of a request in this package, each alone. The later ones are in packages server (order), consensus
// (propose), consensus/state (apply) and watch.

// nowhere is a connection that accepts everything at once and repeats chunk forever.
type nowhere struct {
	net.Conn
	chunk []byte
}

func (nowhere) Write(b []byte) (int, error)      { return len(b), nil }
func (x nowhere) Read(b []byte) (int, error)     { return copy(b, x.chunk), nil }
func (nowhere) SetReadDeadline(time.Time) error  { return nil }
func (nowhere) SetWriteDeadline(time.Time) error { return nil }
func (nowhere) RemoteAddr() net.Addr             { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }

func stageConn(chunk []byte) *conn {
	return newConn(New(server.New(server.Config{ID: 1, Tick: time.Second}), Config{}), nowhere{chunk: chunk})
}

var stageRequests = []struct {
	op   wire.OpCode
	body wire.Request
}{
	{wire.OpPing, nil},
	{wire.OpGetData, &wire.GetDataRequest{Path: "/bench/znode"}},
	{wire.OpSetData, &wire.SetDataRequest{Path: "/bench/znode", Data: make([]byte, 100), Version: -1}},
	{wire.OpCreate, &wire.CreateRequest{Path: "/bench/znode", Data: make([]byte, 100), ACL: znode.OpenACL}},
}

// BenchmarkStage_Frame reads frames from a connection that always has 64 of them.
func BenchmarkStage_Frame(b *testing.B) {
	one := wire.AppendRequest(nil, wire.RequestHeader{Xid: 1, Type: wire.OpGetData},
		&wire.GetDataRequest{Path: "/bench/znode"})
	var chunk []byte
	for range 64 {
		chunk = append(chunk, one...)
	}
	c := stageConn(chunk)
	b.ReportAllocs()
	for b.Loop() {
		frame, err := c.in.frame()
		if frame == nil {
			c.in.discard() // the rest is cut by the buffer's end
			err = c.in.fill()
		}
		if err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkStage_Decode decodes a request's header and body.
func BenchmarkStage_Decode(b *testing.B) {
	for _, q := range stageRequests {
		b.Run(q.op.String(), func(b *testing.B) {
			frame := wire.AppendRequest(nil, wire.RequestHeader{Xid: 1, Type: q.op}, q.body)
			payload := frame[wire.FrameLengthBytes:]
			var rd jute.Reader
			var r request
			b.ReportAllocs()
			for b.Loop() {
				var h wire.RequestHeader
				rd.Reset(payload)
				h.Decode(&rd)
				r.op, r.xid = h.Type, h.Xid
				if !r.decode(&rd) {
					b.Fatal("not decoded")
				}
			}
		})
	}
}

// BenchmarkStage_Encode puts the reply to a get into the outbox.
func BenchmarkStage_Encode(b *testing.B) {
	c := stageConn(nil)
	data, stat := make([]byte, 100), znode.Stat{DataLength: 100}
	r := new(request)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		r.c, r.op, r.xid, r.quiet = c, wire.OpGetData, wire.Xid(i), true
		c.pending.Store(1)
		x := wire.GetDataResponse{Data: data, Stat: stat}
		r.replyLong(7, znode.OK, len(data)+wire.StatBytes, x.Append)
		if i%64 == 63 {
			c.out.flush()
		}
	}
}

// BenchmarkStage_Get executes a get: from its frame to the reply in the outbox.
func BenchmarkStage_Get(b *testing.B) {
	srv := server.New(server.Config{ID: 1, Tick: time.Second})
	c := newConn(New(srv, Config{}), nowhere{})
	c.sc.Store(srv.NewConn(c, c.identities()))
	frame := wire.AppendRequest(nil, wire.RequestHeader{Xid: 1, Type: wire.OpGetData},
		&wire.GetDataRequest{Path: "/zookeeper"})[wire.FrameLengthBytes:]
	var r *request
	read := func(v *server.View) { r.Read(v) }
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		c.rd.Reset(frame)
		var h wire.RequestHeader
		h.Decode(&c.rd)
		if r = c.newRequest(h, len(frame)); !r.decode(&c.rd) {
			b.Fatal("not decoded")
		}
		srv.View(read)
		if i%64 == 63 {
			c.out.flush()
		}
	}
}

// BenchmarkStage_Flush is a message's way through the outbox, 1 and 64 to a write.
func BenchmarkStage_Flush(b *testing.B) {
	message := make([]byte, 88) // the reply to a set
	for _, n := range []int{1, 64} {
		b.Run(fmt.Sprintf("together=%d", n), func(b *testing.B) {
			c := stageConn(nil)
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				buf, ok := c.out.begin()
				if !ok {
					b.Fatal("the outbox has ended")
				}
				c.out.commit(append(buf, message...), false)
				if i%n == n-1 {
					c.out.flush()
				}
			}
		})
	}
}

// BenchmarkStage_Notify puts an event that others get as well into the outbox.
func BenchmarkStage_Notify(b *testing.B) {
	c := stageConn(nil)
	c.out.writing = true // only the benchmark writes
	n := &watch.Notification{Zxid: 7, Type: znode.EventDataChanged, Path: "/bench/znode"}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		c.Notify(n)
		if i%64 == 63 {
			c.out.write()
			c.out.writing = true
		}
	}
}

// BenchmarkStage_Fanout is one change of a znode that so many connections watch, from one watch that fires to the next.
// As long as Trigger takes, which is apply-ns, no other write is applied. The whole includes a writer for each, and
// setting the watch again.
func BenchmarkStage_Fanout(b *testing.B) {
	for _, mode := range []watch.Mode{watch.Data, watch.Persistent} {
		for _, watchers := range []int{1, 1000, 100_000} {
			b.Run(fmt.Sprintf("%s/watchers=%d", mode, watchers), func(b *testing.B) {
				srv := server.New(server.Config{ID: 1, Tick: time.Second})
				front, m, ws := New(srv, Config{}), watch.New(watch.Fanout(0)), make([]*watch.Watcher, watchers)
				for i := range ws {
					c := newConn(front, nowhere{})
					c.sc.Store(srv.NewConn(c, c.identities()))
					ws[i] = m.NewWatcher(c.sc.Load())
				}
				apply := time.Duration(0)
				for b.Loop() {
					for _, w := range ws {
						w.CatchUp()
						if err := m.Add(w, "/bench/znode", mode); err != nil {
							b.Fatal(err)
						}
					}
					at := time.Now()
					m.Trigger(&znode.Event{
						Type: znode.EventDataChanged, Path: "/bench/znode", Zxid: 7, ACL: znode.OpenACL,
					})
					apply += time.Since(at)
				}
				b.ReportMetric(float64(apply.Nanoseconds())/float64(b.N), "apply-ns/op")
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*watchers), "ns/watcher")
			})
		}
	}
}
