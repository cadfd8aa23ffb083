package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/zk-lite/zk-lite/znode"
)

// The errors that the protocol has no code for; compare with errors.Is.
var (
	// ErrOutcomeUnknown reports that a write was handed to the network and its
	// answer did not arrive: it may have happened, or may still happen. Any
	// other error of a write means that it did not happen. The error also wraps
	// the cause (ErrConnectionLoss, context.DeadlineExceeded, ...).
	ErrOutcomeUnknown = errors.New("the operation may or may not have happened")
	// ErrClosed reports that Close has been called.
	ErrClosed = errors.New("the client is closed")
	// ErrProtocol reports that a server sent bytes that the protocol does not
	// allow. The connection is dropped and operations are not tried again.
	ErrProtocol = errors.New("the server broke the protocol")
	// ErrTooLarge reports that a request exceeds the limit of WithMaxRequest.
	// It was not sent: a server would have closed the connection.
	ErrTooLarge = errors.New("the request is too large")
	// ErrWatchOverflow ends a persistent watch whose reader was too slow.
	ErrWatchOverflow = errors.New("the queue of the watch is full")
	// ErrWatchCancelled is Watch.Err after Cancel.
	ErrWatchCancelled = errors.New("the watch was cancelled")
	// ErrCacheClosed is Cache.Err after Close.
	ErrCacheClosed = errors.New("the cache is closed")
	// ErrCacheFull ends a Cache whose subtree has more znodes than allowed.
	ErrCacheFull = errors.New("the subtree has too many znodes for the cache")
	// ErrNotClosed is in the error of Close if no server answered: the session
	// and its ephemerals remain until the session expires.
	ErrNotClosed = errors.New("the session could not be closed and is left to expire")
)

// The errors of a client at a port of another kind. Connect returns one of them at once if all servers have such
// ports.
var (
	// ErrPortSpeaksTLS reports that a client without TLS connected to a port with TLS.
	ErrPortSpeaksTLS = errors.New("this port speaks TLS, and the client does not: give it TLS, or take another port")
	// ErrPortSpeaksPlain reports that a client with TLS connected to a port without
	// TLS.
	ErrPortSpeaksPlain = errors.New("this port does not speak TLS, and the client does: take the port with TLS")
	// ErrPortSpeaksHTTP reports that the client connected to a port of HTTP, such as zk-lite's for its HTTP API.
	ErrPortSpeaksHTTP = errors.New("this port speaks HTTP: take the one for ZooKeeper's clients, 2181 by default")
)

// The errors of the protocol; compare with errors.Is.
const (
	ErrAuthFailed             = znode.ErrAuthFailed
	ErrBadArguments           = znode.ErrBadArguments
	ErrBadVersion             = znode.ErrBadVersion
	ErrConnectionLoss         = znode.ErrConnectionLoss
	ErrEphemeralOnLocal       = znode.ErrEphemeralOnLocal
	ErrInvalidACL             = znode.ErrInvalidACL
	ErrMarshalling            = znode.ErrMarshalling
	ErrNewConfigNoQuorum      = znode.ErrNewConfigNoQuorum
	ErrNoAuth                 = znode.ErrNoAuth
	ErrNoChildrenForEphemeral = znode.ErrNoChildrenForEphemeral
	ErrNoNode                 = znode.ErrNoNode
	ErrNodeExists             = znode.ErrNodeExists
	ErrNotEmpty               = znode.ErrNotEmpty
	ErrNotReadOnly            = znode.ErrNotReadOnly
	ErrNoWatcher              = znode.ErrNoWatcher
	ErrQuotaExceeded          = znode.ErrQuotaExceeded
	ErrReconfigDisabled       = znode.ErrReconfigDisabled
	ErrReconfigInProgress     = znode.ErrReconfigInProgress
	ErrRuntimeInconsistency   = znode.ErrRuntimeInconsistency
	ErrSessionClosedNeedsSASL = znode.ErrSessionClosedNeedsSASL
	ErrSessionExpired         = znode.ErrSessionExpired
	ErrSessionMoved           = znode.ErrSessionMoved
	ErrSystem                 = znode.ErrSystem
	ErrThrottled              = znode.ErrThrottled
	ErrUnimplemented          = znode.ErrUnimplemented
)

// OpError is the error of every operation: its name, its path, and why it
// failed.
type OpError struct {
	Op   string // ZooKeeper's name of the operation: getData, create, ...
	Path string // as the caller gave it, without the chroot; "" if there is none
	Err  error  // a znode.Error, one of this package's errors, or a context's
}

// Error writes the operation, the path and the reason.
func (e *OpError) Error() string {
	if e.Path == "" {
		return fmt.Sprintf("%s: %v", e.Op, e.Err)
	}
	return fmt.Sprintf("%s %s: %v", e.Op, e.Path, e.Err)
}

// Unwrap returns the reason.
func (e *OpError) Unwrap() error { return e.Err }

// unknownOutcome adds ErrOutcomeUnknown to the reason why a write that was sent
// got no answer.
type unknownOutcome struct{ cause error }

func (e *unknownOutcome) Error() string {
	return fmt.Sprintf("%v: %v", ErrOutcomeUnknown, e.cause)
}

func (e *unknownOutcome) Unwrap() []error { return []error{ErrOutcomeUnknown, e.cause} }

// lostLink is the error of operations whose connection broke. It wraps
// ErrConnectionLoss and the cause.
type lostLink struct {
	server string
	cause  error
}

func (e *lostLink) Error() string {
	return fmt.Sprintf("connection to %s lost: %v", e.server, e.cause)
}

func (e *lostLink) Unwrap() []error { return []error{ErrConnectionLoss, e.cause} }

// protocolError is ErrProtocol with a description of the server's mistake.
func protocolError(format string, args ...any) error {
	return fmt.Errorf("%w: %w", ErrProtocol, fmt.Errorf(format, args...))
}

// contextError is the error of a context that is done: ctx.Err() for errors.Is,
// and its cause if that adds something.
func contextError(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if cause == nil || errors.Is(err, cause) {
		return err
	}
	return fmt.Errorf("%w: %w", err, cause)
}

func isWrongPort(err error) bool {
	return errors.Is(err, ErrPortSpeaksHTTP) || errors.Is(err, ErrPortSpeaksTLS) || errors.Is(err, ErrPortSpeaksPlain)
}

// portsMet has the servers of a round by host and port: the error that says that an address of it is a port of
// another kind, or nil.
type portsMet map[[2]string]error

func (p portsMet) note(t target, err error) {
	_, port, _ := net.SplitHostPort(t.address)
	server := [2]string{t.host, port}
	if !isWrongPort(err) {
		err = nil
	}
	p[server] = cmp.Or(p[server], err)
}

// all returns one of the errors if each server has one: then it is of no use to try again.
func (p portsMet) all() (err error) {
	for _, err = range p {
		if err == nil {
			return nil
		}
	}
	return err
}
