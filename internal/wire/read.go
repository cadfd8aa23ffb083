package wire

import (
	"github.com/zk-lite/zk-lite/internal/jute"
	"github.com/zk-lite/zk-lite/znode"
)

// GetDataRequest is the body of getData.
type GetDataRequest struct {
	Path  string
	Watch bool // also leave a watch, if the call succeeds
}

func (*GetDataRequest) isRequest() {}

// Append appends the record to b.
func (g *GetDataRequest) Append(b []byte) []byte {
	return jute.AppendBool(jute.AppendUstring(b, g.Path), g.Watch)
}

// Decode reads the record.
func (g *GetDataRequest) Decode(r *jute.Reader) {
	g.Path = r.Ustring()
	g.Watch = r.Bool()
}

// GetDataResponse is the reply to getData.
type GetDataResponse struct {
	Data []byte // nil is null
	Stat znode.Stat
}

func (*GetDataResponse) isResponse() {}

// Append appends the record to b.
func (g *GetDataResponse) Append(b []byte) []byte {
	return AppendStat(jute.AppendBuffer(b, g.Data), &g.Stat)
}

// Decode reads the record.
func (g *GetDataResponse) Decode(r *jute.Reader) {
	g.Data = r.Buffer()
	DecodeStat(r, &g.Stat)
}
