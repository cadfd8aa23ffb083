package rest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/server"
	"github.com/zk-lite/zk-lite/znode"
)

// maxKey bounds an Idempotency-Key: a UUID has 36 characters, and keys are kept in
// the memory of every server.
const maxKey = 256

// readKey reads the header Idempotency-Key.
func readKey(q *Request) error {
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
// an error of Do: see Result.Code.
//
// A request with an Idempotency-Key may send several commands, and then each has a
// key of its own. The commands must follow from the request and from the results
// of earlier commands, so that a repeated request sends the same commands and
// gets the same results.
func (q *Request) Do(c *state.Command) (state.Result, error) {
	if !q.Core.Server.Serving() {
		return state.Result{}, q.Core.NotServing()
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
		if q.commands == 0 && !q.Repeats() { // once begun, a request continues
			release, err := q.Core.enterKey(q.Address, c)
			if err != nil {
				return state.Result{}, err
			}
			defer release()
		}
	}
	if trace := traceOf(q); trace != "" {
		q.View(func(v *server.View) { c.SetTrace(trace, v.Machine().Level()) })
	}
	q.commands++
	if q.Context.Err() != nil {
		return state.Result{}, Unavailable("the request timed out before it was sent to the log")
	}
	r, err := q.Core.Server.Do(q.Context, c)
	if errors.Is(err, znode.ErrConnectionLoss) && q.Key != "" {
		r, err = q.Core.Server.Do(q.Context, c) // it was applied; the key finds the result
	}
	if err != nil {
		return r, UnknownOutcome(err, q.Key != "")
	}
	if r.Key != state.KeyRepeated {
		q.Core.Config.Audit.Change(auditClient(q), c, &r)
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
	case znode.ErrSessionExpired, znode.ErrSessionMoved, znode.ErrSystem, znode.ErrNotReadOnly:
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

// Repeats reports whether the result of the next command is known, because the request is a
// repetition: then permissions no longer matter, and the znodes may have changed again.
// This server must be up to date.
func (q *Request) Repeats() (yes bool) {
	if q.Key != "" {
		q.View(func(v *server.View) { yes = v.Machine().Answered(q.nextKey()) })
	}
	return yes
}

// UnknownOutcome explains why there is no result.
func UnknownOutcome(err error, keyed bool) *Problem {
	if errors.Is(err, server.ErrSourceLost) {
		return Unavailable(err.Error())
	}
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
		why = "this server's state was replaced by a snapshot, or the ZooKeeper ensemble that it mirrors has not " +
			"answered"
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

// KeyLife is for how long a key is known at least, however many others come. The state forgets the oldest when there is
// no room; this server takes no new ones for which it would forget a younger one than that.
const KeyLife = time.Minute

const (
	// A sixteenth of the state's room for keys is for those that other servers take meanwhile; addresses that have
	// taken more than keyShare of it within KeyLife leave a quarter to others.
	keyMargin, othersMargin = 16, 4
	keyShare                = 8
	// keyCost is the least number of bytes that a key counts for, as there is a bound for their number, too.
	keyCost = state.MaxKeyBytes / state.MaxKeys
)

// keyUse is which keys this server has taken.
type keyUse struct {
	mu          sync.Mutex // protects the fields below
	keys, bytes int        // of commands in progress
	since       time.Time  // when byAddress began
	byAddress   map[string]int
}

// enter counts a key whose answer takes n bytes. It returns the keys in progress and their bytes, this one included,
// and whether its address has taken more than its share.
func (u *keyUse) enter(address string, n int, now time.Time) (keys, bytes int, much bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.byAddress == nil || now.Sub(u.since) >= KeyLife {
		u.since, u.byAddress = now, map[string]int{}
	}
	u.byAddress[address] += max(n, keyCost)
	u.keys++
	u.bytes += n
	return u.keys, u.bytes, u.byAddress[address] > state.MaxKeyBytes/keyShare
}

func (u *keyUse) leave(n int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.keys--
	u.bytes -= n
}

// enterKey takes a place for a command with a key, which must be new. While there is no room for more without
// forgetting young ones, that is refused; while there is little, to addresses that have taken much.
func (c *Core) enterKey(address string, cmd *state.Command) (release func(), err error) {
	n, now := state.KeyBytes(cmd), time.Now()
	keys, bytes, much := c.keys.enter(address, n, now)
	margin := keyMargin
	if much {
		margin = othersMargin
	}
	var life time.Duration
	c.Server.View(func(v *server.View) {
		life = v.Machine().KeysKnownFor(keys+state.MaxKeys/margin, bytes+state.MaxKeyBytes/margin, now.UnixMilli())
	})
	if life < KeyLife {
		c.keys.leave(n)
		return nil, TooMany(1, "for this %s the ensemble would forget one that is younger than %v", HeaderKey, KeyLife)
	}
	return func() { c.keys.leave(n) }, nil
}

// What an answer had.
const (
	// ConsistencyLocal is the state of this server, which may be older than that of others.
	ConsistencyLocal = "local"
	// ConsistencyLinearizable is a state at least as new as any that was
	// acknowledged by any server before the request arrived.
	ConsistencyLinearizable = "linearizable"
)

// waitForConsistency waits until this server's state is as new as the request asks for. A
// request without one gets the local state, but only while this server is in
// touch with a majority: else it could be arbitrarily old without anyone noticing.
func waitForConsistency(q *Request) error {
	if q.operation.Local {
		return nil
	}
	min, err := q.Query.Zxid("min_zxid")
	if err != nil {
		return err
	}
	switch want := q.Query.Text("consistency"); {
	case q.Query.Has("max_stale"):
		if err := boundStaleness(q); err != nil {
			return err
		}
	case want == ConsistencyLinearizable:
		if err := q.Barrier(); err != nil {
			return err
		}
		q.W.Header().Set(HeaderConsistency, ConsistencyLinearizable)
	case want == ConsistencyLocal:
	case q.Query.Has("consistency"):
		return BadRequest("consistency", "%q is neither %s nor %s", want, ConsistencyLocal,
			ConsistencyLinearizable)
	case !q.Core.Server.Serving():
		return q.Core.NotServing()
	}
	return waitForMinZxid(q, min)
}

// waitForMinZxid waits until the state is of this zxid.
func waitForMinZxid(q *Request, min znode.Zxid) error {
	now, err := q.WaitForZxid(min)
	if err != nil {
		return err
	}
	if now < min {
		p := Unavailable("min_zxid: this ensemble has not reached " + min.String() +
			", it is at " + now.String())
		p.Title, p.Param = "not that far", "min_zxid"
		p.Hint = "use the Zk-Zxid of an earlier answer"
		return p
	}
	return nil
}

// WaitForZxid waits until the state is of this zxid, and returns the state's. A client has
// seen it in a reply of a server that had applied it, so a barrier brings it here, if
// this ensemble has ever reached it.
func (q *Request) WaitForZxid(min znode.Zxid) (now znode.Zxid, err error) {
	if now = q.Zxid(); min <= now {
		return now, nil
	}
	if err = q.Barrier(); err != nil {
		return now, err
	}
	return q.Zxid(), nil
}

// maxMaxStale bounds max_stale=.
const maxMaxStale = 24 * time.Hour

// boundStaleness makes sure that this server's state contains everything that was acknowledged max_stale= before the
// request came.
func boundStaleness(q *Request) error {
	if q.Query.Has("consistency") {
		return BadRequest("max_stale", "it cannot be combined with consistency; max_stale=0s is linearizable")
	}
	most, err := q.Query.Duration("max_stale", 0, 0, maxMaxStale)
	if err != nil {
		return err
	}
	var fresh *server.Freshness
	q.View(func(v *server.View) { fresh = v.Fresh() })
	known := false
	if q.asOf, known = fresh.Known(most); known {
		return nil
	}
	age := "of any age"
	if q.asOf.Known() {
		age = q.asOf.Age().Truncate(time.Millisecond).String() + " old"
	}
	q.asOf = server.Moment{}
	err = barrier(q, func(ctx context.Context) (err error) {
		q.asOf, err = fresh.Within(ctx, most)
		return err
	})
	var p *Problem
	if errors.As(err, &p) && p.Status == http.StatusServiceUnavailable {
		p.Title, p.Param = "too stale", "max_stale"
		p.Detail = "max_stale: this server's state may be " + age + ": " + p.Detail
		p.Hint = "try again, at another server, or with a larger max_stale; consistency=local reads what " +
			"this server has"
	}
	return err
}

// Barrier waits until this server has applied all that was acknowledged before.
func (q *Request) Barrier() error { return barrier(q, q.Core.Server.Barrier) }

func barrier(q *Request, wait func(context.Context) error) error {
	if !q.Core.Server.Serving() {
		return q.Core.NotServing()
	}
	release, err := q.Core.enterWrite()
	if err != nil {
		return err
	}
	defer release()
	switch err := wait(q.Context); {
	case errors.Is(err, server.ErrSourceLost):
		return Unavailable(err.Error())
	case err != nil:
		return Unavailable("no majority has answered in time")
	}
	q.Zxid()
	return nil
}

// NotServing is the problem of a request that this server does not take at the moment.
func (c *Core) NotServing() *Problem {
	if !c.Server.Draining() {
		return Unavailable("this server has no contact with a majority")
	}
	p := Unavailable("this server is about to be stopped")
	p.Title, p.Hint = "draining", "continue at another server; a session can be used at every server"
	return p
}
