package recipes

import (
	"context"
	"crypto/rand"
	"errors"
	"time"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/internal/curator"
	"github.com/zk-lite/zk-lite/znode"
)

// take claims an item. Only the first of the waiters watches
// the queue, so that an item wakes one and not all.
//
//	take
//	  pick         list, claim the first free one
//	  waitInTurn   if there is none
//	    pick       with watches on the lists
func (q *queue) take(ctx context.Context, wait bool) (*Item, error) {
	for {
		item, err := q.pick(ctx, nil)
		if err == nil && item == nil {
			if !wait {
				return nil, ErrEmpty
			}
			item, err = q.waitInTurn(ctx)
		}
		if err == nil {
			return item, nil
		}
		if !startAgain(ctx, q.c, err) {
			return nil, err
		}
	}
}

// waitInTurn waits for the turn to watch, then for an item.
func (q *queue) waitInTurn(ctx context.Context) (*Item, error) {
	turn, err := q.waiters.acquire(ctx, true)
	if err != nil {
		return nil, err
	}
	defer turn.quit(ctx)
	bound, cancel := turn.session.Context(ctx)
	defer cancel()
	// They are persistent, so they and the watches on them do not come and go.
	for _, dir := range []string{q.dir, q.claims} {
		err := q.c.EnsurePath(bound, dir, client.Persistent, q.acl...)
		if err != nil && !(isUnknown(err) && bound.Err() == nil) {
			return nil, err
		}
	}
	for {
		item, err := q.pickOrWait(bound, turn)
		if item != nil || err != nil {
			return item, err
		}
	}
}

// pickOrWait sets watches, claims an item if there is one, and otherwise waits
// until there may be one.
func (q *queue) pickOrWait(ctx context.Context, turn *position) (*Item, error) {
	look := &watchedLists{}
	defer look.cancel()
	item, err := q.pick(ctx, look)
	if item != nil || err != nil {
		return item, err
	}
	var due <-chan time.Time
	if look.due > 0 {
		timer := time.NewTimer(time.Until(time.UnixMilli(look.due)))
		defer timer.Stop()
		due = timer.C
	}
	select {
	case e, ok := <-look.items.C():
		return nil, ended(e, ok)
	case e, ok := <-look.claims.C():
		return nil, ended(e, ok)
	case e := <-turn.own.C():
		return nil, turn.ownChanged(ctx, e)
	case <-due:
		return nil, nil
	case <-ctx.Done():
		return nil, contextError(ctx)
	}
}

func ended(e client.Event, ok bool) error {
	if !ok || e.Type == client.EventEnded {
		return errPositionLost
	}
	return nil
}

// watchedLists are the watches that a waiter sets, and the time at which it must look
// again.
type watchedLists struct {
	items, claims *client.Watch
	due           int64 // when the next item becomes available, 0 if none is waiting
}

func (l *watchedLists) cancel() {
	for _, w := range []*client.Watch{l.items, l.claims} {
		if w != nil {
			w.Cancel()
		}
	}
}

// pick claims the first free item, and returns nil if there is none. With look, it
// sets watches on the two lists.
func (q *queue) pick(ctx context.Context, look *watchedLists) (*Item, error) {
	claimed, claims, err := q.list(ctx, q.claims, look != nil)
	if look != nil {
		look.claims = claims
	}
	if err != nil {
		return nil, err
	}
	names, items, err := q.list(ctx, q.dir, look != nil)
	if look != nil {
		look.items = items
	}
	if err != nil {
		return nil, err
	}
	busy := make(map[string]bool, len(claimed))
	for _, name := range claimed {
		busy[name] = true
	}
	now := time.Now().UnixMilli()
	for _, x := range q.items.Order(names) {
		if q.items == curator.Delayed && x.Key > now {
			if look != nil {
				look.due = x.Key
			}
			break
		}
		if busy[x.Name] {
			continue
		}
		item, err := q.claim(ctx, x)
		if item != nil || err != nil {
			return item, err
		}
	}
	return nil, nil
}

// list lists the children of a znode, none if it does not exist.
func (q *queue) list(
	ctx context.Context, dir string, watch bool,
) (names []string, w *client.Watch, err error) {
	if watch {
		names, _, w, err = q.c.ChildrenW(ctx, dir)
		if errors.Is(err, client.ErrNoNode) {
			return nil, nil, errPositionLost // it was deleted: create it again
		}
		return names, w, err
	}
	names, _, err = q.c.Children(ctx, dir)
	if errors.Is(err, client.ErrNoNode) {
		err = nil
	}
	return names, nil, err
}

// claim tries to claim an item. It returns nil if another client has, or had, it.
func (q *queue) claim(ctx context.Context, x curator.Item) (*Item, error) {
	item := &Item{
		q: q, path: znode.Join(q.dir, x.Name), claim: znode.Join(q.claims, x.Name), key: x.Key,
		session: q.c.Session(),
	}
	bound, cancel := item.session.Context(ctx)
	defer cancel()
	ok, err := item.makeClaim(bound)
	if err != nil && isUnknown(err) {
		go func() { // it may have been made
			bound, cancel := item.session.Context(context.Background())
			defer cancel()
			_ = item.settleClaim(bound) // or gone with the session
		}()
	}
	if !ok || err != nil {
		return nil, err
	}
	data, _, err := q.c.Get(bound, item.path)
	if err == nil {
		items := curator.DecodeItems(data)
		if len(items) > 0 {
			item.Data, item.More = items[0], items[1:]
		}
		return item, nil
	}
	if rerr := item.Release(ctx); rerr != nil {
		err = errors.Join(err, rerr)
	}
	if errors.Is(err, client.ErrNoNode) {
		return nil, nil // the list was older than the item's end
	}
	return nil, err
}

// makeClaim creates the znode of the claim, with a random word that identifies it
// if the answer is lost. Consumers of one client share one session, so the owner
// would not identify it.
func (i *Item) makeClaim(ctx context.Context) (bool, error) {
	i.word = rand.Text()
	for {
		var stat client.Stat
		err := withParents(ctx, i.q.c, i.q.claims, i.q.acl, func() (err error) {
			_, stat, err = i.q.c.Create(ctx, i.claim, []byte(i.word), client.Ephemeral, i.q.acl...)
			return err
		})
		switch {
		case err == nil:
			i.token = int64(stat.Czxid)
			return true, nil
		case errors.Is(err, client.ErrNodeExists):
			return false, nil
		case !isUnknown(err) || ctx.Err() != nil:
			return false, err
		}
		made, stat, ferr := i.findClaim(ctx)
		if ferr != nil {
			return false, errors.Join(err, ferr)
		}
		if made {
			i.token = int64(stat.Czxid)
			return true, nil
		}
	}
}

// findClaim reports whether the claim exists and has our word. The sync orders that
// after what was sent over another connection.
func (i *Item) findClaim(ctx context.Context) (bool, client.Stat, error) {
	var data []byte
	var stat client.Stat
	err := afterSync(ctx, i.q.c, i.claim, func() (err error) {
		data, stat, err = i.q.c.Get(ctx, i.claim)
		return err
	}, nil)
	if errors.Is(err, client.ErrNoNode) {
		return false, stat, nil
	}
	return err == nil && string(data) == i.word, stat, err
}
