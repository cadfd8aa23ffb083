package forward

import (
	"bufio"
	"bytes"
	"fmt"
	"testing"

	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/znode"
)

// benchBatches are how many commands go together: one alone, as on a quiet server,
// and a hundred, as on a busy one.
var benchBatches = []int{1, 100}

func benchCommand() *state.Command {
	return &state.Command{
		Op: state.OpSetData, Path: "/bench/znode", Data: make([]byte, 100), Version: znode.AnyVersion,
		Session: 0x100000000000001, Identities: []znode.ID{{Scheme: "ip", ID: "127.0.0.1"}},
	}
}

// BenchmarkQueue is a command's way through its own server: numbered and
// encoded, sent with others, and its waiter found when it was applied.
func BenchmarkQueue(b *testing.B) {
	for _, n := range benchBatches {
		b.Run(fmt.Sprintf("batch=%d", n), func(b *testing.B) {
			f := NewQueue(state.Origin{Server: 1, Incarnation: 1}, 1<<20, 1<<30)
			c, w := benchCommand(), &note{}
			var buf []byte
			seq := uint64(0)
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if err := f.Add(c, w, From{}); err != nil {
					b.Fatal(err)
				}
				if i%n != n-1 {
					continue
				}
				g := f.take(buf[:0])
				buf = g.Commands
				for range g.Count {
					seq++
					if _, ok := f.Applied(seq); !ok {
						b.Fatal("a result without a waiter")
					}
				}
			}
		})
	}
}

// BenchmarkStream is the stream to the leader: a batch's frame made, read and
// checked. The figures are for a command.
func BenchmarkStream(b *testing.B) {
	for _, n := range benchBatches {
		b.Run(fmt.Sprintf("batch=%d", n), func(b *testing.B) {
			g := state.Batch{Origin: state.Origin{Server: 1, Incarnation: 1}, First: 1, Count: n}
			for range n {
				g.Commands = state.AppendCommand(g.Commands, benchCommand())
			}
			var buf []byte
			wire := bytes.NewReader(nil)
			in := bufio.NewReaderSize(wire, 64<<10)
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if i%n != 0 {
					continue
				}
				buf = finishBatch(append(appendBatchHeader(buf[:0]), g.Commands...), &g)
				wire.Reset(buf)
				in.Reset(wire)
				_, body, err := readFrame(in)
				if err == nil {
					_, err = parseBatch(body, 1)
				}
				if err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkBatcher_Entry is the leader's part without raft: batches gathered and
// encoded as one entry. The figures are for a command.
func BenchmarkBatcher_Entry(b *testing.B) {
	for _, n := range benchBatches {
		b.Run(fmt.Sprintf("batch=%d", n), func(b *testing.B) {
			ctx := b.Context()
			g := state.Batch{Origin: state.Origin{Server: 1, Incarnation: 1}, First: 1, Count: n}
			r := newTestBatcher(ctx)
			for range n {
				g.Commands = state.AppendCommand(g.Commands, benchCommand())
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if i%n == 0 && !r.submit(g) {
					b.Fatal("the batcher has ended")
				}
				if i%n == n-1 {
					r.encode(r.take())
				}
			}
		})
	}
}
