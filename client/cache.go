package client

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/zk-lite/zk-lite/znode"
)

// The bounds of a Cache.
const (
	// DefaultCacheNodes is how many znodes a Cache holds at most, about a
	// gigabyte with small data.
	DefaultCacheNodes = 1 << 20
	// cacheQueue is the queue of the cache's watch. The cache empties it also
	// while it waits for replies, so it fills only if the events come faster
	// than they can be read from a channel.
	cacheQueue = 4096
	// cacheChunk is how many znodes are read at a time, two requests each.
	cacheChunk = 256
)

// CacheNode is a znode as a Cache holds it. Do not modify the data.
type CacheNode struct {
	Path string
	Data []byte
	Stat Stat
}

// Cache is a copy of a subtree that follows its changes. It sets one recursive
// watch and reads again what the watch reports, so it converges to the server's
// state but does not show every intermediate one. After a reconnection, a lost
// session or an overflow of the watch it reads everything again. It leaves out
// znodes that the client may not read; a changed ACL shows only when everything
// is read again.
//
// All methods are safe for concurrent use.
type Cache struct {
	// Set at construction.
	c      *Client
	root   string
	max    int
	ctx    context.Context
	cancel context.CancelFunc
	wake   chan struct{} // capacity 1: a caller waits for a newer zxid
	done   chan struct{} // closed when the goroutine has ended

	// Owned by the goroutine (run).
	taken     uint64      // events taken from the watch
	candidate cacheMark   // becomes zxid once its events are processed
	reading   []cacheRead // scratch

	mu sync.Mutex // protects the fields below; may be held while taking Client.mu

	watch     *Watch
	processed uint64 // events of watch that the nodes reflect
	tree      cacheTree
	zxid      Zxid
	readings  uint64 // how often all was read through a new watch, from 1
	err       error
	changed   chan struct{} // closed at the next change
}

// cacheMark means that a cache that has processed this many events of its watch
// holds every change up to zxid: the reply with that zxid came after them.
type cacheMark struct {
	zxid   Zxid
	events uint64
}

type cacheRead struct {
	path string
	get  *Pending[GetReply]
	list *Pending[ChildrenReply]
}

// CacheOption changes a default of NewCache.
type CacheOption func(*Cache)

// WithCacheNodes bounds how many znodes a cache holds. If there are more, the
// cache ends with ErrCacheFull.
func WithCacheNodes(n int) CacheOption { return func(k *Cache) { k.max = n } }

// NewCache returns a cache of root and all below it, once it has been read. The
// root need not exist.
//
// Errors: ErrUnimplemented if the server has no recursive watches (ZooKeeper
// before 3.6), ErrCacheFull, and those of a read.
func NewCache(ctx context.Context, c *Client, root string, opts ...CacheOption) (*Cache, error) {
	k := &Cache{
		c: c, root: root, max: DefaultCacheNodes,
		wake: make(chan struct{}, 1), done: make(chan struct{}), changed: make(chan struct{}),
		tree: newCacheTree(), readings: 1,
	}
	for _, o := range opts {
		o(k)
	}
	k.ctx, k.cancel = context.WithCancel(c.ctx)
	w, err := c.AddWatch(ctx, root, ModeRecursive, WithWatchQueue(cacheQueue))
	if err != nil {
		k.cancel()
		return nil, fmt.Errorf("caching %s: %w", root, err)
	}
	k.watch = w
	if !c.spawn(k.run) {
		k.cancel()
		return nil, fmt.Errorf("caching %s: %w", root, ErrClosed)
	}
	if err := k.WaitZxid(ctx, 1); err != nil {
		k.Close()
		return nil, fmt.Errorf("caching %s: %w", root, err)
	}
	return k, nil
}

// Close ends the cache. What it holds stays readable, and is not kept current.
func (k *Cache) Close() {
	k.cancel()
	<-k.done
}

// Done returns a channel that is closed when the cache has ended.
func (k *Cache) Done() <-chan struct{} { return k.done }

// Err returns why the cache has ended, nil if it has not.
func (k *Cache) Err() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.err
}

// Get returns a znode, and false if the cache has none of that path.
func (k *Cache) Get(path string) (CacheNode, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	n, ok := k.tree.nodes[path]
	return n, ok
}

// Children returns the names of a znode's children in the cache, sorted.
func (k *Cache) Children(path string) []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	if _, ok := k.tree.nodes[path]; !ok {
		return nil
	}
	return slices.Sorted(maps.Keys(k.tree.children[path]))
}

// Len returns how many znodes the cache has.
func (k *Cache) Len() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.tree.nodes)
}

