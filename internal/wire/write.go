package wire

import (
	"github.com/zk-lite/zk-lite/internal/jute"
	"github.com/zk-lite/zk-lite/znode"
)

// CreateRequest is the body of create, create2 and createContainer, which
// differ in the opcode alone. createContainer makes a container whatever Mode
// says.
type CreateRequest struct {
	Path string
	Data []byte      // nil is null
	ACL  []znode.ACL // nil is null
	Mode znode.Mode  // as sent: the receiver checks it
}

func (*CreateRequest) isRequest() {}

// Append appends the record to b.
func (c *CreateRequest) Append(b []byte) []byte {
	b = jute.AppendUstring(b, c.Path)
	b = jute.AppendBuffer(b, c.Data)
	b = AppendACLs(b, c.ACL)
	return jute.AppendInt32(b, int32(c.Mode))
}

// Decode reads the record.
func (c *CreateRequest) Decode(r *jute.Reader) {
	c.Path = r.Ustring()
	c.Data = r.Buffer()
	c.ACL = DecodeACLs(r)
	c.Mode = znode.Mode(r.Int32())
}

// CreateTTLRequest is the body of createTTL.
type CreateTTLRequest struct {
	Path      string
	Data      []byte      // nil is null
	ACL       []znode.ACL // nil is null
	Mode      znode.Mode  // as sent: the receiver checks it
	TTLMillis int64       // time to live
}

func (*CreateTTLRequest) isRequest() {}

// Append appends the record to b.
func (c *CreateTTLRequest) Append(b []byte) []byte {
	b = jute.AppendUstring(b, c.Path)
	b = jute.AppendBuffer(b, c.Data)
	b = AppendACLs(b, c.ACL)
	b = jute.AppendInt32(b, int32(c.Mode))
	return jute.AppendInt64(b, c.TTLMillis)
}

// Decode reads the record.
func (c *CreateTTLRequest) Decode(r *jute.Reader) {
	c.Path = r.Ustring()
	c.Data = r.Buffer()
	c.ACL = DecodeACLs(r)
	c.Mode = znode.Mode(r.Int32())
	c.TTLMillis = r.Int64()
}

// CreateResponse is the reply to create.
type CreateResponse struct {
	Path string // final: with the sequence number, if any
}

func (*CreateResponse) isResponse() {}

// Append appends the record to b.
func (c *CreateResponse) Append(b []byte) []byte { return jute.AppendUstring(b, c.Path) }

// Decode reads the record.
func (c *CreateResponse) Decode(r *jute.Reader) { c.Path = r.Ustring() }

// Create2Response is the reply to create2, createContainer and createTTL.
type Create2Response struct {
	Path string // final: with the sequence number, if any
	Stat znode.Stat
}

func (*Create2Response) isResponse() {}

// Append appends the record to b.
func (c *Create2Response) Append(b []byte) []byte {
	return AppendStat(jute.AppendUstring(b, c.Path), &c.Stat)
}

// Decode reads the record.
func (c *Create2Response) Decode(r *jute.Reader) {
	c.Path = r.Ustring()
	DecodeStat(r, &c.Stat)
}
