package wire

import (
	"fmt"

	"github.com/zk-lite/zk-lite/internal/jute"
	"github.com/zk-lite/zk-lite/znode"
)

// Record is a sequence of fields with a fixed layout.
type Record interface {
	// Append appends the encoding of the record to b.
	Append(b []byte) []byte
	// Decode overwrites every field from r. If r fails, the state of the record
	// is undefined; check r.Err.
	Decode(r *jute.Reader)
}

// Request is a record that follows a RequestHeader, from client to server.
type Request interface {
	Record
	isRequest()
}

// Response is a record that follows a ReplyHeader without error, from server
// to client.
type Response interface {
	Record
	isResponse()
}

// EmptyRequest is the body of the requests without fields: ping, closeSession
// and whoAmI.
type EmptyRequest struct{}

func (*EmptyRequest) isRequest() {}

// Append appends nothing.
func (*EmptyRequest) Append(b []byte) []byte { return b }

// Decode reads nothing.
func (*EmptyRequest) Decode(*jute.Reader) {}

// EmptyResponse is the body of the replies without fields: delete, ping,
// closeSession, auth, setWatches, setWatches2, checkWatches and removeWatches.
type EmptyResponse struct{}

func (*EmptyResponse) isResponse() {}

// Append appends nothing.
func (*EmptyResponse) Append(b []byte) []byte { return b }

// Decode reads nothing.
func (*EmptyResponse) Decode(*jute.Reader) {}

// ErrorResponse is a code alone: the reply to addWatch (always OK) and the
// result of a failed operation of a multi.
type ErrorResponse struct {
	Err znode.Error
}

func (*ErrorResponse) isResponse() {}

// Append appends the record to b.
func (e *ErrorResponse) Append(b []byte) []byte { return jute.AppendInt32(b, int32(e.Err)) }

// Decode reads the record.
func (e *ErrorResponse) Decode(r *jute.Reader) { e.Err = znode.Error(r.Int32()) }

// NewRequest returns an empty body for a request of type op, or nil if a
// client cannot send that type in a header or in a multi.
func NewRequest(op OpCode) Request {
	switch op {
	case OpCreate, OpCreate2, OpCreateContainer:
		return new(CreateRequest)
	case OpDelete:
		return new(DeleteRequest)
	case OpExists:
		return new(ExistsRequest)
	case OpGetData:
		return new(GetDataRequest)
	case OpSetData:
		return new(SetDataRequest)
	case OpGetACL:
		return new(GetACLRequest)
	case OpSetACL:
		return new(SetACLRequest)
	case OpGetChildren, OpGetChildren2:
		return new(GetChildrenRequest)
	case OpSync:
		return new(SyncRequest)
	case OpPing, OpCloseSession, OpWhoAmI:
		return new(EmptyRequest)
	case OpCheck:
		return new(CheckRequest)
	case OpMulti:
		return new(MultiRequest)
	case OpMultiRead:
		return &MultiRequest{Read: true}
	case OpCreateTTL:
		return new(CreateTTLRequest)
	}
	return newRareRequest(op)
}

// newRareRequest is the second half of NewRequest.
func newRareRequest(op OpCode) Request {
	switch op {
	case OpReconfig:
		return new(ReconfigRequest)
	case OpCheckWatches, OpRemoveWatches:
		return new(RemoveWatchesRequest)
	case OpDeleteContainer:
		return new(DeleteContainerRequest)
	case OpAuth:
		return new(AuthRequest)
	case OpSetWatches:
		return new(SetWatchesRequest)
	case OpSetWatches2:
		return new(SetWatches2Request)
	case OpSASL:
		return new(SASLRequest)
	case OpGetEphemerals:
		return new(GetEphemeralsRequest)
	case OpGetAllChildrenNumber:
		return new(GetAllChildrenNumberRequest)
	case OpAddWatch:
		return new(AddWatchRequest)
	}
	return nil
}

