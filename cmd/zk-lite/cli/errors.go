package cli

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/cmd/zk-lite/cli/httpapi"
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

// httpExitCode is the exit code for an error of the HTTP API.
func httpExitCode(err error) (code int, known bool) {
	var none *httpapi.UnreachableError
	var p *httpapi.Problem
	switch {
	case errors.Is(err, httpapi.ErrUnknown):
		return ExitUnknown, true
	case errors.As(err, &none):
		return ExitNoServer, true
	case !errors.As(err, &p):
		return 0, false
	case p.RetryAfter > 0:
		return ExitNoServer, true
	}
	switch p.Status {
	case http.StatusBadRequest:
		return ExitUsage, true
	case http.StatusNotFound:
		return ExitNoNode, true
	case http.StatusConflict, http.StatusPreconditionFailed:
		return ExitConflict, true
	}
	return ExitFailed, true
}

// Message is the text that the program prints for an error: what is wrong and, if that is
// known, what to do. It is empty if there is nothing to print.
func Message(err error) string {
	var exit *exitError
	if err == nil {
		return ""
	}
	if errors.As(err, &exit) {
		return exit.text
	}
	var part *partError
	if errors.As(err, &part) {
		text := fmt.Sprintf("%d znodes have been %s, then: %s", part.n, part.what, Message(part.err))
		if part.n == 0 {
			text = fmt.Sprintf("nothing has been %s: %s", part.what, Message(part.err))
		}
		if part.next != "" {
			text += "; " + part.next
		}
		return text
	}
	var op *client.OpError
	if errors.As(err, &op) {
		if text := opMessage(op, err); text != "" {
			return text
		}
	}
	if text := httpMessage(err); text != "" {
		return text
	}
	if errors.Is(err, context.Canceled) && ExitCode(err) == ExitInterrupted {
		return "interrupted"
	}
	return err.Error()
}

// opMessage explains the error of one operation. The whole error may say more
// than the operation does: which one of a transaction it was.
func opMessage(op *client.OpError, err error) string {
	name, path := op.Op, op.Path
	var multi *client.MultiError
	if errors.As(err, &multi) {
		name, path = multi.Op, multi.Path
	}
	switch {
	case errors.Is(err, client.ErrOutcomeUnknown):
		return fmt.Sprintf("%v; check whether it has happened before you repeat it", err)
	case errors.Is(err, client.ErrNoNode) && strings.HasPrefix(name, "create"):
		return fmt.Sprintf("the parent of %s does not exist; --parents makes it", path)
	case errors.Is(err, client.ErrNoNode):
		return "no such znode: " + path
	case errors.Is(err, client.ErrNodeExists):
		return fmt.Sprintf("%s exists already", path)
	case errors.Is(err, client.ErrBadVersion):
		return fmt.Sprintf("%s has another version than the one given; `stat %s` shows it", path, path)
	case errors.Is(err, client.ErrNotEmpty):
		return fmt.Sprintf("%s has children; `deleteall %s` deletes them, too", path, path)
	case errors.Is(err, client.ErrNoChildrenForEphemeral):
		return fmt.Sprintf("%s: an ephemeral znode cannot have children", path)
	case errors.Is(err, client.ErrInvalidACL):
		return fmt.Sprintf("%s: the server refuses the ACL; `auth` needs an identity (--auth)", path)
	case errors.Is(err, client.ErrNoAuth):
		return fmt.Sprintf("%s: not permitted; `getacl %s` shows the permissions, "+
			"--auth digest:user:password proves your identity", path, path)
	case errors.Is(err, client.ErrAuthFailed):
		return "the server refuses the identity; want a scheme it knows, as in digest user:password"
	case errors.Is(err, client.ErrSessionClosedNeedsSASL):
		return "the server asks for an identity (its enforce.auth.schemes): --auth digest:user:password, or --tls-cert"
	case errors.Is(err, client.ErrTooLarge) && multi == nil:
		return fmt.Sprintf("%v; `put` writes larger values in parts", err)
	case errors.Is(err, client.ErrUnimplemented):
		return fmt.Sprintf("%v; the server does not know the operation or has it switched off", err)
	}
	return ""
}

// httpMessage explains an error of the HTTP API; it is empty if err is not one.
func httpMessage(err error) string {
	var p *httpapi.Problem
	if errors.As(err, &p) && (p.Status == http.StatusUnauthorized || p.Status == http.StatusForbidden) {
		if p.NoToken != nil {
			return fmt.Sprintf("%s; %v; run the command as the server's user", p.Detail, p.NoToken)
		}
		return fmt.Sprintf("%s; %s", p.Detail, authHint)
	}
	var none *httpapi.UnreachableError
	if errors.As(err, &none) {
		return fmt.Sprintf("%v; start a server with `zk-lite dev`, or name the HTTP address of "+
			"another with --http or %s", none, httpVariable)
	}
	return ""
}

// authHint is what to do when the servers do not permit something.
const authHint = "give an administrator's credentials, as with --auth digest:super:password; " +
	"if no administrator is configured, run the command on the server's own machine, as the server's user"

// errConflict is for conflicts that have no error code in the protocol.
var errConflict = errors.New("try again later, or wait")

// conflictError is a conflict, with advice.
type conflictError struct{ text string }

func (e *conflictError) Error() string { return e.text }

func (e *conflictError) Unwrap() error { return errConflict }

// exitError ends the program with a code, and with a message only if there is
// more to be said than has been.
type exitError struct {
	code int
	text string
}

func (e *exitError) Error() string { return e.text }

// Failed ends the program with ExitFailed when the command has printed why.
func Failed() error { return &exitError{code: ExitFailed} }

// errNoServer reports that no server could be reached, or none for --timeout.
var errNoServer = errors.New("no server")

// noServerError is errNoServer with what to do about it.
type noServerError struct{ text string }

func (e *noServerError) Error() string { return e.text }

func (e *noServerError) Unwrap() error { return errNoServer }

// noServerAt is the noServerError of the servers that --server names; why may be nil.
func noServerAt(servers string, why error) error {
	reason := ""
	if why != nil {
		reason = fmt.Sprintf(" (%v)", why)
	}
	return &noServerError{fmt.Sprintf("no server at %s%s; start one with `zk-lite dev`, or name another with --server",
		hostsOf(servers), reason)}
}

// noMemberError reports a server that is not in the ensemble.
type noMemberError struct {
	id      int
	members []int
}

func (e *noMemberError) Error() string {
	return fmt.Sprintf("there is no server %d in the ensemble; its members are %v; "+
		"`zk-lite member list` shows them", e.id, e.members)
}

// partError ends something that is not one transaction: what has been done stays.
type partError struct {
	n    int
	what string // been done with so many znodes
	err  error
	next string // what to do; may be empty
}

func (e *partError) Error() string { return fmt.Sprintf("%d znodes %s, then: %v", e.n, e.what, e.err) }

func (e *partError) Unwrap() error { return e.err }

// interrupted reports whether an error only says that the user has ended what
// has no other end.
func interrupted(ctx context.Context, err error) bool {
	return err == nil || ctx.Err() != nil && ExitCode(err) == ExitInterrupted
}
