package wire

import (
	"fmt"

	"github.com/zk-lite/zk-lite/internal/jute"
	"github.com/zk-lite/zk-lite/znode"
)

// MultiResult is the result of one operation of a multi or multiRead.
type MultiResult struct {
	// Type is OpError for an operation that failed or was not tried, and
	// ResultType of the operation otherwise.
	Type OpCode
	// Err is the code of an OpError, and OK otherwise. Inside a multi that
	// failed, the operations before the one to blame are OpErrors with OK and
	// those after it have ErrRuntimeInconsistency.
	Err znode.Error
	// Response is a CreateResponse, Create2Response, SetDataResponse,
	// GetDataResponse or GetChildrenResponse, and nil for delete, check and
	// OpError.
	Response Response
}

// MultiError returns the result of an operation that failed with err.
func MultiError(err znode.Error) MultiResult { return MultiResult{Type: OpError, Err: err} }

// MultiResponse is the reply to multi and multiRead. A multi that failed is
// also answered with this body, and with OK in the ReplyHeader.
type MultiResponse struct {
	Results []MultiResult
}

func (*MultiResponse) isResponse() {}

// Append appends the record to b.
func (m *MultiResponse) Append(b []byte) []byte {
	for i := range m.Results {
		b = m.Results[i].append(b)
	}
	return AppendMultiEnd(b)
}

func (m *MultiResult) append(b []byte) []byte {
	h := MultiHeader{Type: m.Type, Err: m.Err}
	b = h.Append(b)
	if m.Type == OpError {
		return jute.AppendInt32(b, int32(m.Err))
	}
	if m.Response != nil {
		b = m.Response.Append(b)
	}
	return b
}

// Decode reads the record.
func (m *MultiResponse) Decode(r *jute.Reader) {
	m.Results = nil
	for {
		start := r.Offset()
		var h MultiHeader
		h.Decode(r)
		if h.Done || r.Err() != nil {
			return
		}
		result := MultiResult{Type: h.Type, Err: h.Err}
		switch h.Type {
		case OpError:
			// The code stands twice; the body is the one that clients go by.
			result.Err = znode.Error(r.Int32())
		case OpDelete, OpCheck:
		case OpCreate, OpCreate2, OpSetData, OpGetData, OpGetChildren:
			result.Response = NewResponse(h.Type)
			result.Response.Decode(r)
		default:
			r.Fail(start, "multi", fmt.Errorf("result %d: %w: %s", len(m.Results),
				ErrMultiType, h.Type))
		}
		if r.Err() != nil {
			return
		}
		m.Results = append(m.Results, result)
	}
}
