package wire

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/zk-lite/zk-lite/internal/jute"
	"github.com/zk-lite/zk-lite/znode"
)

// The bounds of frames.
const (
	// FrameLengthBytes is the size of the length that starts a frame. The
	// length does not count itself.
	FrameLengthBytes = 4
	// DefaultMaxFrame is the default of ZooKeeper's jute.maxbuffer, the largest
	// length a receiver accepts.
	DefaultMaxFrame = 0xfffff

	// frameBufferBytes is how much a FrameReader reads from its source at a time.
	frameBufferBytes = 32 << 10
	// frameKeepBytes is the largest payload buffer that a FrameReader keeps
	// between frames, so that one large reply does not cost memory forever. It
	// is also how far the buffer grows ahead of the bytes that have arrived.
	frameKeepBytes = 64 << 10
)

// ErrFrameLength reports that a frame's length is negative or above the limit.
var ErrFrameLength = errors.New("frame length out of range")

// BeginFrame appends room for a frame's length to b. The caller appends the
// payload and passes mark to EndFrame; frames can follow one another in b.
func BeginFrame(b []byte) (frame []byte, mark int) {
	return append(b, 0, 0, 0, 0), len(b)
}

// EndFrame fills in the length of the frame that BeginFrame started at mark and
// that ends with b.
func EndFrame(b []byte, mark int) {
	n := len(b) - mark - FrameLengthBytes
	if n < 0 || n > math.MaxInt32 {
		panic(fmt.Sprintf("wire: invariant broken: frame length %d is not in 0..2^31-1", n))
	}
	binary.BigEndian.PutUint32(b[mark:], uint32(n))
}

// CheckFrameLength returns the length in the first four bytes of a frame if it
// is within 0..limit, and an error that wraps ErrFrameLength otherwise.
func CheckFrameLength(header [FrameLengthBytes]byte, limit int) (int, error) {
	n := int32(binary.BigEndian.Uint32(header[:]))
	if n < 0 || int64(n) > int64(limit) {
		return 0, &FrameLengthError{header, limit}
	}
	return int(n), nil
}

// FrameLengthError is ErrFrameLength with the bytes in the place of the length.
type FrameLengthError struct {
	Header [FrameLengthBytes]byte
	limit  int
}

func (e *FrameLengthError) Error() string {
	n := int32(binary.BigEndian.Uint32(e.Header[:]))
	return fmt.Sprintf("%v: have %d bytes, want 0 to %d", ErrFrameLength, n, e.limit)
}

// Unwrap returns ErrFrameLength.
func (e *FrameLengthError) Unwrap() error { return ErrFrameLength }

// FrameReader reads frames from a stream. It is for clients and tools: a server
// also has to tell four-letter words from frames. It is not safe for concurrent
// use.
type FrameReader struct {
	src *bufio.Reader
	max int
	buf []byte // the last payload
}

// NewFrameReader returns a reader of the frames in src whose lengths are at
// most max bytes. It reads ahead.
func NewFrameReader(src io.Reader, max int) *FrameReader {
	return &FrameReader{src: bufio.NewReaderSize(src, frameBufferBytes), max: max}
}

// Next returns the payload of the next frame, which is valid until the next
// call. The error is io.EOF if the stream ends between two frames,
// io.ErrUnexpectedEOF if it ends inside one, ErrFrameLength (wrapped) if the
// length is out of range, and that of the source otherwise. After an error the
// position in the stream is lost: do not call Next again.
func (f *FrameReader) Next() ([]byte, error) {
	var header [FrameLengthBytes]byte
	// ReadFull makes the distinction between the two ends for us.
	if _, err := io.ReadFull(f.src, header[:]); err != nil {
		return nil, err
	}
	n, err := CheckFrameLength(header, f.max)
	if err != nil {
		return nil, err
	}
	if cap(f.buf) > frameKeepBytes {
		f.buf = nil
	}
	f.buf = f.buf[:0]
	for len(f.buf) < n {
		// Do not trust the length: allocate for the bytes that have arrived.
		step := min(n-len(f.buf), max(frameKeepBytes, len(f.buf)))
		start := len(f.buf)
		f.buf = append(f.buf, make([]byte, step)...)
		if _, err := io.ReadFull(f.src, f.buf[start:]); err != nil {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return nil, err
		}
	}
	return f.buf, nil
}

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

// Xid is a client's number for a request. A reply has the xid of its request: a
// server echoes it, also for auth and setWatches, where some clients send a
// special xid and some do not.
type Xid int32

// The special xids.
const (
	XidNotification Xid = -1 // a WatcherEvent follows the header
	XidPing         Xid = -2 // the server uses it for every reply to a ping
	XidAuth         Xid = -4 // by convention of the Java and C clients
	XidSetWatches   Xid = -8 // by convention of the C client
)

// String names the special xids and is a decimal number otherwise.
func (x Xid) String() string {
	switch x {
	case XidNotification:
		return "notification"
	case XidPing:
		return "ping"
	case XidAuth:
		return "auth"
	case XidSetWatches:
		return "setWatches"
	}
	return fmt.Sprintf("%d", int32(x))
}

// OpCode is the type of a request (ZooDefs.OpCode).
type OpCode int32

