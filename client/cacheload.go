package client

import (
	"cmp"
	"errors"
	"maps"
	"slices"

	"github.com/zk-lite/zk-lite/znode"
)

// errRearmed reports that events may be missing, so everything must be read again.
var errRearmed = errors.New("the watch was set again")

// follow reads the subtree and then what the watch reports, until the watch
// ends. It returns the reason.
func (k *Cache) follow(w *Watch) error {
	err := errRearmed
	for errors.Is(err, errRearmed) {
		dirty := map[string]struct{}{k.root: {}}
		if err = k.load(w, dirty); err == nil {
			err = k.chase(w, dirty)
		}
		if lostOnly(err) {
			// The connection broke during a read: the watch will report that it
			// was set again, or why it has ended.
			err = k.awaitRearmed(w)
		}
	}
	return err
}

func lostOnly(err error) bool {
	return errors.Is(err, ErrConnectionLoss) && !errors.Is(err, ErrProtocol)
}

// chase keeps reading what has changed.
func (k *Cache) chase(w *Watch, dirty map[string]struct{}) error {
	for {
		if err := k.refresh(w, dirty); err != nil {
			return err
		}
		select {
		case ev, open := <-w.C():
			if err := k.take(ev, open, dirty); err != nil {
				return err
			}
		case <-k.wake:
			dirty[k.root] = struct{}{}
		case <-k.ctx.Done():
			return k.ctx.Err()
		}
		if err := k.drain(w, dirty); err != nil {
			return err
		}
	}
}

// take records an event.
func (k *Cache) take(ev Event, open bool, dirty map[string]struct{}) error {
	switch {
	case !open:
		return ErrWatchCancelled
	case ev.Type == EventEnded:
		return ev.Err
	}
	k.taken++
	if ev.Type == EventRearmed {
		return errRearmed
	}
	dirty[ev.Path] = struct{}{}
	return nil
}

// drain takes the events that are there, without waiting.
func (k *Cache) drain(w *Watch, dirty map[string]struct{}) error {
	for {
		select {
		case ev, open := <-w.C():
			if err := k.take(ev, open, dirty); err != nil {
				return err
			}
		default:
			return nil
		}
	}
}

// awaitRearmed skips events until the watch was set again: everything is read
// after that.
func (k *Cache) awaitRearmed(w *Watch) error {
	ignored := map[string]struct{}{}
	for {
		select {
		case ev, open := <-w.C():
			if err := k.take(ev, open, ignored); err != nil {
				return err
			}
			clear(ignored)
		case <-k.ctx.Done():
			return k.ctx.Err()
		}
	}
}

// refresh reads the dirty paths and those that become dirty meanwhile, and
// empties the set.
func (k *Cache) refresh(w *Watch, dirty map[string]struct{}) error {
	for len(dirty) > 0 {
		target := k.taken
		paths := slices.Collect(maps.Keys(dirty))
		clear(dirty)
		for chunk := range slices.Chunk(paths, cacheChunk) {
			last, err := k.refreshChunk(w, chunk)
			if err == nil {
				err = k.drain(w, dirty)
			}
			if err != nil {
				return err
			}
			k.candidate = cmp.Or(k.candidate, last)
		}
		if err := k.settle(target); err != nil {
			return err
		}
	}
	return nil
}

func (k *Cache) refreshChunk(w *Watch, paths []string) (last cacheMark, err error) {
	k.reading = k.reading[:0]
	for _, path := range paths {
		k.reading = append(k.reading, cacheRead{path: path, get: k.get(w, path)})
	}
	for _, r := range k.reading {
		reply, err := r.get.Wait(k.ctx)
		if err != nil && !absent(err) {
			return last, err
		}
		k.apply(r.path, reply, err)
		last = cacheMark{r.get.zxid, r.get.mark}
	}
	return last, nil
}

// absent reports whether err means that the znode does not exist or may not be read.
func absent(err error) bool { return errors.Is(err, ErrNoNode) || errors.Is(err, ErrNoAuth) }

// get reads a znode. The reply has the number of events that came before it.
func (k *Cache) get(w *Watch, path string) *Pending[GetReply] {
	return k.c.getData(k.ctx, path, false, w)
}

func (k *Cache) apply(path string, reply GetReply, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if err != nil {
		k.tree.drop(path)
	} else {
		k.tree.put(CacheNode{path, reply.Data, reply.Stat})
	}
}

// settle records that the tree reflects this many events.
func (k *Cache) settle(events uint64) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.processed = events
	if k.candidate.events <= events {
		k.zxid = max(k.zxid, k.candidate.zxid)
		k.candidate = cacheMark{}
	}
	k.announceLocked()
	if len(k.tree.nodes) > k.max {
		return ErrCacheFull
	}
	return nil
}

// load reads the whole subtree, level by level, and replaces the cache's
// content. It adds what changes meanwhile to dirty.
func (k *Cache) load(w *Watch, dirty map[string]struct{}) error {
	fresh := newCacheTree()
	level := []string{k.root}
	for len(level) > 0 {
		var next []string
		for len(level) > 0 {
			n := min(len(level), cacheChunk)
			children, err := k.loadChunk(w, level[:n], &fresh)
			if err == nil {
				err = k.drain(w, dirty)
			}
			if err == nil && len(fresh.nodes) > k.max {
				err = ErrCacheFull
			}
			if err != nil {
				return err
			}
			next = append(next, children...)
			level = level[n:]
		}
		level = next
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.tree = fresh
	return nil
}

// loadChunk reads some znodes into fresh and returns the paths of their
// children.
func (k *Cache) loadChunk(
	w *Watch, paths []string, fresh *cacheTree,
) ([]string, error) {
	k.reading = k.reading[:0]
	for _, path := range paths {
		k.reading = append(k.reading, cacheRead{
			path, k.get(w, path), k.c.Async().Children(k.ctx, path),
		})
	}
	var next []string
	for _, r := range k.reading {
		node, err := r.get.Wait(k.ctx)
		if err == nil {
			fresh.put(CacheNode{r.path, node.Data, node.Stat})
		} else if !absent(err) {
			return nil, err
		}
		list, lerr := r.list.Wait(k.ctx)
		if lerr != nil && !absent(lerr) {
			return nil, lerr
		}
		if err != nil {
			continue
		}
		for _, name := range list.Children {
			next = append(next, znode.Join(r.path, name))
		}
	}
	return next, nil
}
