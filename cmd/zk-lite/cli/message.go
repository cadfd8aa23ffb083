package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/zk-lite/zk-lite/client"
)

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
	case errors.Is(err, client.ErrUnimplemented):
		return fmt.Sprintf("%v; the server does not know the operation or has it switched off", err)
	}
	return ""
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
