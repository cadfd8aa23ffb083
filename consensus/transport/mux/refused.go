package mux

import "fmt"

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
