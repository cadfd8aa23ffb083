package wire

import "github.com/zk-lite/zk-lite/internal/jute"

// GetEphemeralsRequest is the body of getEphemerals.
type GetEphemeralsRequest struct {
	PrefixPath string // a prefix of the text, not of the path's names
}

func (*GetEphemeralsRequest) isRequest() {}

// Append appends the record to b.
func (g *GetEphemeralsRequest) Append(b []byte) []byte {
	return jute.AppendUstring(b, g.PrefixPath)
}

// Decode reads the record.
func (g *GetEphemeralsRequest) Decode(r *jute.Reader) { g.PrefixPath = r.Ustring() }

// GetEphemeralsResponse is the reply to getEphemerals.
type GetEphemeralsResponse struct {
	Ephemerals []string // paths of the session's own ephemerals
}

func (*GetEphemeralsResponse) isResponse() {}

// Append appends the record to b.
func (g *GetEphemeralsResponse) Append(b []byte) []byte {
	return jute.AppendUstrings(b, g.Ephemerals)
}

// Decode reads the record.
func (g *GetEphemeralsResponse) Decode(r *jute.Reader) { g.Ephemerals = r.Ustrings() }
