package wire

import (
	"encoding/binary"
	"fmt"
	"slices"

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
	case OpFeed:
		return new(FeedRequest)
	case OpBranch:
		return new(BranchRequest)
	case OpSyncWithin:
		return new(SyncWithinRequest)
	case OpTree:
		return new(TreeRequest)
	case OpRevisions:
		return new(RevisionsRequest)
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
	case OpFeed, OpRevisions:
		return new(FeedResponse)
	case OpBranch:
		return new(BranchResponse)
	case OpSyncWithin:
		return new(SyncWithinResponse)
	case OpTree:
		return new(TreeResponse)
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

// aclMinBytes is the smallest ACL: perms and the lengths of scheme and id.
const aclMinBytes = 12

// openACLEncoding is the encoding of znode.OpenACL, which most creates have.
const openACLEncoding = "\x00\x00\x00\x01" + // one entry

	"\x00\x00\x00\x1f" + // all permissions
	"\x00\x00\x00\x05world" + "\x00\x00\x00\x06anyone"

// AppendACLs appends a vector of ACLs to b; nil is written as null.
func AppendACLs(b []byte, acls []znode.ACL) []byte {
	if acls == nil {
		return jute.AppendVectorLen(b, -1)
	}
	b = jute.AppendVectorLen(b, len(acls))
	for i := range acls {
		b = jute.AppendInt32(b, int32(acls[i].Perms))
		b = jute.AppendUstring(b, acls[i].ID.Scheme)
		b = jute.AppendUstring(b, acls[i].ID.ID)
	}
	return b
}

// DecodeACLs reads a vector of ACLs: nil for null, non-nil for an empty one.
// The result may be the shared znode.OpenACL: do not modify it.
func DecodeACLs(r *jute.Reader) []znode.ACL {
	const open = len(openACLEncoding)
	if rest := r.Rest(); len(rest) >= open && string(rest[:open]) == openACLEncoding {
		r.Take(open, "ACL")
		return znode.OpenACL
	}
	n := r.VectorLen(aclMinBytes)
	if n < 0 || r.Err() != nil {
		return nil
	}
	acls := make([]znode.ACL, n)
	for i := range acls {
		acls[i].Perms = znode.Perms(r.Int32())
		acls[i].ID.Scheme = schemeString(r.UstringBytes())
		acls[i].ID.ID = r.Ustring()
	}
	if r.Err() != nil {
		return nil
	}
	return acls
}

// schemeString is string(b) without an allocation for the known schemes.
func schemeString(b []byte) string {
	// A switch over string(b) compares without converting.
	switch string(b) {
	case "world":
		return "world"
	case "digest":
		return "digest"
	case "auth":
		return "auth"
	case "ip":
		return "ip"
	case "sasl":
		return "sasl"
	case "x509":
		return "x509"
	}
	return string(b)
}

// StatBytes is the size of a Stat.
const StatBytes = 68

// AppendStat appends s to b.
func AppendStat(b []byte, s *znode.Stat) []byte {
	n := len(b)
	b = slices.Grow(b, StatBytes)[:n+StatBytes]
	// One slice of a known length, so that a single bounds check covers all.
	p := (*[StatBytes]byte)(b[n:])
	binary.BigEndian.PutUint64(p[0:8], uint64(s.Czxid))
	binary.BigEndian.PutUint64(p[8:16], uint64(s.Mzxid))
	binary.BigEndian.PutUint64(p[16:24], uint64(s.Ctime))
	binary.BigEndian.PutUint64(p[24:32], uint64(s.Mtime))
	binary.BigEndian.PutUint32(p[32:36], uint32(s.Version))
	binary.BigEndian.PutUint32(p[36:40], uint32(s.Cversion))
	binary.BigEndian.PutUint32(p[40:44], uint32(s.Aversion))
	binary.BigEndian.PutUint64(p[44:52], uint64(s.EphemeralOwner))
	binary.BigEndian.PutUint32(p[52:56], uint32(s.DataLength))
	binary.BigEndian.PutUint32(p[56:60], uint32(s.NumChildren))
	binary.BigEndian.PutUint64(p[60:68], uint64(s.Pzxid))
	return b
}

// DecodeStat reads a Stat into s.
func DecodeStat(r *jute.Reader, s *znode.Stat) {
	b := r.Take(StatBytes, "Stat")
	if b == nil {
		*s = znode.Stat{}
		return
	}
	p := (*[StatBytes]byte)(b)
	s.Czxid = znode.Zxid(binary.BigEndian.Uint64(p[0:8]))
	s.Mzxid = znode.Zxid(binary.BigEndian.Uint64(p[8:16]))
	s.Ctime = int64(binary.BigEndian.Uint64(p[16:24]))
	s.Mtime = int64(binary.BigEndian.Uint64(p[24:32]))
	s.Version = znode.Version(binary.BigEndian.Uint32(p[32:36]))
	s.Cversion = znode.Version(binary.BigEndian.Uint32(p[36:40]))
	s.Aversion = znode.Version(binary.BigEndian.Uint32(p[40:44]))
	s.EphemeralOwner = znode.SessionID(binary.BigEndian.Uint64(p[44:52]))
	s.DataLength = int32(binary.BigEndian.Uint32(p[52:56]))
	s.NumChildren = int32(binary.BigEndian.Uint32(p[56:60]))
	s.Pzxid = znode.Zxid(binary.BigEndian.Uint64(p[60:68]))
}
