package wire

import "github.com/zk-lite/zk-lite/internal/jute"

// GetAllChildrenNumberRequest is the body of getAllChildrenNumber.
type GetAllChildrenNumberRequest struct {
	Path string
}

func (*GetAllChildrenNumberRequest) isRequest() {}

// Append appends the record to b.
func (g *GetAllChildrenNumberRequest) Append(b []byte) []byte {
	return jute.AppendUstring(b, g.Path)
}

// Decode reads the record.
func (g *GetAllChildrenNumberRequest) Decode(r *jute.Reader) { g.Path = r.Ustring() }

// GetAllChildrenNumberResponse is the reply to getAllChildrenNumber.
type GetAllChildrenNumberResponse struct {
	TotalNumber int32 // znodes below the path, at any depth
}

func (*GetAllChildrenNumberResponse) isResponse() {}

// Append appends the record to b.
func (g *GetAllChildrenNumberResponse) Append(b []byte) []byte {
	return jute.AppendInt32(b, g.TotalNumber)
}

// Decode reads the record.
func (g *GetAllChildrenNumberResponse) Decode(r *jute.Reader) { g.TotalNumber = r.Int32() }
