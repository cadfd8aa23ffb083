package wire

import (
	"errors"
	"fmt"

	"github.com/zk-lite/zk-lite/internal/jute"
	"github.com/zk-lite/zk-lite/znode"
)

// multiHeaderBytes is the size of a MultiHeader.
const multiHeaderBytes = 9

// multiOpMinBytes is the smallest operation of a multi: a MultiHeader and a
// getData with an empty path. The number of operations is bounded by the frame
// alone, as in ZooKeeper: with the default limit it is below 75,000.
const multiOpMinBytes = multiHeaderBytes + 5

// ErrMultiType reports that an operation is not allowed in a multi, or in a
// multiRead.
var ErrMultiType = errors.New("operation type is not allowed here")

// ErrMultiMode reports that a create, create2 or createContainer inside a multi
// has an unknown mode, or one that needs a TTL.
var ErrMultiMode = errors.New("create mode is not allowed here")

// MultiHeader precedes every operation and every result of a multi, and follows
// the last one with Done set.
type MultiHeader struct {
	Type OpCode
	Done bool
	Err  znode.Error
}

// AppendMultiEnd appends the header after the last operation or result.
func AppendMultiEnd(b []byte) []byte {
	end := MultiHeader{Type: OpError, Done: true, Err: -1}
	return end.Append(b)
}

// Append appends the record to b.
func (h *MultiHeader) Append(b []byte) []byte {
	b = jute.AppendInt32(b, int32(h.Type))
	b = jute.AppendBool(b, h.Done)
	return jute.AppendInt32(b, int32(h.Err))
}

// Decode reads the record.
func (h *MultiHeader) Decode(r *jute.Reader) {
	h.Type = OpCode(r.Int32())
	h.Done = r.Bool()
	h.Err = znode.Error(r.Int32())
}

// MultiOp is one operation of a multi. Request has the type that
// NewRequest(Type) returns.
type MultiOp struct {
	Type    OpCode
	Request Request
}

// EffectiveType is the operation that a server performs. For the four creates
// of a multi, and only there, the mode overrides the opcode
// (MultiOperationRecord.deserialize and Op.create in ZooKeeper 3.9): a TTL mode
// makes a createTTL, though Decode refuses it unless Type is createTTL;
// Container makes a createContainer; and a createTTL with any other mode, also
// an unknown one, is a plain create. The result has the type
// EffectiveType().ResultType().
func (op *MultiOp) EffectiveType() OpCode {
	var mode znode.Mode
	plain := op.Type
	switch req := op.Request.(type) {
	case *CreateRequest:
		mode = req.Mode
	case *CreateTTLRequest:
		mode = req.Mode
		plain = OpCreate
	default:
		return op.Type
	}
	switch {
	case mode.TTL():
		return OpCreateTTL
	case mode == znode.Container:
		return OpCreateContainer
	}
	return plain
}

// MultiRequest is the body of multi and multiRead
// (MultiOperationRecord).
type MultiRequest struct {
	// Read selects multiRead. Decode uses it and does not set it, because only
	// the RequestHeader has that information.
	Read   bool
	branch bool // a list of a BranchRequest, which allows both
	Ops    []MultiOp
}

func (*MultiRequest) isRequest() {}

// Append appends the record to b. It does not check the operations: a client
// calls Validate first.
func (m *MultiRequest) Append(b []byte) []byte {
	for i := range m.Ops {
		h := MultiHeader{Type: m.Ops[i].Type, Err: -1}
		b = m.Ops[i].Request.Append(h.Append(b))
	}
	return AppendMultiEnd(b)
}

// Decode reads the record. An operation that has no place in it and a create
// with an unknown mode, or one that needs a TTL, are errors (ErrMultiType,
// ErrMultiMode), so a server answers the whole request with MARSHALLINGERROR.
// The unknown mode of a createTTL is not an error here, as in ZooKeeper: it
// fails that operation. The watch flags of a multiRead are ignored.
func (m *MultiRequest) Decode(r *jute.Reader) {
	m.Ops = nil
	for {
		start := r.Offset()
		var h MultiHeader
		h.Decode(r)
		if h.Done || r.Err() != nil {
			return
		}
		op := MultiOp{Type: h.Type}
		if m.allows(h.Type) {
			op.Request = NewRequest(h.Type)
			op.Request.Decode(r)
		}
		if r.Err() != nil {
			return
		}
		switch req := op.Request.(type) {
		case *GetDataRequest:
			req.Watch = false
		case *GetChildrenRequest:
			req.Watch = false
		}
		if err := m.check(&op); err != nil {
			r.Fail(start, "multi", fmt.Errorf("operation %d: %w", len(m.Ops), err))
			return
		}
		m.Ops = append(m.Ops, op)
	}
}

// Validate reports the first operation that a server would refuse to decode, or
// whose Request does not match its opcode.
func (m *MultiRequest) Validate() error {
	for i := range m.Ops {
		if err := m.check(&m.Ops[i]); err != nil {
			return fmt.Errorf("operation %d: %w", i, err)
		}
	}
	return nil
}