// The types of ZooKeeper 3.9, and those of zk-lite from 1000 on. There are no numbers 10 and 23 to 99.
const (
	OpNotification         OpCode = 0
	OpCreate               OpCode = 1
	OpDelete               OpCode = 2
	OpExists               OpCode = 3
	OpGetData              OpCode = 4
	OpSetData              OpCode = 5
	OpGetACL               OpCode = 6
	OpSetACL               OpCode = 7
	OpGetChildren          OpCode = 8 // reply: names
	OpSync                 OpCode = 9
	OpPing                 OpCode = 11
	OpGetChildren2         OpCode = 12 // reply: names and Stat
	OpCheck                OpCode = 13 // only inside a multi
	OpMulti                OpCode = 14
	OpCreate2              OpCode = 15 // reply: path and Stat
	OpReconfig             OpCode = 16
	OpCheckWatches         OpCode = 17
	OpRemoveWatches        OpCode = 18
	OpCreateContainer      OpCode = 19
	OpDeleteContainer      OpCode = 20 // the container reaper's; clients have no call for it
	OpCreateTTL            OpCode = 21
	OpMultiRead            OpCode = 22
	OpAuth                 OpCode = 100
	OpSetWatches           OpCode = 101
	OpSASL                 OpCode = 102
	OpGetEphemerals        OpCode = 103
	OpGetAllChildrenNumber OpCode = 104
	OpSetWatches2          OpCode = 105
	OpAddWatch             OpCode = 106
	OpWhoAmI               OpCode = 107
	OpFeed                 OpCode = 1000 // not ZooKeeper's: changes with their values
	OpBranch               OpCode = 1001 // not ZooKeeper's: a multi with conditions and two lists
	OpTree                 OpCode = 1002 // not ZooKeeper's: a subtree of one state
	OpRevisions            OpCode = 1003 // not ZooKeeper's: the values that a znode had
	OpSyncWithin           OpCode = 1004 // not ZooKeeper's: a sync if the server's state may be too old
	OpCreateSession        OpCode = -10  // internal to a server
	OpCloseSession         OpCode = -11
	OpError                OpCode = -1 // the result of a failed operation of a multi
)

// opNames is a constant table: nothing writes to it.
var opNames = map[OpCode]string{
	OpNotification:         "notification",
	OpCreate:               "create",
	OpDelete:               "delete",
	OpExists:               "exists",
	OpGetData:              "getData",
	OpSetData:              "setData",
	OpGetACL:               "getACL",
	OpSetACL:               "setACL",
	OpGetChildren:          "getChildren",
	OpSync:                 "sync",
	OpPing:                 "ping",
	OpGetChildren2:         "getChildren2",
	OpCheck:                "check",
	OpMulti:                "multi",
	OpCreate2:              "create2",
	OpReconfig:             "reconfig",
	OpCheckWatches:         "checkWatches",
	OpRemoveWatches:        "removeWatches",
	OpCreateContainer:      "createContainer",
	OpDeleteContainer:      "deleteContainer",
	OpCreateTTL:            "createTTL",
	OpMultiRead:            "multiRead",
	OpAuth:                 "auth",
	OpSetWatches:           "setWatches",
	OpSASL:                 "sasl",
	OpGetEphemerals:        "getEphemerals",
	OpGetAllChildrenNumber: "getAllChildrenNumber",
	OpSetWatches2:          "setWatches2",
	OpAddWatch:             "addWatch",
	OpWhoAmI:               "whoAmI",
	OpFeed:                 "feed",
	OpBranch:               "branch",
	OpRevisions:            "revisions",
	OpSyncWithin:           "syncWithin",
	OpTree:                 "tree",
	OpCreateSession:        "createSession",
	OpCloseSession:         "closeSession",
	OpError:                "error",
}

// String is the name in ZooDefs.OpCode, or unknown(n).
func (op OpCode) String() string {
	if name, ok := opNames[op]; ok {
		return name
	}
	return fmt.Sprintf("unknown(%d)", int32(op))
}

// ClientRequest reports whether a client may send op in a RequestHeader. A
// server answers any other type with UNIMPLEMENTED and closes the connection
// (Request.isValid; ZOOKEEPER-2623 for check). createSession, which ZooKeeper
// refuses only in a later check, is refused here.
func (op OpCode) ClientRequest() bool {
	switch op {
	case OpCreate, OpDelete, OpExists, OpGetData, OpSetData, OpGetACL, OpSetACL,
		OpGetChildren, OpSync, OpPing, OpGetChildren2, OpMulti, OpCreate2, OpReconfig,
		OpCheckWatches, OpRemoveWatches, OpCreateContainer, OpDeleteContainer, OpCreateTTL,
		OpMultiRead, OpAuth, OpSetWatches, OpSASL, OpGetEphemerals, OpGetAllChildrenNumber,
		OpSetWatches2, OpAddWatch, OpWhoAmI, OpFeed, OpBranch, OpTree, OpSyncWithin, OpCloseSession, OpRevisions:
		return true
	}
	return false
}

// Write reports whether op is a transaction: it goes through the log and takes
// a zxid.
func (op OpCode) Write() bool {
	switch op {
	case OpCreate, OpCreate2, OpCreateContainer, OpCreateTTL, OpDelete, OpDeleteContainer,
		OpSetData, OpSetACL, OpMulti, OpBranch, OpReconfig, OpCreateSession, OpCloseSession:
		return true
	}
	return false
}

// InMulti reports whether op may be part of a multi.
func (op OpCode) InMulti() bool {
	switch op {
	case OpCreate, OpCreate2, OpCreateContainer, OpCreateTTL, OpDelete, OpSetData, OpCheck:
		return true
	}
	return false
}

// InMultiRead reports whether op may be part of a multiRead.
func (op OpCode) InMultiRead() bool { return op == OpGetData || op == OpGetChildren }

// ResultType is the type of the result of op in the reply of a multi or
// multiRead, if op succeeded: create2 for every create with a Stat, op itself
// otherwise. Failed operations have OpError.
func (op OpCode) ResultType() OpCode {
	switch op {
	case OpCreateContainer, OpCreateTTL:
		return OpCreate2
	}
	return op
}
