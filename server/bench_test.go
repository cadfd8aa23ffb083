package server

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/watch"
	"github.com/zk-lite/zk-lite/znode"
)

// deaf is a Client that throws everything away.
type deaf struct{}

func (deaf) Notify(*watch.Notification) {}
func (deaf) Disconnect(Reason)          {}
func (deaf) Address() string            { return "" }

// benchOp reads a znode's data, or waits for a write.
type benchOp struct {
	path string
	size int
	left *sync.WaitGroup
}

func (o *benchOp) Weight(*View) int { return 0 }

func (o *benchOp) Read(v *View) {
	data, _, _ := v.Tree().Get(o.path, nil)
	o.size += len(data)
}

func (o *benchOp) Done(*View, *state.Result) { o.left.Done() }

func benchKit(b *testing.B) *kit {
	k := newKit(b, nil)
	data := make([]byte, 100)
	for i := range 1000 {
		k.log.from(1, &state.Command{
			Op: state.OpCreate, Path: fmt.Sprint("/n", i), Data: data, ACL: znode.OpenACL,
		})
	}
	b.ReportAllocs()
	b.ResetTimer()
	return k
}

// BenchmarkConn_Read is a read in place, on as many connections as there are
// processors, and with a writer beside them.
func BenchmarkConn_Read(b *testing.B) {
	for _, writing := range []bool{false, true} {
		b.Run(fmt.Sprintf("writer=%v", writing), func(b *testing.B) {
			k := benchKit(b)
			var stop atomic.Bool
			var writer sync.WaitGroup
			if writing {
				writer.Go(func() {
					for !stop.Load() {
						k.log.from(1, &state.Command{Op: state.OpSetData, Path: "/n0", Version: -1})
					}
				})
			}
			b.RunParallel(func(pb *testing.PB) {
				c := k.srv.NewConn(deaf{}, nil)
				defer c.Close("")
				o := &benchOp{path: "/n7"}
				for pb.Next() {
					if err := c.Read(o); err != nil {
						b.Error(err)
					}
				}
			})
			stop.Store(true)
			writer.Wait()
		})
	}
}

// BenchmarkConn_Write measures a write from the call to its answer, without raft: the queue, the encoding, the state
// machine and the delivery. The writes of a hundred calls share an entry.
func BenchmarkConn_Write(b *testing.B) {
	k := benchKit(b)
	c := k.srv.NewConn(deaf{}, nil)
	defer c.Close("")
	data := make([]byte, 100)
	var left sync.WaitGroup
	o := &benchOp{left: &left}
	for i := range b.N {
		left.Add(1)
		cmd := &state.Command{Op: state.OpSetData, Path: "/n7", Data: data, Version: -1}
		if err := c.Write(cmd, o); err != nil {
			b.Fatal(err)
		}
		if i%100 == 99 {
			k.log.drain()
		}
	}
	k.log.drain()
	left.Wait()
}

// BenchmarkServer_Watch measures a change of a znode with a thousand persistent watches.
func BenchmarkServer_Watch(b *testing.B) {
	k := benchKit(b)
	for range 1000 {
		c := k.srv.NewConn(deaf{}, nil)
		defer c.Close("")
		if err := k.srv.watches.Add(c.Watcher(), "/n7", watch.Persistent); err != nil {
			b.Fatal(err)
		}
	}
	b.ResetTimer()
	for range b.N {
		k.log.from(1, &state.Command{Op: state.OpSetData, Path: "/n7", Version: -1})
	}
}
