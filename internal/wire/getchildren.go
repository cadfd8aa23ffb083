package wire

import (
	"github.com/zk-lite/zk-lite/internal/jute"
	"github.com/zk-lite/zk-lite/znode"
)

// GetChildrenRequest is the body of getChildren and getChildren2.
type GetChildrenRequest struct {
	Path  string
	Watch bool // also leave a watch, if the call succeeds
}

func (*GetChildrenRequest) isRequest() {}

// Append appends the record to b.
func (g *GetChildrenRequest) Append(b []byte) []byte {
	return jute.AppendBool(jute.AppendUstring(b, g.Path), g.Watch)
}

// Decode reads the record.
func (g *GetChildrenRequest) Decode(r *jute.Reader) {
	g.Path = r.Ustring()
	g.Watch = r.Bool()
}

// GetChildrenResponse is the reply to getChildren.
type GetChildrenResponse struct {
	Children []string // names, not paths
}

func (*GetChildrenResponse) isResponse() {}

// Append appends the record to b.
func (g *GetChildrenResponse) Append(b []byte) []byte {
	return jute.AppendUstrings(b, g.Children)
}

// Decode reads the record.
func (g *GetChildrenResponse) Decode(r *jute.Reader) { g.Children = r.Ustrings() }

// GetChildren2Response is the reply to getChildren2.
type GetChildren2Response struct {
	Children []string // names, not paths
	Stat     znode.Stat
}

func (*GetChildren2Response) isResponse() {}

// Append appends the record to b.
func (g *GetChildren2Response) Append(b []byte) []byte {
	return AppendStat(jute.AppendUstrings(b, g.Children), &g.Stat)
}

// Decode reads the record.
func (g *GetChildren2Response) Decode(r *jute.Reader) {
	g.Children = r.Ustrings()
	DecodeStat(r, &g.Stat)
}
