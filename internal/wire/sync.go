package wire

import "github.com/zk-lite/zk-lite/internal/jute"

// SyncRequest is the body of sync.
type SyncRequest struct {
	Path string // echoed, not looked up
}

func (*SyncRequest) isRequest() {}

// Append appends the record to b.
func (s *SyncRequest) Append(b []byte) []byte { return jute.AppendUstring(b, s.Path) }

// Decode reads the record.
func (s *SyncRequest) Decode(r *jute.Reader) { s.Path = r.Ustring() }

// SyncResponse is the reply to sync.
type SyncResponse struct {
	Path string // that of the request
}

func (*SyncResponse) isResponse() {}

// Append appends the record to b.
func (s *SyncResponse) Append(b []byte) []byte { return jute.AppendUstring(b, s.Path) }

// Decode reads the record.
func (s *SyncResponse) Decode(r *jute.Reader) { s.Path = r.Ustring() }