func (m *MultiRequest) allows(op OpCode) bool {
	if m.Read || m.branch && op.InMultiRead() {
		return op.InMultiRead()
	}
	return op.InMulti()
}

func (m *MultiRequest) check(op *MultiOp) error {
	if !m.allows(op.Type) {
		if m.Read {
			return fmt.Errorf("%w: %s in a multiRead, want getData or getChildren",
				ErrMultiType, op.Type)
		}
		return fmt.Errorf("%w: %s in a multi, want a create, delete, setData or check",
			ErrMultiType, op.Type)
	}
	fits := false
	mode := znode.Persistent
	switch req := op.Request.(type) {
	case *CreateRequest:
		fits = op.Type == OpCreate || op.Type == OpCreate2 || op.Type == OpCreateContainer
		mode = req.Mode
	case *CreateTTLRequest:
		fits = op.Type == OpCreateTTL
	case *DeleteRequest:
		fits = op.Type == OpDelete
	case *SetDataRequest:
		fits = op.Type == OpSetData
	case *CheckRequest:
		fits = op.Type == OpCheck
	case *GetDataRequest:
		fits = op.Type == OpGetData
	case *GetChildrenRequest:
		fits = op.Type == OpGetChildren
	}
	if !fits {
		return fmt.Errorf("%w: %s with a body of type %T, want %T",
			ErrMultiType, op.Type, op.Request, NewRequest(op.Type))
	}
	if !mode.Valid() || mode.TTL() {
		return fmt.Errorf("%w: %s with mode %d, want 0 to 4", ErrMultiMode, op.Type, int32(mode))
	}
	return nil
}

// MultiResult is the result of one operation of a multi or multiRead.
type MultiResult struct {
	// Type is OpError for an operation that failed or was not tried, and
	// ResultType of the operation otherwise.
	Type OpCode
	// Err is the code of an OpError, and OK otherwise. Inside a multi that
	// failed, the operations before the one that failed are OpErrors with OK
	// and those after it have ErrRuntimeInconsistency.
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
			// The code is there twice; clients use the one in the body.
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

// BranchRequest is the body of branch: a transaction with conditions and two lists of operations, which may be those of
// a multi and of a multiRead.
type BranchRequest struct {
	If   []znode.Condition
	Then []MultiOp // carried out if all conditions hold
	Else []MultiOp // carried out otherwise
}

// conditionMinBytes is the smallest condition.
const conditionMinBytes = 4 + 4 + 4 + 8 + 4

func (*BranchRequest) isRequest() {}

// Append appends the record to b. It does not check the operations: a client calls Validate first.
func (q *BranchRequest) Append(b []byte) []byte {
	b = jute.AppendVectorLen(b, len(q.If))
	for i := range q.If {
		c := &q.If[i]
		b = jute.AppendInt32(jute.AppendInt32(jute.AppendUstring(b, c.Path), int32(c.Of)), int32(c.Is))
		b = jute.AppendBuffer(jute.AppendInt64(b, c.Number), c.Data)
	}
	then, otherwise := q.lists()
	return otherwise.Append(then.Append(b))
}

// Decode reads the record. Unknown attributes and relations are errors, as are operations that have no place in it.
// Data point into r's bytes.
func (q *BranchRequest) Decode(r *jute.Reader) {
	*q = BranchRequest{}
	for range r.VectorLen(conditionMinBytes) {
		start := r.Offset()
		c := znode.Condition{Path: r.Ustring()}
		of, is := r.Int32(), r.Int32()
		c.Of, c.Is = znode.Attribute(of), znode.Relation(is)
		if known := c.Known() && int32(c.Of) == of && int32(c.Is) == is; !known && r.Err() == nil {
			r.Fail(start, "branch", fmt.Errorf("condition %d: unknown attribute %d or relation %d", len(q.If), of, is))
		}
		if c.Number, c.Data = r.Int64(), r.Buffer(); r.Err() != nil {
			return
		}
		q.If = append(q.If, c)
	}
	then, otherwise := q.lists()
	then.Decode(r)
	otherwise.Decode(r)
	q.Then, q.Else = then.Ops, otherwise.Ops
}

// Validate reports the first operation that a server would refuse to decode.
func (q *BranchRequest) Validate() error {
	then, otherwise := q.lists()
	if err := then.Validate(); err != nil {
		return err
	}
	return otherwise.Validate()
}

func (q *BranchRequest) lists() (then, otherwise MultiRequest) {
	return MultiRequest{branch: true, Ops: q.Then}, MultiRequest{branch: true, Ops: q.Else}
}

// BranchResponse is the reply to branch. One whose operations failed is also answered with this body, and with OK in
// the ReplyHeader, as a multi is.
type BranchResponse struct {
	Then    bool // the conditions held
	Results []MultiResult
}

func (*BranchResponse) isResponse() {}

// Append appends the record to b.
func (p *BranchResponse) Append(b []byte) []byte {
	results := MultiResponse{p.Results}
	return results.Append(jute.AppendBool(b, p.Then))
}

// Decode reads the record.
func (p *BranchResponse) Decode(r *jute.Reader) {
	var results MultiResponse
	p.Then = r.Bool()
	results.Decode(r)
	p.Results = results.Results
}
