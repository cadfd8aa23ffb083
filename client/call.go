package client

import (
	"context"
	"errors"
	"time"

	"github.com/zk-lite/zk-lite/internal/jute"
	"github.com/zk-lite/zk-lite/internal/wire"
	"github.com/zk-lite/zk-lite/znode"
)

// operation is a request in the queue. Most are an op; requests or results that
// are assembled from parts have types of their own.
type operation interface {
	base() *call
	// request is the body to send. It is encoded again if the connection breaks
	// before the body is handed to the network.
	request() wire.Request
	// decode reads the body of a reply without error, on the reader's
	// goroutine. It may set call.err.
	decode(r *jute.Reader)
}

// call is the part of an operation that does not depend on its type.
type call struct {
	// Set before the operation is queued.
	c     *Client
	path  string // as the caller gave it
	full  string // as sent: with the chroot
	size  int    // bytes that it counts for in the queue
	watch *Watch // to be registered if the server has armed it
	marks *Watch // whose count of events is copied to mark; nil for none
	// settledLocked, if not nil, is called with the reply's code and c.mu held,
	// before the next frame is handled.
	settledLocked func(znode.Error)
	done          chan struct{}
	op            wire.OpCode
	internal      bool // the client's own: exempt from the queue's bounds

	// Protected by Client.mu while the operation is queued.
	abandoned bool // no caller waits for it
	missing   bool // exists, and the answer is that the znode does not
	xid       wire.Xid
	at        time.Duration // not later than the moment it was sent, on c.clock

	// Written before done is closed, read after.
	zxid znode.Zxid // of the reply, or 0
	mark uint64     // marks.pushed at the time of the reply (Cache)
	err  error      // without operation and path
}

func (p *call) base() *call { return p }

// requestOverhead is added to the length of paths and data to get the size of a
// request: length, header, and the small fields of any body.
const requestOverhead = 64

func newCall(c *Client, code wire.OpCode) call {
	return call{c: c, op: code, size: requestOverhead, done: make(chan struct{})}
}

// fullPath returns the path to send for the one that the caller gave. If that is
// not valid, submit fails the operation.
func (p *call) fullPath(path string) string { return p.checkedPath(path, path) }

// newPath is fullPath for a znode to create: a sequential one is checked with the
// number that the server appends.
func (p *call) newPath(path string, mode Mode) string {
	if mode.Sequential() {
		return p.checkedPath(path, path+"0")
	}
	return p.checkedPath(path, path)
}

func (p *call) checkedPath(path, check string) string {
	p.path, p.full = path, p.c.abs(path)
	p.size += len(p.full)
	p.err = znode.ValidatePath(check)
	return p.full
}

// setWatch makes the operation set a one-shot watch on its path, if one is wanted.
func (p *call) setWatch(wanted bool, kind watchKind) {
	if wanted {
		p.watch = newWatch(p.c, p.full, kind, 1)
	}
}

// complete ends the operation. The first error stays.
func (p *call) complete(err error) {
	if p.err == nil {
		p.err = err
	}
	close(p.done)
}

// wrap adds operation and path to an error.
func (p *call) wrap(err error) error {
	if err == nil {
		return nil
	}
	return &OpError{Op: p.op.String(), Path: p.path, Err: err}
}

// lost is the error of an operation that was sent and got no answer.
func (p *call) lost(cause error) error {
	if p.op.Write() {
		return &unknownOutcome{cause}
	}
	return cause
}

// Pending is an operation that has been submitted and may not have been
// answered yet. Operations complete in the order in which they were submitted.
// All methods are safe for concurrent use.
type Pending[T any] struct {
	call
	value T
}

// Done returns a channel that is closed when the operation has been answered or
// has failed.
func (p *Pending[T]) Done() <-chan struct{} { return p.done }

// Wait returns the result of the operation, or an *OpError. If ctx ends first,
// Wait returns its error and the operation continues: Wait may be called again.
func (p *Pending[T]) Wait(ctx context.Context) (T, error) {
	select {
	case <-p.done:
		return p.result()
	default:
	}
	select {
	case <-p.done:
		return p.result()
	case <-ctx.Done():
		var zero T
		return zero, p.wrap(contextError(ctx))
	}
}

func (p *Pending[T]) result() (T, error) {
	if p.err != nil {
		var zero T
		return zero, p.wrap(p.err)
	}
	return p.value, nil
}

// Zxid returns the zxid in the reply's header, once Done is closed: that of the
// transaction for a write (also for one that was refused), and the last one that
// the server had applied for a read. It is 0 if there was no reply.
func (p *Pending[T]) Zxid() Zxid {
	select {
	case <-p.done:
		return p.zxid
	default:
		return 0
	}
}

// await is Wait for the synchronous form: if ctx ends, no one will ask for the
// result again.
func (p *Pending[T]) await(ctx context.Context) (T, error) {
	select {
	case <-p.done:
	case <-ctx.Done():
		if err, gone := p.c.abandon(&p.call, contextError(ctx)); gone {
			var zero T
			return zero, p.wrap(err)
		}
		<-p.done // the answer came first
	}
	return p.result()
}

// body is a pointer to a request of type Req.
type body[Req any] interface {
	*Req
	wire.Request
}

// op is an operation with a request of type Req and a result of type T. R is
// always *Req.
type op[Req, T any, R body[Req]] struct {
	Pending[T]
	req   Req
	reply func(p *call, r *jute.Reader) T // reads the body of a reply without error
}

// newOp returns an operation without its request. reply may set p.err.
func newOp[Req, T any, R body[Req]](
	c *Client, code wire.OpCode, reply func(p *call, r *jute.Reader) T,
) *op[Req, T, R] {
	return &op[Req, T, R]{Pending: Pending[T]{call: newCall(c, code)}, reply: reply}
}

func (o *op[Req, T, R]) request() wire.Request { return R(&o.req) }

func (o *op[Req, T, R]) decode(r *jute.Reader) { o.value = o.reply(&o.call, r) }

// submit queues the operation.
func (o *op[Req, T, R]) submit(ctx context.Context) *Pending[T] {
	o.c.submit(ctx, o)
	return &o.Pending
}

// noResult is for replies of which only the code matters.
func noResult(*call, *jute.Reader) struct{} { return struct{}{} }

// maxReadTries bounds how often a read is sent when connections break before
// the answer. Each try needs a new connection, so more than a few mean that the
// read itself breaks it.
const maxReadTries = 4

// read is the synchronous form of an operation that changes nothing: if the
// connection breaks, it is sent again.
func read[T any](ctx context.Context, start func() *Pending[T]) (T, error) {
	for try := 1; ; try++ {
		p := start()
		v, err := p.await(ctx)
		if err == nil || try == maxReadTries || !retryable(err) || ctx.Err() != nil {
			return v, err
		}
	}
}

// retryable reports whether the answer was lost with its connection, for a
// reason that another connection probably does not share.
func retryable(err error) bool {
	var lost *lostLink
	return errors.As(err, &lost) && !errors.Is(lost.cause, ErrProtocol) &&
		!errors.Is(lost.cause, ErrSessionExpired) && !errors.Is(lost.cause, ErrClosed)
}

// write is the synchronous form of an operation that changes something: sent at
// most once.
func write[T any](ctx context.Context, p *Pending[T]) (T, error) { return p.await(ctx) }
