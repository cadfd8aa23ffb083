package wire

import "github.com/zk-lite/zk-lite/internal/jute"

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
