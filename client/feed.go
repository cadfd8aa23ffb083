package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/zk-lite/zk-lite/internal/jute"
	"github.com/zk-lite/zk-lite/internal/wire"
	"github.com/zk-lite/zk-lite/znode"
)

// Transaction is what one transaction changed below a path. All changes of a multi are in one.
type Transaction struct {
	Zxid    Zxid // a feed since it goes on behind the transaction, at any server
	Time    time.Time
	Session SessionID // of the client; 0: none. Ephemerals are deleted by the session that has ended.
	// Author are the identities that the client had proved, digests without their hash. Addresses are for super users.
	Author      []ID
	Traceparent string // of an HTTP request that had this header (W3C Trace Context)
	Changes     []Change
}

// Change is a change of one znode, with its values.
type Change struct {
	Type EventType // EventCreated, EventDataChanged or EventDeleted
	Path string
	Mode Mode   // Persistent, Ephemeral, Container or PersistentTTL
	Data []byte // after the change; of a deleted znode, its last. Nil for null.
	// Before is the data that EventDataChanged has replaced, with FeedBefore.
	Before []byte
	Stat   Stat
	// Hidden means that the client may no longer read the znode, or that the values were purged: there are no data.
	Hidden bool
}

// TooOldError ends a feed: the server no longer knows all changes since the zxid that was asked for. Read the
// znodes again, and then continue from Zxid: no change is missed, and those that Stat.Mzxid includes come once more.
type TooOldError struct{ Since, Zxid Zxid }

func (e *TooOldError) Error() string {
	return fmt.Sprintf("the server no longer knows all changes since %v: read the znodes again, and continue from "+
		"%v", e.Since, e.Zxid)
}

// FeedOption changes what Feed reports.
type FeedOption func(*wire.FeedRequest)

// FeedBefore adds the data that each change has replaced.
func FeedBefore() FeedOption { return func(r *wire.FeedRequest) { r.Before = true } }

// FeedEvents limits the feed to these types of events. EventChildrenChanged stands for the creation and deletion of the
// children of the feed's znode, without those below them.
func FeedEvents(types ...EventType) FeedOption {
	return func(r *wire.FeedRequest) {
		for _, t := range types {
			r.Events |= 1 << t
		}
	}
}

// FeedModes limits the feed to znodes of these modes: Persistent, Ephemeral, Container, PersistentTTL.
func FeedModes(modes ...Mode) FeedOption {
	return func(r *wire.FeedRequest) {
		for _, m := range modes {
			r.Modes |= 1 << m
		}
	}
}

// Feed returns the transactions after since, or from now on with NoZxid, that change the znode at path or any below it,
// each once and in their order, whatever becomes of connections and sessions. It waits for more until ctx ends or the
// loop does. Transactions without a change that the client asked for and may read are left out.
//
// The feed ends after an error: *TooOldError, ErrClosed, ErrBadArguments, ctx's, or ErrUnimplemented of a server that
// is not zk-lite.
func (c *Client) Feed(ctx context.Context, path string, since Zxid, opts ...FeedOption) iter.Seq2[*Transaction, error] {
	return func(yield func(*Transaction, error) bool) {
		f := feed{c: c, path: path, req: wire.FeedRequest{Since: since}}
		for _, o := range opts {
			o(&f.req)
		}
		for {
			resp, err := f.next(ctx)
			switch {
			case ctx.Err() == nil && (errors.Is(err, ErrConnectionLoss) || errors.Is(err, ErrSessionExpired)):
				continue // the next connection, or session, goes on where this one was
			case err != nil:
				yield(nil, err)
				return
			}
			for i := range resp.Transactions {
				if !yield(f.transaction(&resp.Transactions[i]), nil) {
					return
				}
			}
		}
	}
}

// feed is where a Feed is.
type feed struct {
	c    *Client
	path string
	req  wire.FeedRequest // Since is how far it has read
}

// next waits for changes.
func (f *feed) next(ctx context.Context) (*wire.FeedResponse, error) {
	resp, err := f.ask(ctx)
	if err != nil || len(resp.Transactions) > 0 || resp.More {
		return resp, err
	}
	// What comes before the watch is set is found by asking again.
	w, err := f.c.AddWatch(ctx, f.path, ModeRecursive)
	if err != nil {
		return nil, err
	}
	defer w.Cancel()
	for {
		resp, err := f.ask(ctx)
		if err != nil || len(resp.Transactions) > 0 || resp.More {
			return resp, err
		}
		select {
		case _, ok := <-w.C():
			if !ok {
				return resp, nil // to set another
			}
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// ask asks for the changes after those that have been read.
func (f *feed) ask(ctx context.Context) (*wire.FeedResponse, error) {
	resp, err := read(ctx, func() *Pending[*wire.FeedResponse] {
		o := newOp[wire.FeedRequest](f.c, wire.OpFeed, feedReply)
		o.req = f.req
		o.req.Path = o.fullPath(f.path)
		return o.submit(ctx)
	})
	switch {
	case err != nil:
		return nil, err
	case resp.TooOld:
		return nil, &TooOldError{Since: f.req.Since, Zxid: resp.Zxid}
	}
	f.req.Since = resp.Zxid
	return resp, nil
}

func feedReply(_ *call, r *jute.Reader) *wire.FeedResponse {
	resp := new(wire.FeedResponse)
	resp.Decode(r)
	for i := range resp.Transactions {
		for j := range resp.Transactions[i].Changes {
			c := &resp.Transactions[i].Changes[j]
			c.Data, c.Before = bytes.Clone(c.Data), bytes.Clone(c.Before)
		}
	}
	return resp
}

func (f *feed) transaction(x *wire.FeedTransaction) *Transaction {
	t := &Transaction{Zxid: x.Zxid, Time: time.UnixMilli(x.TimeMillis), Session: x.Session, Traceparent: x.Trace}
	for _, id := range x.Author {
		t.Author = append(t.Author, znode.ID{Scheme: id.AuthScheme, ID: id.User})
	}
	for _, c := range x.Changes {
		t.Changes = append(t.Changes, Change{
			Type: EventType(c.Type), Path: f.c.rel(c.Path), Mode: c.Mode, Data: c.Data, Before: c.Before, Stat: c.Stat,
			Hidden: c.Hidden,
		})
	}
	return t
}

// Revisions returns the values that a znode had, one in each Transaction, the newest first, at most limit. None is
// older than since: it is beyond the limit, or no longer known. Change.Hidden means that the value was purged. A value
// is left out if the client could not read the znode then; a znode that is gone has them, too.
//
// Errors: ErrNoNode, ErrNoAuth, ErrBadArguments; ErrUnimplemented of a server that is not zk-lite.
func (c *Client) Revisions(ctx context.Context, path string, limit int) (all []*Transaction, since Zxid, err error) {
	f := feed{c: c}
	for more := true; more && len(all) < limit; {
		resp, err := read(ctx, func() *Pending[*wire.FeedResponse] {
			o := newOp[wire.RevisionsRequest](c, wire.OpRevisions, feedReply)
			most := int32(min(limit-len(all), 1000))
			o.req = wire.RevisionsRequest{Path: o.fullPath(path), Before: since, Limit: most}
			return o.submit(ctx)
		})
		switch {
		case errors.Is(err, ErrNoNode) && len(all) > 0:
			return all, since, nil
		case err != nil:
			return nil, 0, err
		}
		for i := range resp.Transactions {
			all = append(all, f.transaction(&resp.Transactions[i]))
		}
		more, since = resp.More, resp.Zxid
	}
	return all, since, nil
}
