package wire

import (
	"github.com/zk-lite/zk-lite/internal/jute"
	"github.com/zk-lite/zk-lite/znode"
)

// SetDataRequest is the body of setData.
type SetDataRequest struct {
	Path    string
	Data    []byte        // nil is null
	Version znode.Version // expected; znode.AnyVersion matches all
}

func (*SetDataRequest) isRequest() {}

// Append appends the record to b.
func (s *SetDataRequest) Append(b []byte) []byte {
	b = jute.AppendUstring(b, s.Path)
	b = jute.AppendBuffer(b, s.Data)
	return jute.AppendInt32(b, int32(s.Version))
}

// Decode reads the record.
func (s *SetDataRequest) Decode(r *jute.Reader) {
	s.Path = r.Ustring()
	s.Data = r.Buffer()
	s.Version = znode.Version(r.Int32())
}

// SetDataResponse is the reply to setData.
type SetDataResponse struct {
	Stat znode.Stat
}

func (*SetDataResponse) isResponse() {}

// Append appends the record to b.
func (s *SetDataResponse) Append(b []byte) []byte { return AppendStat(b, &s.Stat) }

// Decode reads the record.
func (s *SetDataResponse) Decode(r *jute.Reader) { DecodeStat(r, &s.Stat) }
