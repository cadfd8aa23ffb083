package wire

import (
	"github.com/zk-lite/zk-lite/internal/jute"
	"github.com/zk-lite/zk-lite/znode"
)

// The sizes of the headers.
const (
	RequestHeaderBytes = 8
	ReplyHeaderBytes   = 16
)

// RequestHeader starts every request frame after the connect request.
type RequestHeader struct {
	Xid  Xid
	Type OpCode
}

// Append appends the record to b.
func (h *RequestHeader) Append(b []byte) []byte {
	b = jute.AppendInt32(b, int32(h.Xid))
	return jute.AppendInt32(b, int32(h.Type))
}

// Decode reads the record.
func (h *RequestHeader) Decode(r *jute.Reader) {
	h.Xid = Xid(r.Int32())
	h.Type = OpCode(r.Int32())
}

// ReplyHeader starts every frame from the server after the connect response.
// No body follows if Err is not OK.
type ReplyHeader struct {
	Xid  Xid
	Zxid znode.Zxid
	Err  znode.Error
}

// Append appends the record to b.
func (h *ReplyHeader) Append(b []byte) []byte {
	b = jute.AppendInt32(b, int32(h.Xid))
	b = jute.AppendInt64(b, int64(h.Zxid))
	return jute.AppendInt32(b, int32(h.Err))
}

// Decode reads the record.
func (h *ReplyHeader) Decode(r *jute.Reader) {
	h.Xid = Xid(r.Int32())
	h.Zxid = znode.Zxid(r.Int64())
	h.Err = znode.Error(r.Int32())
}
