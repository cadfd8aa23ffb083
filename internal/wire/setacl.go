package wire

import (
	"github.com/zk-lite/zk-lite/internal/jute"
	"github.com/zk-lite/zk-lite/znode"
)

// SetACLRequest is the body of setACL.
type SetACLRequest struct {
	Path    string
	ACL     []znode.ACL   // nil is null
	Version znode.Version // expected aversion; znode.AnyVersion matches all
}

func (*SetACLRequest) isRequest() {}

// Append appends the record to b.
func (s *SetACLRequest) Append(b []byte) []byte {
	b = jute.AppendUstring(b, s.Path)
	b = AppendACLs(b, s.ACL)
	return jute.AppendInt32(b, int32(s.Version))
}

// Decode reads the record.
func (s *SetACLRequest) Decode(r *jute.Reader) {
	s.Path = r.Ustring()
	s.ACL = DecodeACLs(r)
	s.Version = znode.Version(r.Int32())
}

// SetACLResponse is the reply to setACL.
type SetACLResponse struct {
	Stat znode.Stat
}

func (*SetACLResponse) isResponse() {}

// Append appends the record to b.
func (s *SetACLResponse) Append(b []byte) []byte { return AppendStat(b, &s.Stat) }

// Decode reads the record.
func (s *SetACLResponse) Decode(r *jute.Reader) { DecodeStat(r, &s.Stat) }
