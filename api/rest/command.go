package rest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/server"
	"github.com/zk-lite/zk-lite/znode"
)

// maxKey bounds an Idempotency-Key: a UUID has 36 characters, and keys are kept in
// the memory of every server.
const maxKey = 256

// readKey reads the header Idempotency-Key.
func (q *Request) readKey(*Route) error {
	switch keys := q.HTTP.Header.Values(HeaderKey); {
	case len(keys) == 0:
	case len(keys) > 1:
		return BadRequest(HeaderKey, "given %d times; give it once", len(keys))
	case keys[0] == "" || len(keys[0]) > maxKey:
		return BadRequest(HeaderKey, "a key has 1 to %d bytes", maxKey)
	default:
		q.Key = keys[0]
	}
	return nil
}

// Do sends a command and waits for its result. A znode.Error of the command is not
// an error of do: see Result.Code.
//
// A request with an Idempotency-Key may send several commands, and then each has a
// key of its own. What it sends must follow from the request and from the results
// of the commands before, so that a repeated request sends the same commands and
// gets the same results.
func (q *Request) Do(c *state.Command) (state.Result, error) {
	if !q.Core.Server.Serving() {
		return state.Result{}, q.NotServing()
	}
	release, err := q.Core.enterWrite()
	if err != nil {
		return state.Result{}, err
	}
	defer release()
	c.Identities = q.IDs
	if q.Session != 0 && c.Session == 0 {
		c.Session = q.Session
		c.Flags |= state.FlagAnyServer
	}
	if q.Key != "" {
		c.Flags |= state.FlagKeyed
		c.Key = q.nextKey()
		if q.commands == 0 && !q.Repeats() { // who has begun goes on
			release, err := q.enterKey(c)
			if err != nil {
				return state.Result{}, err
			}
			defer release()
		}
	}
	q.commands++
	if q.Context.Err() != nil {
		return state.Result{}, Unavailable("the request timed out before it was sent to the log")
	}
	r, err := q.Core.Server.Do(q.Context, c)
	if errors.Is(err, znode.ErrConnectionLoss) && q.Key != "" {
		r, err = q.Core.Server.Do(q.Context, c) // it happened; the key brings the result
	}
	if err != nil {
		return r, UnknownOutcome(err, q.Key != "")
	}
	if r.Key != state.KeyRepeated {
		q.Core.Config.Audit.Change(q.auditClient(), c, &r)
	}
	q.SetZxid(r.Zxid)
	q.W.Header().Set(HeaderConsistency, ConsistencyLinearizable)
	switch r.Key {
	case state.KeyMismatch:
		return r, KeyMismatch()
	case state.KeyRepeated:
		q.W.Header().Set(HeaderReplayed, "true")
	case state.KeyFresh:
		q.W.Header().Del(HeaderReplayed) // the first time it did not get this far
	}
	switch r.Code {
	case znode.ErrSessionExpired, znode.ErrSessionMoved, znode.ErrSystem:
		return r, Failure{r.Code, ""}
	}
	return r, nil
}

// nextKey is the key of the next command of a request with an Idempotency-Key.
func (q *Request) nextKey() string {
	if q.commands == 0 {
		return q.Key
	}
	return q.Key + "\n" + strconv.Itoa(q.commands) // no header contains a line feed
}

// Repeats reports whether the next command is one whose result is known, because the
// Request is a repetition: then it does not matter any more whether it is permitted, and
// what it changed may have changed again. This server must be up to date.
func (q *Request) Repeats() (yes bool) {
	if q.Key != "" {
		q.View(func(v *server.View) { yes = v.Machine().Answered(q.nextKey()) })
	}
	return yes
}

// UnknownOutcome explains why there is no result.
func UnknownOutcome(err error, keyed bool) *Problem {
	lost := errors.Is(err, znode.ErrConnectionLoss)
	if !lost && !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, context.Canceled) {
		return Unavailable("this server is stopping") // it was not sent
	}
	hint := "check whether it has happened before you try again; with an " + HeaderKey +
		" trying again would be safe"
	if keyed {
		hint = "try again with the same " + HeaderKey + ": it will happen once"
	}
	why := fmt.Sprintf("no majority has answered within %v", RequestTimeout)
	if lost {
		why = "this server's state was replaced by a snapshot"
	}
	return &Problem{
		Status: http.StatusGatewayTimeout, Code: znode.ErrOperationTimeout,
		Title:  "outcome unknown",
		Detail: why + ": the change may or may not have happened, or may happen yet",
		Hint:   hint,
	}
}

// enterWrite takes a place for a command.
func (c *Core) enterWrite() (release func(), err error) {
	if c.writes.Add(1) > c.Config.Limits.Writes {
		c.writes.Add(-1)
		return nil, TooMany(1, "this server has %d commands in progress", c.Config.Limits.Writes)
	}
	return func() { c.writes.Add(-1) }, nil
}

// KeyMismatch is the problem of an Idempotency-Key that another request has used.
func KeyMismatch() *Problem {
	return &Problem{
		Status: http.StatusUnprocessableEntity, Code: znode.ErrBadArguments, Param: HeaderKey,
		Detail: HeaderKey + ": this key belongs to another request",
		Hint:   "a new request needs a new key",
	}
}
