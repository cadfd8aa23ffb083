package appendrpc

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/hashicorp/raft"
)

// The messages on an append connection, all numbers big-endian. The leader sends
//
//	length u32 of what follows | version u8 | form u8 | raft's protocol version u8
//	term u64 | previous index u64 | previous term u64 | commit index u64
//	id, address, leader: each length u16, bytes
//	count u32 | entries
//	entry: index u64 | term u64 | type u8 | appended at: seconds u64, nanoseconds u32
//	       length of extensions u32 | length of data u32 | extensions | data
//
// and gets, for each request in order and for no notice,
//
//	length u32 of what follows | version u8 | raft's protocol version u8 | flags u8 | term u64 | last index u64
//	id, address: each length u16, bytes
//	the reason of a failure, UTF-8, to the end
const (
	wireVersion = 1

	formRequest = 1 // is answered
	formNotice  = 2 // is not

	requestHead = 3 + 4*8
	entryHead   = 8 + 8 + 1 + 8 + 4 + 4 + 4
	answerHead  = 3 + 2*8

	flagSuccess = 1
	flagNoRetry = 2
	flagFailed  = 4

	// maxRequest bounds a request that is read.
	maxRequest = 1<<31 - 1
	// maxEntries bounds the entries of a request that is sent, in bytes, unless there is one only: raft puts up to
	// MaxAppendEntries entries into one, however long they are (an entry may hold state.MaxCommand).
	maxEntries = 64 << 20
	// readStep is the most memory that is allocated for an announced length at once: the rest is
	// allocated as bytes arrive.
	readStep = 1 << 20
	// maxAnswer holds two names and a sentence.
	maxAnswer = 4096
	// maxReason bounds that sentence.
	maxReason = 512
)

// ErrMalformed is wrapped by the error of bytes that no server of this version sends.
var ErrMalformed = errors.New("malformed")

func checkVersion(v byte, of string) error {
	if v != wireVersion {
		return fmt.Errorf("%w: %s of AppendEntries has version %d, want %d: the other server runs a release "+
			"that is no "+
			"neighbour of this one", ErrMalformed, of, v, wireVersion)
	}
	return nil
}

// requestSize is how many bytes follow the length of a request.
func requestSize(req *raft.AppendEntriesRequest) int {
	n := requestHead + 3*2 + len(req.ID) + len(req.Addr) + 4
	n += len(req.Leader) //nolint:staticcheck // raft still sends and checks it
	for _, e := range req.Entries {
		n += entryHead + len(e.Extensions) + len(e.Data)
	}
	return n
}

// Fit takes as many entries out of req as are too much for one request. Raft sends them in its next.
func Fit(req *raft.AppendEntriesRequest) {
	bytes := 0
	for i, e := range req.Entries {
		if bytes += entryHead + len(e.Extensions) + len(e.Data); bytes > maxEntries && i > 0 {
			req.Entries = req.Entries[:i]
			return
		}
	}
}

// writeRequest writes req, and all that was written before it, through w.
func writeRequest(w *bufio.Writer, form byte, req *raft.AppendEntriesRequest) error {
	leader := req.Leader //nolint:staticcheck // raft still sends and checks it
	size := requestSize(req)
	if size > maxRequest {
		return fmt.Errorf("a request of %d bytes; %d are possible", size, maxRequest)
	}
	b := binary.BigEndian.AppendUint32(w.AvailableBuffer(), uint32(size))
	b = append(b, wireVersion, form, byte(req.ProtocolVersion))
	b = binary.BigEndian.AppendUint64(b, req.Term)
	b = binary.BigEndian.AppendUint64(b, req.PrevLogEntry)
	b = binary.BigEndian.AppendUint64(b, req.PrevLogTerm)
	b = binary.BigEndian.AppendUint64(b, req.LeaderCommitIndex)
	b = appendName(b, req.ID)
	b = appendName(b, req.Addr)
	b = appendName(b, leader)
	b = binary.BigEndian.AppendUint32(b, uint32(len(req.Entries)))
	_, _ = w.Write(b) // the first error stays, and Flush returns it
	for _, e := range req.Entries {
		b = binary.BigEndian.AppendUint64(w.AvailableBuffer(), e.Index)
		b = binary.BigEndian.AppendUint64(b, e.Term)
		b = append(b, byte(e.Type))
		b = binary.BigEndian.AppendUint64(b, uint64(e.AppendedAt.Unix()))
		b = binary.BigEndian.AppendUint32(b, uint32(e.AppendedAt.Nanosecond()))
		b = binary.BigEndian.AppendUint32(b, uint32(len(e.Extensions)))
		b = binary.BigEndian.AppendUint32(b, uint32(len(e.Data)))
		_, _ = w.Write(b)
		_, _ = w.Write(e.Extensions)
		_, _ = w.Write(e.Data)
	}
	return w.Flush()
}

