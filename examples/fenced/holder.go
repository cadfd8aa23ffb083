package main

import (
	"context"
	"errors"
	"net"
	"sync"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/recipes"
)

// Resource is what holders work on; Store is one.
type Resource interface {
	Read(token int64, name string) (int, error)
	Write(token int64, name string, value int) error
}

// Holder adds to numbers under a lock.
type Holder struct {
	mutex    *recipes.Mutex
	resource Resource
	// Think happens between reading and writing. The holder cannot prevent a
	// pause there.
	Think func(context.Context)
}

// NewHolder returns a holder of the lock at path.
func NewHolder(c *client.Client, path string, r Resource) *Holder {
	return &Holder{
		mutex: recipes.NewMutex(c, path), resource: r, Think: func(context.Context) {},
	}
}

// Add adds one to a number, and returns the sum.
//
// Errors: ErrStale if the lock was lost and another holder has used the
// resource; then nothing was added.
func (h *Holder) Add(ctx context.Context, name string) (int, error) {
	grant, err := h.mutex.Lock(ctx)
	if err != nil {
		return 0, err
	}
	sum, err := h.addUnder(ctx, grant.FencingToken(), name)
	if rerr := grant.Release(ctx); !errors.Is(rerr, recipes.ErrLost) {
		// The loss of the lock is not an error here: the store has decided
		// whether it matters.
		err = errors.Join(err, rerr)
	}
	return sum, err
}

func (h *Holder) addUnder(ctx context.Context, token int64, name string) (int, error) {
	value, err := h.resource.Read(token, name)
	if err != nil {
		return 0, err
	}
	h.Think(ctx)
	value++
	return value, h.resource.Write(token, name, value)
}

// Wire is a client's dialer that can go dead, like a network, or a paused
// process as others see it.
type Wire struct {
	mu    sync.Mutex // protects the fields below
	dead  bool
	conns []net.Conn
}

// Dial is a client.DialFunc.
func (w *Wire) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.dead {
		conn.Close()
		return nil, errors.New("the wire is dead")
	}
	w.conns = append(w.conns, conn)
	return conn, nil
}

// Die breaks the connections, and refuses new ones until Revive.
func (w *Wire) Die() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.dead = true
	for _, conn := range w.conns {
		conn.Close()
	}
	w.conns = nil
}

// Revive allows connections again.
func (w *Wire) Revive() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.dead = false
}
