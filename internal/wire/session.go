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
	TimeoutMillis   int32      // the session timeout that the client requests
	SessionID       znode.SessionID
	Password        []byte // znode.PasswordSize bytes; zeros or null for a new session
	// HasReadOnly reports that the optional field is present; ReadOnly is false
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

// decodeOptionalBool reads a trailing boolean, which is present if a byte remains.
func decodeOptionalBool(r *jute.Reader) (has, v bool) {
	if r.Remaining() == 0 {
		return false, false
	}
	return true, r.Bool()
}

// AuthRequest is the body of auth (AuthPacket).
type AuthRequest struct {
	Type   int32  // 0; not used by servers
	Scheme string // such as digest
	Auth   []byte // the scheme's credentials, such as user:password
}

func (*AuthRequest) isRequest() {}

// Append appends the record to b.
func (a *AuthRequest) Append(b []byte) []byte {
	b = jute.AppendInt32(b, a.Type)
	b = jute.AppendUstring(b, a.Scheme)
	return jute.AppendBuffer(b, a.Auth)
}

// Decode reads the record.
func (a *AuthRequest) Decode(r *jute.Reader) {
	a.Type = r.Int32()
	a.Scheme = schemeString(r.UstringBytes())
	a.Auth = r.Buffer()
}

// SASLRequest is the body of sasl (GetSASLRequest): one round of a SASL
// exchange.
type SASLRequest struct {
	Token []byte // nil is null
}

func (*SASLRequest) isRequest() {}

// Append appends the record to b.
func (s *SASLRequest) Append(b []byte) []byte { return jute.AppendBuffer(b, s.Token) }

// Decode reads the record.
func (s *SASLRequest) Decode(r *jute.Reader) { s.Token = r.Buffer() }

// SASLResponse is the reply to sasl (SetSASLResponse).
type SASLResponse struct {
	Token []byte // nil is null
}

func (*SASLResponse) isResponse() {}

// Append appends the record to b.
func (s *SASLResponse) Append(b []byte) []byte { return jute.AppendBuffer(b, s.Token) }

// Decode reads the record.
func (s *SASLResponse) Decode(r *jute.Reader) { s.Token = r.Buffer() }

// clientInfoMinBytes is the smallest ClientInfo: the lengths of two strings.
const clientInfoMinBytes = 8

// ClientInfo is one identity of a connection, without secrets.
type ClientInfo struct {
	AuthScheme string
	User       string
}

// WhoAmIResponse is the reply to whoAmI.
type WhoAmIResponse struct {
	ClientInfo []ClientInfo
}

func (*WhoAmIResponse) isResponse() {}

// Append appends the record to b.
func (w *WhoAmIResponse) Append(b []byte) []byte {
	b = jute.AppendVectorLen(b, len(w.ClientInfo))
	for _, c := range w.ClientInfo {
		b = jute.AppendUstring(b, c.AuthScheme)
		b = jute.AppendUstring(b, c.User)
	}
	return b
}

// Decode reads the record; both a null and an empty vector are nil.
func (w *WhoAmIResponse) Decode(r *jute.Reader) {
	w.ClientInfo = nil
	n := r.VectorLen(clientInfoMinBytes)
	if n <= 0 {
		return
	}
	w.ClientInfo = make([]ClientInfo, n)
	for i := range w.ClientInfo {
		w.ClientInfo[i].AuthScheme = schemeString(r.UstringBytes())
		w.ClientInfo[i].User = r.Ustring()
	}
}

// GoAway is the last frame of a stopping server: requests of this connection without a reply have not happened,
// and will not. It is a reply to a ping, which clients of ZooKeeper ignore if they have sent none, with the code
// SESSIONMOVED: the session continues at another server. ZooKeeper does not send it.
func GoAway(zxid znode.Zxid) ReplyHeader {
	return ReplyHeader{Xid: XidPing, Zxid: zxid, Err: znode.ErrSessionMoved}
}

// IsGoAway reports whether h is a GoAway.
func IsGoAway(h ReplyHeader) bool { return h.Xid == XidPing && h.Err == znode.ErrSessionMoved }
