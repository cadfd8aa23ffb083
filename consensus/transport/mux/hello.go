package mux

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
)

// Kind is the kind of a connection between two servers.
type Kind uint8

// The kinds of connection. The numbers travel on the wire.
const (
	KindRaft    Kind = 1 // hashicorp/raft's RPCs but AppendEntries
	KindStream  Kind = 2 // ordered commands for the leader
	KindControl Kind = 3 // bootstrap, joining, questions; allowed before an ensemble exists
	KindAppend  Kind = 4 // raft's AppendEntries
	KindHTTP    Kind = 5 // requests of one server's HTTP server to another's

	KindSnapshot Kind = 6 // raft's snapshots, which 1.0 takes on KindRaft
)

// NoServer is no server's id: the sender has none yet, or it does not care which server it reaches.
const NoServer uint64 = 255

// kinds bounds the arrays indexed by Kind.
const kinds = 7

// String is the name of k in messages for people.
func (k Kind) String() string {
	switch k {
	case KindRaft:
		return "raft"
	case KindStream:
		return "stream"
	case KindControl:
		return "control"
	case KindAppend:
		return "append"
	case KindHTTP:
		return "HTTP"
	case KindSnapshot:
		return "snapshot"
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

func (k Kind) valid() bool { return k >= KindRaft && k <= KindSnapshot }

// raft reports whether raft's RPCs travel on it: its end may be that of the leader.
func (k Kind) raft() bool { return k == KindRaft || k == KindAppend || k == KindSnapshot }

// The hello, all numbers big-endian:
//
//	magic "zkLP" | version u8 | length u16 | body
//	body of version 1: kind u8 | ensemble 16 bytes | from u64 | to u64
//
// and the answer, whose layout no later version may change:
//
//	magic "zkLA" | version u8 | code u8 (0 = admitted) | length u16 | reason, UTF-8
const (
	helloMagic   = "zkLP"
	answerMagic  = "zkLA"
	protoVersion = 1

	helloPrefix  = 4 + 1 + 2
	helloBody    = 1 + 16 + 8 + 8
	answerPrefix = 4 + 1 + 1 + 2

	// maxHelloBody is the largest size that a hello of any version may announce: enough for
	// names and addresses that a later version might add, too little to be useful in an attack.
	maxHelloBody = 1024
	// maxReason bounds the text of a refusal: a sentence or two.
	maxReason = 512
)

// errSilent reports that the connection ended or timed out before its first byte.
var errSilent = errors.New("nothing was sent")

// hello is the first message on a connection.
type hello struct {
	kind     Kind
	ensemble [16]byte // zero: the sender belongs to none yet
	from     uint64   // the sender's server id, NoServer when it has none yet
	to       uint64   // the id it wants to reach, NoServer when it does not care
}

// append encodes h in the current version.
func (h hello) append(b []byte) []byte {
	b = append(b, helloMagic...)
	b = append(b, protoVersion)
	b = binary.BigEndian.AppendUint16(b, helloBody)
	b = append(b, byte(h.kind))
	b = append(b, h.ensemble[:]...)
	b = binary.BigEndian.AppendUint64(b, h.from)
	return binary.BigEndian.AppendUint64(b, h.to)
}

// silence reports whether a connection without a hello has just ended, and not failed to prove itself.
func silence(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, net.ErrClosed) ||
		errors.Is(err, io.ErrClosedPipe) || errors.Is(err, syscall.ECONNRESET)
}

// readHello reads exactly one hello. A *RefusedError is an answer for the sender; any other error
// means that the sender is not of this protocol, or has closed.
func readHello(r io.Reader) (hello, error) {
	var prefix [helloPrefix]byte
	if n, err := io.ReadFull(r, prefix[:]); err != nil {
		if n == 0 && silence(err) {
			return hello{}, fmt.Errorf("%w: %w", errSilent, err)
		}
		return hello{}, fmt.Errorf("hello cut short after %d bytes: %w", n, err)
	}
	if string(prefix[:4]) != helloMagic {
		return hello{}, fmt.Errorf("not a hello: it starts with %q, want %q",
			prefix[:4], helloMagic)
	}
	version, size := prefix[4], int(binary.BigEndian.Uint16(prefix[5:]))
	if size > maxHelloBody {
		return hello{}, refuse(RefusedMalformed,
			"hello announces %d bytes, at most %d are allowed", size, maxHelloBody)
	}
	var buf [maxHelloBody]byte
	body := buf[:size]
	if n, err := io.ReadFull(r, body); err != nil {
		return hello{}, fmt.Errorf("hello cut short after %d of %d bytes: %w",
			helloPrefix+n, helloPrefix+size, err)
	}
	if version != protoVersion {
		return hello{}, refuse(RefusedVersion,
			"peer protocol version %d is not known here, want %d", version, protoVersion)
	}
	return decodeHelloBody(body)
}

func decodeHelloBody(b []byte) (hello, error) {
	if len(b) != helloBody {
		return hello{}, refuse(RefusedMalformed,
			"hello of version %d has %d bytes, want %d", protoVersion, len(b), helloBody)
	}
	h := hello{
		kind: Kind(b[0]),
		from: binary.BigEndian.Uint64(b[17:]),
		to:   binary.BigEndian.Uint64(b[25:]),
	}
	copy(h.ensemble[:], b[1:17])
	if !h.kind.valid() {
		return hello{}, refuse(RefusedMalformed,
			"connection of unknown %v, want raft (1), stream (2), control (3), append (4), HTTP (5) or snapshot (6)",
			h.kind)
	}
	return h, nil
}

// appendAnswer encodes the acceptor's answer; a nil refusal admits.
func appendAnswer(b []byte, refusal *RefusedError) []byte {
	code, reason := byte(0), ""
	if refusal != nil {
		code, reason = byte(refusal.Code), refusal.Reason
	}
	if len(reason) > maxReason {
		reason = reason[:maxReason]
	}
	b = append(b, answerMagic...)
	b = append(b, protoVersion, code)
	b = binary.BigEndian.AppendUint16(b, uint16(len(reason)))
	return append(b, reason...)
}

// readAnswer reads exactly one answer: nil if admitted, *RefusedError for a refusal.
func readAnswer(r io.Reader) error {
	var prefix [answerPrefix]byte
	if _, err := io.ReadFull(r, prefix[:]); err != nil {
		return fmt.Errorf("reading the answer to the hello: %w", err)
	}
	if string(prefix[:4]) != answerMagic {
		return fmt.Errorf("the answer to the hello starts with %q, want %q: "+
			"is this the peer port of a zk-lite server?", prefix[:4], answerMagic)
	}
	size := int(binary.BigEndian.Uint16(prefix[6:]))
	if size > maxReason {
		return fmt.Errorf("the answer to the hello announces %d bytes, at most %d are allowed",
			size, maxReason)
	}
	reason := make([]byte, size)
	if _, err := io.ReadFull(r, reason); err != nil {
		return fmt.Errorf("reading the reason of a refusal: %w", err)
	}
	if prefix[5] == 0 {
		return nil
	}
	return &RefusedError{Code: RefusalCode(prefix[5]), Reason: string(reason)}
}

// RefusalCode is why a server refused a connection. The numbers travel on the wire.
type RefusalCode uint8

// The reasons to refuse a connection.
const (
	RefusedMalformed RefusalCode = 1 // the hello cannot be decoded
	RefusedVersion   RefusalCode = 2 // another version of the peer protocol
	RefusedNotFormed RefusalCode = 3 // the acceptor belongs to no ensemble yet
	RefusedEnsemble  RefusalCode = 4 // the two belong to different ensembles
	RefusedServer    RefusalCode = 5 // the acceptor is not the server that was wanted
	RefusedBusy      RefusalCode = 6 // a bound is reached; later may succeed
	RefusedCut       RefusalCode = 7 // the acceptor takes no part in raft at the moment
	RefusedKind      RefusalCode = 8 // the acceptor takes no connections of this kind
)

// String is the name of c in messages for people.
func (c RefusalCode) String() string {
	switch c {
	case RefusedMalformed:
		return "malformed hello"
	case RefusedVersion:
		return "unknown version"
	case RefusedNotFormed:
		return "belongs to no ensemble yet"
	case RefusedEnsemble:
		return "wrong ensemble"
	case RefusedServer:
		return "wrong server"
	case RefusedBusy:
		return "busy"
	case RefusedCut:
		return "raft connections cut"
	case RefusedKind:
		return "not served"
	}
	return fmt.Sprintf("refusal %d", uint8(c))
}

// RefusedError is what Mux.Dial returns when the other server answered the hello with a refusal.
// Nothing was exchanged on the connection beyond that.
type RefusedError struct {
	Addr   string // that was dialled; empty on the acceptor's side
	Code   RefusalCode
	Reason string // as the acceptor gave it
}

// Error names the server that refused, and its reason.
func (e *RefusedError) Error() string {
	if e.Addr == "" {
		return fmt.Sprintf("refused (%v): %s", e.Code, e.Reason)
	}
	return fmt.Sprintf("%s refused the connection (%v): %s", e.Addr, e.Code, e.Reason)
}

func refuse(code RefusalCode, format string, args ...any) *RefusedError {
	return &RefusedError{Code: code, Reason: fmt.Sprintf(format, args...)}
}
