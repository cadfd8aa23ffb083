package cli

import (
	"context"
	"errors"

	"github.com/zk-lite/zk-lite/client"
)

// The exit codes of the program. A command that runs another (lock, elect, join)
// exits with the code of that one, once it has run.
const (
	ExitOK          = 0
	ExitFailed      = 1 // anything that has no code of its own
	ExitUsage       = 2
	ExitNoNode      = 3 // nor such a server in the ensemble
	ExitConflict    = 4 // exists, another version, not empty, held by others
	ExitNoServer    = 5 // no connection, or it was lost
	ExitUnknown     = 6 // a write was sent and its answer lost
	ExitPartial     = 7 // done, but for znodes that may not be read
	ExitInterrupted = 130
)

// ExitHelp explains the codes at the end of the help.
const ExitHelp = `Exit codes: 0 done, 1 failed, 2 wrong usage, 3 no such znode, 4 conflict
(exists, other version, not empty, held by others), 5 no server or connection
lost, 6 outcome of a write unknown, 7 done but for znodes that may not be read,
130 interrupted.`

// errConflict is for conflicts that have no error code in the protocol.
var errConflict = errors.New("try again later, or wait")

// conflictError is a conflict, with advice.
type conflictError struct{ text string }

func (e *conflictError) Error() string { return e.text }
func (e *conflictError) Unwrap() error { return errConflict }

// usageError is a mistake in the command line.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

// exitError ends the program with a code, and with a message only if there is
// more to be said than has been.
type exitError struct {
	code int
	text string
}

func (e *exitError) Error() string { return e.text }

// Failed ends the program with ExitFailed when the command has printed why.
func Failed() error { return &exitError{code: ExitFailed} }

// ExitCode is the exit code for the error of a command.
func ExitCode(err error) int {
	var usage *usageError
	var exit *exitError
	var noMember *noMemberError
	httpCode, isHTTP := httpExitCode(err)
	is := func(targets ...error) bool {
		for _, t := range targets {
			if errors.Is(err, t) {
				return true
			}
		}
		return false
	}
	switch {
	case err == nil:
		return ExitOK
	case errors.As(err, &exit):
		return exit.code
	case errors.As(err, &usage):
		return ExitUsage
	case isHTTP:
		return httpCode
	case errors.As(err, &noMember):
		return ExitNoNode
	case is(client.ErrOutcomeUnknown):
		return ExitUnknown
	case is(client.ErrNoNode):
		return ExitNoNode
	case is(client.ErrNodeExists, client.ErrBadVersion, client.ErrNotEmpty, errConflict):
		return ExitConflict
	case is(errNoServer, client.ErrConnectionLoss, client.ErrSessionExpired, client.ErrNotClosed):
		return ExitNoServer
	case is(context.Canceled):
		return ExitInterrupted
	}
	return ExitFailed
}
