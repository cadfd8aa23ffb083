package api

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
func (q *request) readKey(*route) error {
	switch keys := q.http.Header.Values(headerKey); {
	case len(keys) == 0:
	case len(keys) > 1:
		return badRequest(headerKey, "given %d times; once would do", len(keys))
	case keys[0] == "" || len(keys[0]) > maxKey:
		return badRequest(headerKey, "a key has 1 to %d bytes", maxKey)
	default:
		q.key = keys[0]
	}
	return nil
}

// do sends a command and waits for its result. A znode.Error of the command is not
// an error of do: see Result.Code.
//
// A request with an Idempotency-Key may send several commands, and then each has a
// key of its own. What it sends must follow from the request and from the results
// of the commands before, so that a repeated request sends the same commands and
// gets the same results.
func (q *request) do(c *state.Command) (state.Result, error) {
	if !q.door.srv.Serving() {
		return state.Result{}, q.notServing()
	}
	release, err := q.door.enterWrite()
	if err != nil {
		return state.Result{}, err
	}
	defer release()
	c.Identities = q.ids
	if q.session != 0 && c.Session == 0 {
		c.Session = q.session
		c.Flags |= state.FlagAnyServer
	}
	if q.key != "" {
		c.Flags |= state.FlagKeyed
		c.Key = q.nextKey()
	}
	q.commands++
	if q.ctx.Err() != nil {
		return state.Result{}, unavailable("the time for the request was over before it was sent")
	}
	r, err := q.door.srv.Do(q.ctx, c)
	if errors.Is(err, znode.ErrConnectionLoss) && q.key != "" {
		r, err = q.door.srv.Do(q.ctx, c) // it happened; the key brings the result
	}
	if err != nil {
		return r, unknownOutcome(err, q.key != "")
	}
	q.setZxid(r.Zxid)
	q.w.Header().Set(headerConsistency, consistencyLinearizable)
	switch r.Key {
	case state.KeyMismatch:
		return r, &problem{
			Status: http.StatusUnprocessableEntity, Code: znode.ErrBadArguments, Param: headerKey,
			Detail: headerKey + ": this key belongs to another request",
			Hint:   "a new request needs a new key",
		}
	case state.KeyRepeated:
		q.w.Header().Set(headerReplayed, "true")
	case state.KeyFresh:
		q.w.Header().Del(headerReplayed) // the first time it did not get this far
	}
	if r.Code == znode.ErrSessionExpired || r.Code == znode.ErrSessionMoved {
		return r, failure{r.Code, ""}
	}
	return r, nil
}

// nextKey is the key of the next command of a request with an Idempotency-Key.
func (q *request) nextKey() string {
	if q.commands == 0 {
		return q.key
	}
	return q.key + "\n" + strconv.Itoa(q.commands) // no header contains a line feed
}

// repeats reports whether the next command is one whose result is known, because the
// request is a repetition: then it does not matter any more whether it is permitted, and
// what it changed may have changed again. This server must be up to date.
func (q *request) repeats() (yes bool) {
	if q.key != "" {
		q.look(func(v *server.View) { yes = v.Machine().Answered(q.nextKey()) })
	}
	return yes
}

// unknownOutcome explains why there is no result.
func unknownOutcome(err error, keyed bool) *problem {
	lost := errors.Is(err, znode.ErrConnectionLoss)
	if !lost && !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, context.Canceled) {
		return unavailable("this server is stopping") // it was not sent
	}
	hint := "look whether it has happened before trying again; with an " + headerKey +
		" trying again would be safe"
	if keyed {
		hint = "try again with the same " + headerKey + ": it will happen once"
	}
	why := fmt.Sprintf("no majority has answered within %v", requestTimeout)
	if lost {
		why = "this server was brought up to date by a snapshot"
	}
	return &problem{
		Status: http.StatusGatewayTimeout, Code: znode.ErrOperationTimeout,
		Title:  "outcome unknown",
		Detail: why + ": the change may or may not have happened, or may happen yet",
		Hint:   hint,
	}
}

// enterWrite takes one of the door's places for commands.
func (d *Door) enterWrite() (release func(), err error) {
	if d.writes.Add(1) > maxWrites {
		d.writes.Add(-1)
		return nil, tooMany(1, "this server has %d commands on their way", maxWrites)
	}
	return func() { d.writes.Add(-1) }, nil
}