// All returns the znodes that the cache has at the moment of the call, by path.
func (k *Cache) All() iter.Seq[CacheNode] {
	k.mu.Lock()
	list := slices.Collect(maps.Values(k.tree.nodes))
	k.mu.Unlock()
	slices.SortFunc(list, func(a, b CacheNode) int { return strings.Compare(a.Path, b.Path) })
	return slices.Values(list)
}

// Zxid returns the newest transaction up to which the cache is known to hold all
// changes. The cache may hold newer ones, and the zxid does not advance while
// nothing below the root changes and no caller waits for it. It restarts from 0
// with a new session.
func (k *Cache) Zxid() Zxid {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.zxid
}

// Fresh reports whether the cache has processed everything that the client has
// received, and the client is connected. It is false from the loss of the
// connection until everything has been read again.
func (k *Cache) Fresh() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.c.mu.Lock()
	defer k.c.mu.Unlock()
	return k.zxid > 0 && k.err == nil && k.c.link != nil && k.c.restoring == 0 &&
		!k.watch.ended && k.watch.pushed == k.processed
}

// Changed returns a channel that is closed when the cache changes next, or ends.
// To miss nothing, call it before looking at the cache.
func (k *Cache) Changed() <-chan struct{} {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.changed
}

// WaitZxid waits until the cache holds every change up to a transaction, such as
// the Stat.Mzxid of a write whose result the caller must see. The error is that
// of ctx, or the one with which the cache ended.
func (k *Cache) WaitZxid(ctx context.Context, zxid Zxid) error {
	for asked := uint64(0); ; {
		k.mu.Lock()
		have, err, changed, reading := k.zxid, k.err, k.changed, k.readings
		k.mu.Unlock()
		switch {
		case have >= zxid:
			return nil
		case err != nil:
			return err
		case have > 0 && asked != reading:
			// If the transaction does not concern the subtree, or the server
			// lags, no event comes. After the sync one look is enough, until
			// the cache restarts.
			if err := k.c.Sync(ctx, k.root); err != nil {
				return err
			}
			asked = reading
			select {
			case k.wake <- struct{}{}:
			default:
			}
			continue
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return contextError(ctx)
		}
	}
}

// run is the cache's goroutine.
func (k *Cache) run() {
	defer close(k.done)
	err := k.follow(k.watch)
	for recoverable(err) && k.ctx.Err() == nil {
		var w *Watch
		w, err = k.c.AddWatch(k.ctx, k.root, ModeRecursive, WithWatchQueue(cacheQueue))
		if err == nil {
			k.restart(w)
			err = k.follow(w)
		}
	}
	if k.ctx.Err() != nil && k.c.ctx.Err() == nil {
		err = ErrCacheClosed
	} else if k.c.ctx.Err() != nil && !errors.Is(err, ErrSessionExpired) {
		err = ErrClosed
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.watch.Cancel()
	k.err = err
	k.announceLocked()
}

// recoverable reports whether another watch may do better.
func recoverable(err error) bool {
	return !errors.Is(err, ErrProtocol) && (errors.Is(err, ErrWatchOverflow) ||
		errors.Is(err, ErrSessionExpired) || errors.Is(err, ErrConnectionLoss))
}

// restart discards what is known from the watch that has ended.
func (k *Cache) restart(w *Watch) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.watch.Cancel()
	k.watch = w
	k.taken, k.processed, k.zxid = 0, 0, 0
	k.candidate = cacheMark{}
	k.readings++
}

func (k *Cache) announceLocked() {
	close(k.changed)
	k.changed = make(chan struct{})
}

// cacheTree holds the znodes of a Cache by path. The sets of children do not
// depend on whether the parent is there: in the middle of changes a child may be
// read before its parent.
type cacheTree struct {
	nodes    map[string]CacheNode
	children map[string]map[string]struct{} // names, by the parent's path
}

func newCacheTree() cacheTree {
	return cacheTree{map[string]CacheNode{}, map[string]map[string]struct{}{}}
}

// put adds or replaces a znode.
func (t *cacheTree) put(n CacheNode) {
	if _, ok := t.nodes[n.Path]; !ok && n.Path != "/" {
		parent := znode.Parent(n.Path)
		if t.children[parent] == nil {
			t.children[parent] = map[string]struct{}{}
		}
		t.children[parent][znode.Base(n.Path)] = struct{}{}
	}
	t.nodes[n.Path] = n
}

// drop removes a znode and all below it.
func (t *cacheTree) drop(path string) {
	for name := range t.children[path] {
		t.drop(znode.Join(path, name))
	}
	if _, ok := t.nodes[path]; !ok {
		return
	}
	delete(t.nodes, path)
	parent := znode.Parent(path)
	siblings := t.children[parent]
	delete(siblings, znode.Base(path))
	if len(siblings) == 0 {
		delete(t.children, parent)
	}
}
