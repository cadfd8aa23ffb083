package recipes

import "github.com/zk-lite/zk-lite/client"

// Option changes a default of a recipe.
type Option func(*options)

type options struct {
	data      []byte
	acl       []client.ACL
	strict    bool
	reentrant bool
	claims    string
}

func newOptions(opts []Option) options {
	var o options
	for _, opt := range opts {
		opt(&o)
	}
	return o
}

// WithData stores data in the znode of every grant: who holds it, and where to
// reach them. Elections, locks, semaphores and double barriers
// have it.
func WithData(data []byte) Option { return func(o *options) { o.data = data } }

// WithACL gives the znodes that a recipe makes, and the parents that it makes for
// them, an access control list. By default everybody may do everything.
func WithACL(acl ...client.ACL) Option { return func(o *options) { o.acl = acl } }

// WithLossOnSuspension makes a grant lost as soon as its client has no
// connection. By default it is lost when the session is: within the session
// timeout no other client can get it, and giving it up at every short interruption
// costs more than it gains where taking over is slow. Elections, locks and
// semaphores have it.
func WithLossOnSuspension() Option { return func(o *options) { o.strict = true } }

// WithReentrance makes a Mutex grant itself again, at once, to a caller with
// a context of a grant of the same Mutex (Grant.Context). It is free again when
// all those grants have been released.
func WithReentrance() Option { return func(o *options) { o.reentrant = true } }

// WithClaimPath sets where consumers of a queue leave the znodes by which they
// claim items (Curator's QueueBuilder.lockPath). All consumers of a queue must use
// the same. The default is the path of the queue with "-claims" behind it.
func WithClaimPath(path string) Option { return func(o *options) { o.claims = path } }
