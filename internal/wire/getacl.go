package wire

import (
	"github.com/zk-lite/zk-lite/internal/jute"
	"github.com/zk-lite/zk-lite/znode"
)

// GetACLRequest is the body of getACL.
type GetACLRequest struct {
	Path string
}

func (*GetACLRequest) isRequest() {}

// Append appends the record to b.
func (g *GetACLRequest) Append(b []byte) []byte { return jute.AppendUstring(b, g.Path) }

// Decode reads the record.
func (g *GetACLRequest) Decode(r *jute.Reader) { g.Path = r.Ustring() }

// GetACLResponse is the reply to getACL.
type GetACLResponse struct {
	ACL  []znode.ACL // nil is null
	Stat znode.Stat
}

func (*GetACLResponse) isResponse() {}

// Append appends the record to b.
func (g *GetACLResponse) Append(b []byte) []byte {
	return AppendStat(AppendACLs(b, g.ACL), &g.Stat)
}

// Decode reads the record.
func (g *GetACLResponse) Decode(r *jute.Reader) {
	g.ACL = DecodeACLs(r)
	DecodeStat(r, &g.Stat)
}