// readRequest reads one request. Its entries share one block of memory, which is new.
func readRequest(r *bufio.Reader) (form byte, req *raft.AppendEntriesRequest, err error) {
	body, err := readFrame(r, requestHead, maxRequest)
	if err != nil {
		return 0, nil, err
	}
	return decodeRequest(body)
}

func decodeRequest(body []byte) (form byte, req *raft.AppendEntriesRequest, err error) {
	b := unread{b: body}
	if err := checkVersion(b.byte(), "a request"); err != nil {
		return 0, nil, err
	}
	form = b.byte()
	req = &raft.AppendEntriesRequest{RPCHeader: raft.RPCHeader{
		ProtocolVersion: raft.ProtocolVersion(b.byte()),
	}}
	req.Term, req.PrevLogEntry, req.PrevLogTerm = b.uint64(), b.uint64(), b.uint64()
	req.LeaderCommitIndex = b.uint64()
	req.ID, req.Addr = b.name(), b.name()
	req.Leader = b.name() //nolint:staticcheck // as above
	count := int(b.uint32())
	if count > len(b.b)/entryHead {
		return 0, nil, fmt.Errorf("%w: %d entries announced, in %d bytes", ErrMalformed, count, len(b.b))
	}
	if count > 0 {
		entries := make([]raft.Log, count)
		req.Entries = make([]*raft.Log, count)
		for i := range entries {
			b.entry(&entries[i])
			req.Entries[i] = &entries[i]
		}
	}
	switch {
	case b.short:
		return 0, nil, fmt.Errorf("%w: request of %d bytes is cut short", ErrMalformed, len(body))
	case len(b.b) > 0:
		return 0, nil, fmt.Errorf("%w: %d extra bytes after a request", ErrMalformed, len(b.b))
	case form != formRequest && form != formNotice:
		return 0, nil, fmt.Errorf("%w: unknown form %d of a request, want %d or %d",
			ErrMalformed, form, formRequest, formNotice)
	}
	return form, req, nil
}

// writeAnswer writes raft's answer.
func writeAnswer(w io.Writer, r raft.RPCResponse) error {
	resp, ok := r.Response.(*raft.AppendEntriesResponse)
	if !ok {
		resp = &raft.AppendEntriesResponse{}
	}
	var flags byte
	if resp.Success {
		flags |= flagSuccess
	}
	if resp.NoRetryBackoff {
		flags |= flagNoRetry
	}
	reason := ""
	if r.Error != nil {
		flags |= flagFailed
		reason = r.Error.Error()
		reason = reason[:min(len(reason), maxReason)]
	}
	b := make([]byte, 4, 64+len(resp.ID)+len(resp.Addr)+len(reason))
	b = append(b, wireVersion, byte(resp.ProtocolVersion), flags)
	b = binary.BigEndian.AppendUint64(b, resp.Term)
	b = binary.BigEndian.AppendUint64(b, resp.LastLog)
	b = appendName(b, resp.ID)
	b = appendName(b, resp.Addr)
	b = append(b, reason...)
	binary.BigEndian.PutUint32(b, uint32(len(b)-4))
	_, err := w.Write(b)
	return err
}

