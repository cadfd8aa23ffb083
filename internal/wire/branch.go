package wire

import (
	"fmt"

	"github.com/zk-lite/zk-lite/internal/jute"
	"github.com/zk-lite/zk-lite/znode"
)

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

// BranchResponse is the reply to branch. One whose operations failed is also answered with this body, and with OK in the
// ReplyHeader, as a multi is.
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
