package wire

import (
	"testing"

	"github.com/zk-lite/zk-lite/internal/jute"
	"github.com/zk-lite/zk-lite/znode"
)

const benchPath = "/services/search/member-0000000042"

func benchData() []byte { return make([]byte, 100) }

// hotPaths lists the work of a server for each request, with the number of allocations that each may cost: one, for the
// path, where a path is decoded.
func hotPaths() []struct {
	name   string
	allocs float64
	run    func()
} {
	getData := (&GetDataRequest{Path: benchPath}).Append(nil)
	setData := (&SetDataRequest{Path: benchPath, Data: benchData()}).Append(nil)
	create := (&CreateRequest{Path: benchPath, Data: benchData(), ACL: znode.OpenACL}).Append(nil)
	stat := AppendStat(nil, &goldenStat)
	data := benchData()
	out := make([]byte, 0, 1<<10)
	return []struct {
		name   string
		allocs float64
		run    func()
	}{
		{"DecodeRequestHeader", 0, func() {
			var h RequestHeader
			h.Decode(jute.NewReader(getData))
		}},
		{"DecodeGetDataRequest", 1, func() {
			var req GetDataRequest
			req.Decode(jute.NewReader(getData))
		}},
		{"DecodeSetDataRequest", 1, func() {
			var req SetDataRequest
			req.Decode(jute.NewReader(setData))
		}},
		{"DecodeCreateRequest", 1, func() {
			var req CreateRequest
			req.Decode(jute.NewReader(create))
		}},
		{"DecodeStat", 0, func() {
			var s znode.Stat
			DecodeStat(jute.NewReader(stat), &s)
		}},
		{"AppendGetDataReply", 0, func() {
			b, mark := BeginFrame(out[:0])
			h := ReplyHeader{Xid: 1, Zxid: 2}
			resp := GetDataResponse{Data: data, Stat: goldenStat}
			b = resp.Append(h.Append(b))
			EndFrame(b, mark)
		}},
		{"AppendSetDataReply", 0, func() {
			b, mark := BeginFrame(out[:0])
			h := ReplyHeader{Xid: 1, Zxid: 2}
			resp := SetDataResponse{Stat: goldenStat}
			b = resp.Append(h.Append(b))
			EndFrame(b, mark)
		}},
		{"AppendCreateReply", 0, func() {
			b, mark := BeginFrame(out[:0])
			h := ReplyHeader{Xid: 1, Zxid: 2}
			resp := CreateResponse{Path: benchPath}
			b = resp.Append(h.Append(b))
			EndFrame(b, mark)
		}},
		{"AppendStat", 0, func() { AppendStat(out[:0], &goldenStat) }},
	}
}

func TestHotPaths_Allocations(t *testing.T) {
	for _, p := range hotPaths() {
		if got := testing.AllocsPerRun(100, p.run); got != p.allocs {
			t.Errorf("%s: %v allocations, want %v", p.name, got, p.allocs)
		}
	}
}

func BenchmarkHotPath(b *testing.B) {
	for _, p := range hotPaths() {
		b.Run(p.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				p.run()
			}
		})
	}
}
