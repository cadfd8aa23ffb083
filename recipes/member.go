package recipes

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"sync"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/znode"
)

// Membership is an ephemeral znode that is kept: if the session is lost or the
// znode is deleted, Membership creates it again. All methods are safe for
// concurrent use.
type Membership struct {
	c    *client.Client
	path string
	acl  []client.ACL

	ctx  context.Context // of the keeper
	stop context.CancelFunc
	done chan struct{} // closed when the keeper has ended

	mu      sync.Mutex // protects the fields below
	data    []byte
	session client.Session // that owns the znode
	token   int64
	joined  bool
	err     error
}

// join creates the znode and starts to keep it. If a znode of that name belongs
// to another session, of another member or an earlier one of ours, join waits
// until it is deleted.
func join(
	ctx context.Context, c *client.Client, path string, data []byte, acl []client.ACL,
) (*Membership, error) {
	m := &Membership{c: c, path: path, acl: acl, data: data, done: make(chan struct{})}
	w, err := m.make(ctx)
	if err != nil {
		if ctx.Err() != nil { // in the middle of a creation, perhaps
			go func() { _ = m.removeOwn(context.Background(), c.Session()) }()
		}
		return nil, err
	}
	m.ctx, m.stop = context.WithCancel(context.Background())
	go m.keep(w)
	return m, nil
}

// Path is that of the znode.
func (m *Membership) Path() string { return m.path }

// FencingToken is the zxid of the transaction that created the znode, and 0 while the
// znode must be created again.
func (m *Membership) FencingToken() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.joined || m.session.Err() != nil { // the znode goes with its session
		return 0
	}
	return m.token
}

// Done returns a channel that is closed when the znode is no longer kept: after
// Leave, or because of an error.
func (m *Membership) Done() <-chan struct{} { return m.done }

// Err is the reason why the znode is no longer kept: client.ErrClosed, or that it may
// not be created. It is nil before that, and after Leave.
func (m *Membership) Err() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.err
}

// Set replaces the data, also for znodes that Membership creates later.
//
// Errors: ErrReleased after Leave, and Err's.
func (m *Membership) Set(ctx context.Context, data []byte) error {
	if m.ctx.Err() != nil {
		return cmp.Or(m.Err(), ErrReleased)
	}
	m.mu.Lock()
	m.data = data
	s := m.session
	m.mu.Unlock()
	ctx, cancel := s.Context(ctx)
	defer cancel()
	for {
		_, err := m.c.Set(ctx, m.path, data, client.AnyVersion)
		switch {
		case errors.Is(err, client.ErrOutcomeUnknown) && ctx.Err() == nil:
		case errors.Is(err, client.ErrNoNode) || s.Err() != nil && m.Err() == nil:
			return nil // the next znode has it
		default:
			return err
		}
	}
}

// Leave deletes the znode and stops keeping it. If ctx ends before that is
// certain, Leave returns its error and the deletion continues in the background.
// It is not an error if the znode no longer exists.
func (m *Membership) Leave(ctx context.Context) error {
	m.stop()
	<-m.done
	s := m.c.Session()
	err := m.removeOwn(ctx, s)
	switch {
	case err == nil || s.Err() != nil:
		return nil // deleted with the session; the keeper creates no other
	case ctx.Err() != nil:
		go func() { _ = m.removeOwn(context.Background(), s) }()
	}
	return err
}

// removeOwn deletes the znode if it belongs to a session. Another client may
// create one of the same name as soon as it is deleted, so removeOwn checks the
// owner before every attempt. The sync orders that check after a creation whose
// answer was lost.
func (m *Membership) removeOwn(ctx context.Context, s client.Session) error {
	ctx, cancel := s.Context(ctx)
	defer cancel()
	for {
		var exists bool
		var stat client.Stat
		err := afterSync(ctx, m.c, m.path, func() (err error) {
			exists, stat, err = m.c.Exists(ctx, m.path)
			return err
		}, nil)
		if err != nil {
			return err
		}
		if !exists || stat.EphemeralOwner != s.ID {
			return nil
		}
		err = m.c.Delete(ctx, m.path, client.AnyVersion)
		switch {
		case err == nil || errors.Is(err, client.ErrNoNode):
			return nil
		case !errors.Is(err, client.ErrOutcomeUnknown) || ctx.Err() != nil:
			return err
		}
	}
}

// keep is the keeper's goroutine.
func (m *Membership) keep(w *client.Watch) {
	defer close(m.done)
	defer m.stop()
	for {
		select {
		case <-w.C():
		case <-m.ctx.Done():
			w.Cancel()
			return
		}
		var err error
		if w, err = m.make(m.ctx); err != nil {
			m.mu.Lock()
			m.joined = false
			if m.ctx.Err() == nil {
				m.err = err
			}
			m.mu.Unlock()
			return
		}
	}
}

// make ensures that the znode exists, is ours and has the data, and sets a watch
// on it.
func (m *Membership) make(ctx context.Context) (*client.Watch, error) {
	for {
		w, err := m.try(ctx)
		if w != nil || err != nil && !startAgain(ctx, m.c, err) {
			return w, err
		}
	}
}

// try is one attempt of make. It returns neither a watch nor an error if make must
// try again.
func (m *Membership) try(ctx context.Context) (*client.Watch, error) {
	have, stat, w, err := m.c.GetW(ctx, m.path)
	if errors.Is(err, client.ErrNoNode) {
		return nil, m.create(ctx)
	}
	if err != nil {
		return nil, err
	}
	s := m.c.Session()
	if stat.EphemeralOwner != s.ID || s.ID == 0 || s.Err() != nil {
		m.setJoined(client.Session{}, 0)
		select {
		case <-w.C():
			return nil, nil
		case <-ctx.Done():
			w.Cancel()
			return nil, contextError(ctx)
		}
	}
	if m.setJoined(s, int64(stat.Czxid)); !m.current(have) {
		w.Cancel()
		return nil, m.Set(ctx, m.latest())
	}
	return w, nil
}

// create creates the znode. It is not an error if the znode exists, or may exist:
// its owner shows which session created it.
func (m *Membership) create(ctx context.Context) error {
	err := withParents(ctx, m.c, znode.Parent(m.path), m.acl, func() error {
		_, _, err := m.c.Create(ctx, m.path, m.latest(), client.Ephemeral, m.acl...)
		return err
	})
	unknown := errors.Is(err, client.ErrOutcomeUnknown) && ctx.Err() == nil
	if unknown || errors.Is(err, client.ErrNodeExists) {
		return nil
	}
	return err
}

func (m *Membership) setJoined(s client.Session, token int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.joined = token != 0; m.joined {
		m.session, m.token = s, token
	}
}

func (m *Membership) latest() []byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.data
}

func (m *Membership) current(have []byte) bool { return bytes.Equal(have, m.latest()) }
