package wire

import (
	"github.com/zk-lite/zk-lite/internal/jute"
	"github.com/zk-lite/zk-lite/znode"
)

// ExistsRequest is the body of exists.
type ExistsRequest struct {
	Path  string
	Watch bool // also leave a watch, even if the znode is missing
}

func (*ExistsRequest) isRequest() {}

// Append appends the record to b.
func (e *ExistsRequest) Append(b []byte) []byte {
	return jute.AppendBool(jute.AppendUstring(b, e.Path), e.Watch)
}

// Decode reads the record.
func (e *ExistsRequest) Decode(r *jute.Reader) {
	e.Path = r.Ustring()
	e.Watch = r.Bool()
}

// ExistsResponse is the reply to exists.
type ExistsResponse struct {
	Stat znode.Stat
}

func (*ExistsResponse) isResponse() {}

// Append appends the record to b.
func (e *ExistsResponse) Append(b []byte) []byte { return AppendStat(b, &e.Stat) }

// Decode reads the record.
func (e *ExistsResponse) Decode(r *jute.Reader) { DecodeStat(r, &e.Stat) }
