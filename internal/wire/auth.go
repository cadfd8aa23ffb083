package wire

import "github.com/zk-lite/zk-lite/internal/jute"

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
