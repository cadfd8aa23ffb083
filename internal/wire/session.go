package wire

import (
	"github.com/zk-lite/zk-lite/internal/jute"
	"github.com/zk-lite/zk-lite/znode"
)

// ConnectRequest is the first frame of a connection, without a header: 44 bytes
// without and 45 with the readOnly field.
type ConnectRequest struct {
	ProtocolVersion int32      // 0
	LastZxidSeen    znode.Zxid // largest zxid the client has seen; 0 at first
	TimeoutMillis   int32      // the session timeout the client asks for
	SessionID       znode.SessionID
	Password        []byte // znode.PasswordSize bytes; zeros or null for a new session
	// HasReadOnly says that the optional field is present; ReadOnly is false
	// without it. Clients older than ZooKeeper 3.4 and go-zookeeper omit it.
	HasReadOnly bool
	ReadOnly    bool // the client accepts a read-only server
}

// Append appends the record to b.
func (c *ConnectRequest) Append(b []byte) []byte {
	b = jute.AppendInt32(b, c.ProtocolVersion)
	b = jute.AppendInt64(b, int64(c.LastZxidSeen))
	b = jute.AppendInt32(b, c.TimeoutMillis)
	b = jute.AppendInt64(b, int64(c.SessionID))
	b = jute.AppendBuffer(b, c.Password)
	return appendOptionalBool(b, c.HasReadOnly, c.ReadOnly)
}

// Decode reads the record.
func (c *ConnectRequest) Decode(r *jute.Reader) {
	c.ProtocolVersion = r.Int32()
	c.LastZxidSeen = znode.Zxid(r.Int64())
	c.TimeoutMillis = r.Int32()
	c.SessionID = znode.SessionID(r.Int64())
	c.Password = r.Buffer()
	c.HasReadOnly, c.ReadOnly = decodeOptionalBool(r)
}

// ConnectResponse answers a ConnectRequest: 36 bytes without and 37 with the
// readOnly field, which is sent if and only if the request had it.
type ConnectResponse struct {
	ProtocolVersion int32           // 0
	TimeoutMillis   int32           // the negotiated timeout; 0: the session has expired
	SessionID       znode.SessionID // 0: the session has expired
	Password        []byte          // znode.PasswordSize bytes
	HasReadOnly     bool            // the optional field is present
	ReadOnly        bool            // the server is read-only
}

// Append appends the record to b.
func (c *ConnectResponse) Append(b []byte) []byte {
	b = jute.AppendInt32(b, c.ProtocolVersion)
	b = jute.AppendInt32(b, c.TimeoutMillis)
	b = jute.AppendInt64(b, int64(c.SessionID))
	b = jute.AppendBuffer(b, c.Password)
	return appendOptionalBool(b, c.HasReadOnly, c.ReadOnly)
}

// Decode reads the record.
func (c *ConnectResponse) Decode(r *jute.Reader) {
	c.ProtocolVersion = r.Int32()
	c.TimeoutMillis = r.Int32()
	c.SessionID = znode.SessionID(r.Int64())
	c.Password = r.Buffer()
	c.HasReadOnly, c.ReadOnly = decodeOptionalBool(r)
}

func appendOptionalBool(b []byte, has, v bool) []byte {
	if has {
		return jute.AppendBool(b, v)
	}
	return b
}

// decodeOptionalBool reads a trailing boolean that is there if a byte is left.
func decodeOptionalBool(r *jute.Reader) (has, v bool) {
	if r.Remaining() == 0 {
		return false, false
	}
	return true, r.Bool()
}
