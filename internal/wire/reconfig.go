package wire

import (
	"github.com/zk-lite/zk-lite/internal/jute"
	"github.com/zk-lite/zk-lite/znode"
)

// ReconfigRequest is the body of reconfig. The three lists are separated by
// commas; nil is null, which means something else than an empty list: with
// NewMembers the change is not incremental, without it, it is.
type ReconfigRequest struct {
	JoiningServers *string
	LeavingServers *string
	NewMembers     *string
	CurConfigID    int64 // expected version of the configuration; -1 matches all
}

func (*ReconfigRequest) isRequest() {}

// Append appends the record to b.
func (c *ReconfigRequest) Append(b []byte) []byte {
	b = jute.AppendNullableUstring(b, c.JoiningServers)
	b = jute.AppendNullableUstring(b, c.LeavingServers)
	b = jute.AppendNullableUstring(b, c.NewMembers)
	return jute.AppendInt64(b, c.CurConfigID)
}

// Decode reads the record.
func (c *ReconfigRequest) Decode(r *jute.Reader) {
	c.JoiningServers = r.NullableUstring()
	c.LeavingServers = r.NullableUstring()
	c.NewMembers = r.NullableUstring()
	c.CurConfigID = r.Int64()
}

// ReconfigResponse is the reply to reconfig: the znode of the configuration,
// laid out as the reply to getData is.
type ReconfigResponse struct {
	Data []byte // nil is null
	Stat znode.Stat
}

func (*ReconfigResponse) isResponse() {}

// Append appends the record to b.
func (c *ReconfigResponse) Append(b []byte) []byte {
	return AppendStat(jute.AppendBuffer(b, c.Data), &c.Stat)
}

// Decode reads the record.
func (c *ReconfigResponse) Decode(r *jute.Reader) {
	c.Data = r.Buffer()
	DecodeStat(r, &c.Stat)
}
