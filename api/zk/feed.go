package zk

import (
	"slices"

	"github.com/zk-lite/zk-lite/internal/wire"
	"github.com/zk-lite/zk-lite/server"
	"github.com/zk-lite/zk-lite/server/changes"
	"github.com/zk-lite/zk-lite/znode"
)

// The bounds of one reply to revisions: values, and their bytes but for the last.
const (
	maxRevisions     = 1000
	maxRevisionBytes = 256 << 10
)

// feed answers with the changes after a transaction. It leaves no watch and never waits: a client that has seen them
// all watches until there are others.
func (r *request) feed(v *server.View) {
	q := r.body.(*wire.FeedRequest)
	if znode.ValidatePath(q.Path) != nil {
		r.reply(v.Zxid(), znode.ErrBadArguments, nil)
		return
	}
	x := wire.FeedResponse{Zxid: v.Zxid()}
	var all []changes.Change
	if q.Since != wire.FromNow {
		var err error
		f := changes.Filter{Path: q.Path, Kind: changes.KindRecursive, Identities: r.ids,
			Types: typesOf(q.Events), Modes: modesOf(q.Modes)}
		all, x.Zxid, x.More, err = v.Changes().Read(f, q.Since, v.Zxid())
		x.TooOld = err != nil
	}
	bytes := 0
	for len(all) > 0 {
		var of []changes.Change
		of, all = changes.NextTransaction(all)
		x.Transactions = append(x.Transactions, r.transaction(v, of, q.Before, &bytes))
	}
	r.replyFeed(v, &x, bytes)
}

// replyFeed replies with changes, if that is not too long.
func (r *request) replyFeed(v *server.View, x *wire.FeedResponse, bytes int) {
	if bytes > min(r.c.listener.cfg.OutboxBytes, maxReply) {
		r.c.listener.longReplies.Add(1)
		r.reply(v.Zxid(), znode.ErrSystem, nil)
		return
	}
	r.replyLong(v.Zxid(), znode.OK, bytes, x.Append)
}

// revisions answers with values that a znode had. It looks at a part of the changes, and the client continues.
func (r *request) revisions(v *server.View) {
	q := r.body.(*wire.RevisionsRequest)
	data, now, code := v.Tree().Get(q.Path, r.ids)
	if znode.ValidatePath(q.Path) != nil || q.Limit < 1 || q.Before < 0 {
		code = znode.ErrBadArguments
	}
	if code != znode.OK && code != znode.ErrNoNode {
		r.reply(v.Zxid(), code, nil)
		return
	}
	p, x, bytes, seen := changes.Past{Path: q.Path, Before: q.Before}, wire.FeedResponse{}, 0, znode.Zxid(0)
	full := false
	x.More = v.Changes().Back(&p, func(c *changes.Change) bool {
		amidst := c.At.Zxid == seen // a transaction, whose last value alone was to be seen
		if seen = c.At.Zxid; amidst || !znode.Permits(c.Edit.ACL, znode.PermRead, r.ids) {
			return true
		}
		if c.Purged && code == znode.OK && c.Stands(&now) {
			c.Edit.Data, c.Purged = data, false
		}
		x.Transactions = append(x.Transactions, r.transaction(v, []changes.Change{*c}, false, &bytes))
		full = len(x.Transactions) == int(min(q.Limit, maxRevisions)) || bytes > maxRevisionBytes
		return !full
	})
	if x.More, x.Zxid = x.More || full, p.Floor; x.More {
		x.Zxid = p.Reached
	}
	if code != znode.OK && len(x.Transactions) == 0 && !x.More {
		r.reply(v.Zxid(), code, nil)
		return
	}
	r.replyFeed(v, &x, bytes)
}

// transaction is what the reply has of one, and adds about its length to bytes. A znode that the client may no longer
// read is there without its data.
func (r *request) transaction(v *server.View, of []changes.Change, before bool, bytes *int) wire.FeedTransaction {
	const perChange = wire.StatBytes + 32
	t := wire.FeedTransaction{
		Zxid: of[0].Edit.Zxid, TimeMillis: of[0].TimeMillis, Session: of[0].By.Session, Trace: of[0].By.Trace,
	}
	for _, id := range of[0].By.Names(slices.Contains(r.ids, znode.SuperIDs)) {
		t.Author = append(t.Author, wire.ClientInfo{AuthScheme: id.Scheme, User: id.ID})
		*bytes += len(id.Scheme) + len(id.ID)
	}
	for i := range of {
		e := &of[i].Edit
		c := wire.FeedChange{Type: e.Type, Path: e.Path, Mode: e.Mode, Stat: e.Stat}
		if _, code := v.Tree().Exists(e.Path, r.ids); code == znode.ErrNoAuth || of[i].Purged {
			c.Hidden = true
		} else if c.Data = e.Data; before {
			c.Before = e.Before
		}
		t.Changes = append(t.Changes, c)
		*bytes += perChange + len(c.Path) + len(c.Data) + len(c.Before)
	}
	return t
}

func typesOf(set int32) (all []znode.EventType) {
	for t := znode.EventCreated; t <= znode.EventChildrenChanged; t++ {
		if set&(1<<t) != 0 {
			all = append(all, t)
		}
	}
	return all
}

func modesOf(set int32) (all []znode.Mode) {
	for _, m := range []znode.Mode{znode.Persistent, znode.Ephemeral, znode.Container, znode.PersistentTTL} {
		if set&(1<<m) != 0 {
			all = append(all, m)
		}
	}
	return all
}