// NewResponse returns an empty body for the reply to a request of type op, or
// nil if NewRequest(op) is nil or op exists only inside a multi.
func NewResponse(op OpCode) Response {
	switch op {
	case OpCreate:
		return new(CreateResponse)
	case OpCreate2, OpCreateContainer, OpCreateTTL:
		return new(Create2Response)
	case OpDelete, OpPing, OpCloseSession, OpAuth, OpSetWatches, OpSetWatches2,
		OpCheckWatches, OpRemoveWatches, OpDeleteContainer:
		return new(EmptyResponse)
	case OpExists:
		return new(ExistsResponse)
	case OpGetData:
		return new(GetDataResponse)
	case OpSetData:
		return new(SetDataResponse)
	case OpGetACL:
		return new(GetACLResponse)
	case OpSetACL:
		return new(SetACLResponse)
	case OpGetChildren:
		return new(GetChildrenResponse)
	case OpGetChildren2:
		return new(GetChildren2Response)
	case OpSync:
		return new(SyncResponse)
	case OpMulti, OpMultiRead:
		return new(MultiResponse)
	case OpReconfig:
		return new(ReconfigResponse)
	case OpSASL:
		return new(SASLResponse)
	case OpGetEphemerals:
		return new(GetEphemeralsResponse)
	case OpGetAllChildrenNumber:
		return new(GetAllChildrenNumberResponse)
	case OpAddWatch:
		return new(ErrorResponse)
	case OpWhoAmI:
		return new(WhoAmIResponse)
	}
	return nil
}

// ParseRequest decodes the payload of a request frame: header and body. Errors
// are znode.ErrMarshalling or znode.ErrUnimplemented for errors.Is; the header
// is valid if the payload has RequestHeaderBytes or more.
//
// It allocates the body; a server that counts allocations decodes the header
// itself and then into a variable of the body's type.
func ParseRequest(payload []byte) (RequestHeader, Request, error) {
	r := jute.NewReader(payload)
	var h RequestHeader
	h.Decode(r)
	if err := r.Err(); err != nil {
		return RequestHeader{}, nil, fmt.Errorf("decoding a request header: %w: %w",
			znode.ErrMarshalling, err)
	}
	body := NewRequest(h.Type)
	if body == nil || !h.Type.ClientRequest() {
		return h, nil, fmt.Errorf("request of type %s: %w", h.Type, znode.ErrUnimplemented)
	}
	body.Decode(r)
	if err := r.Err(); err != nil {
		return h, nil, fmt.Errorf("decoding a %s request: %w: %w",
			h.Type, znode.ErrMarshalling, err)
	}
	return h, body, nil
}

// ParseReply decodes the payload of the reply to a request of type op: header
// and, if the header has no error, body. By the xid the caller knows that it is
// not a notification.
func ParseReply(payload []byte, op OpCode) (ReplyHeader, Response, error) {
	r := jute.NewReader(payload)
	var h ReplyHeader
	h.Decode(r)
	if err := r.Err(); err != nil {
		return ReplyHeader{}, nil, fmt.Errorf("decoding a reply header: %w", err)
	}
	if h.Err != znode.OK {
		return h, nil, nil
	}
	body := NewResponse(op)
	if body == nil {
		return h, nil, fmt.Errorf("reply to type %s: %w", op, znode.ErrUnimplemented)
	}
	body.Decode(r)
	if err := r.Err(); err != nil {
		return h, nil, fmt.Errorf("decoding a %s reply: %w", op, err)
	}
	return h, body, nil
}

// AppendRequest appends a whole request frame to b. A nil body is an empty one.
func AppendRequest(b []byte, h RequestHeader, body Request) []byte {
	b, mark := BeginFrame(b)
	b = h.Append(b)
	if body != nil {
		b = body.Append(b)
	}
	EndFrame(b, mark)
	return b
}

// AppendReply appends a whole reply frame to b. The body is left out if it is
// nil or the header has an error.
func AppendReply(b []byte, h ReplyHeader, body Response) []byte {
	b, mark := BeginFrame(b)
	b = h.Append(b)
	if body != nil && h.Err == znode.OK {
		b = body.Append(b)
	}
	EndFrame(b, mark)
	return b
}
