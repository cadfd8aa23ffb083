package wire

import "github.com/zk-lite/zk-lite/internal/jute"

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