// readAnswer reads one answer. A *DeclinedError is an error of the other server's raft; the
// connection can be used again.
func readAnswer(r *bufio.Reader, resp *raft.AppendEntriesResponse) error {
	body, err := readFrame(r, answerHead, maxAnswer)
	if err != nil {
		return err
	}
	return decodeAnswer(body, resp)
}

func decodeAnswer(body []byte, resp *raft.AppendEntriesResponse) error {
	b := unread{b: body}
	if err := checkVersion(b.byte(), "an answer"); err != nil {
		return err
	}
	resp.ProtocolVersion = raft.ProtocolVersion(b.byte())
	flags := b.byte()
	resp.Term, resp.LastLog = b.uint64(), b.uint64()
	resp.ID, resp.Addr = b.name(), b.name()
	if b.short {
		return fmt.Errorf("%w: answer of %d bytes is cut short", ErrMalformed, len(body))
	}
	resp.Success, resp.NoRetryBackoff = flags&flagSuccess != 0, flags&flagNoRetry != 0
	if flags&flagFailed != 0 {
		return &DeclinedError{reason: string(b.b)}
	}
	return nil
}

// DeclinedError is an error of the other server's raft.
type DeclinedError struct{ reason string }

func (e *DeclinedError) Error() string { return e.reason }

// readFrame reads a length between least and most and as many bytes, which are new.
func readFrame(r *bufio.Reader, least, most uint32) ([]byte, error) {
	head, err := r.Peek(4)
	if err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(head)
	_, _ = r.Discard(4)
	if n < least || n > most {
		return nil, fmt.Errorf("%w: %d bytes announced; %d to %d are possible", ErrMalformed, n, least, most)
	}
	if n > readStep {
		body, err := io.ReadAll(io.LimitReader(r, int64(n)))
		if err == nil && len(body) < int(n) {
			err = io.ErrUnexpectedEOF
		}
		return body, err
	}
	body := make([]byte, n)
	_, err = io.ReadFull(r, body)
	return body, err
}

func appendName(b, name []byte) []byte {
	name = name[:min(len(name), 1<<16-1)] // a decimal number, and host and port
	return append(binary.BigEndian.AppendUint16(b, uint16(len(name))), name...)
}

// unread is the rest of a message. A field that is not there reads as zero, and sets short.
type unread struct {
	b     []byte
	short bool
}

// take returns the next n bytes, without room to append.
func (u *unread) take(n int) []byte {
	if n < 0 || n > len(u.b) {
		u.b, u.short = nil, true
		return nil
	}
	b := u.b[:n:n]
	u.b = u.b[n:]
	return b
}

func (u *unread) byte() byte {
	if b := u.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (u *unread) uint32() uint32 {
	if b := u.take(4); b != nil {
		return binary.BigEndian.Uint32(b)
	}
	return 0
}

func (u *unread) uint64() uint64 {
	if b := u.take(8); b != nil {
		return binary.BigEndian.Uint64(b)
	}
	return 0
}

// name is nil where it is empty, as it is in a request that was not sent.
func (u *unread) name() []byte {
	b := u.take(2)
	if b == nil {
		return nil
	}
	return u.bytes(int(binary.BigEndian.Uint16(b)))
}

func (u *unread) bytes(n int) []byte {
	if n == 0 {
		return nil
	}
	return u.take(n)
}

func (u *unread) entry(e *raft.Log) {
	e.Index, e.Term, e.Type = u.uint64(), u.uint64(), raft.LogType(u.byte())
	seconds, nanos := int64(u.uint64()), int64(u.uint32())
	e.AppendedAt = time.Unix(seconds, nanos).UTC()
	extensions, data := int(u.uint32()), int(u.uint32())
	e.Extensions, e.Data = u.bytes(extensions), u.bytes(data)
}
