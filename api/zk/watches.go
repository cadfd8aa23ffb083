package zk

import (
	"errors"

	"github.com/zk-lite/zk-lite/internal/wire"
	"github.com/zk-lite/zk-lite/server"
	"github.com/zk-lite/zk-lite/watch"
	"github.com/zk-lite/zk-lite/znode"
)

// arm leaves a watch of the client. Over the limit the request fails with
// SYSTEMERROR: kazoo, to 2.10 at least, dies of a code that it does not know,
// and THROTTLEDOP is one.
func (r *request) arm(v *server.View, path string, mode watch.Mode) znode.Error {
	err := v.Watches().Add(r.c.sc.Load().Watcher(), path, mode)
	if err == nil || errors.Is(err, watch.ErrDropped) { // then no one gets the reply
		return znode.OK
	}
	return znode.ErrSystem
}

// kindIsKnown reports whether the mode of addWatch, or the watcher type of
// checkWatches and removeWatches, is one of ZooKeeper's. Others are answered
// like a body that cannot be decoded, as there.
func (r *request) kindIsKnown() bool {
	switch r.op {
	case wire.OpAddWatch:
		return r.mode == wire.AddWatchPersistent || r.mode == wire.AddWatchPersistentRecursive
	case wire.OpCheckWatches, wire.OpRemoveWatches:
		return r.watcher.Valid()
	}
	return true
}

// addWatch needs no permission and no znode. Its reply has a body of a code,
// which clients insist on.
func (r *request) addWatch(v *server.View) {
	mode := watch.Persistent
	if r.mode == wire.AddWatchPersistentRecursive {
		mode = watch.Recursive
	}
	var x wire.ErrorResponse
	r.reply(v.Zxid(), r.arm(v, r.path, mode), x.Append)
}

// removeWatches takes watches away, or only looks for them (checkWatches).
func (r *request) removeWatches(v *server.View) {
	look := v.Watches().Contains
	if r.op == wire.OpRemoveWatches {
		look = v.Watches().Remove
	}
	code := znode.OK
	if !look(r.c.sc.Load().Watcher(), r.path, r.watcher) {
		code = znode.ErrNoWatcher
	}
	r.reply(v.Zxid(), code, nil)
}

// setWatches leaves the watches of a client that has reconnected. What it has
// missed since the zxid it names is reported at once, before the reply, and its
// watch not left. These events belong to no transaction (DataTree.setWatches).
// Other than ZooKeeper's they tell nothing of a znode that the client may not
// read: by the zxid that it names it would find out when that was changed.
//
// Too many watches end the connection: no caller would see an error, and the
// client would wait for events that do not come.
func (r *request) setWatches(v *server.View) {
	var q *wire.SetWatchesRequest
	var persistent, recursive []string
	switch body := r.body.(type) {
	case *wire.SetWatchesRequest:
		q = body
	case *wire.SetWatches2Request:
		q = &body.SetWatchesRequest
		persistent, recursive = body.PersistentWatches, body.PersistentRecursiveWatches
	}
	ended := false
	type look func(znode.Stat, znode.Error) znode.EventType
	restore := func(paths []string, mode watch.Mode, missed look) {
		for _, path := range paths {
			event := znode.EventType(0)
			if missed != nil {
				event = missed(v.Tree().Exists(path, r.ids))
			}
			switch {
			case ended:
				return
			case event != 0:
				ended = !r.catchUp(event, path)
			case r.arm(v, path, mode) != znode.OK:
				r.c.out.end("it sets more watches than it may have")
				ended = true
			}
		}
	}
	restore(q.DataWatches, watch.Data, func(s znode.Stat, code znode.Error) znode.EventType {
		switch {
		case code == znode.ErrNoNode:
			return znode.EventDeleted
		case code == znode.OK && s.Mzxid > q.RelativeZxid:
			return znode.EventDataChanged
		}
		return 0
	})
	restore(q.ExistWatches, watch.Data, func(_ znode.Stat, code znode.Error) znode.EventType {
		if code == znode.OK {
			return znode.EventCreated
		}
		return 0
	})
	restore(q.ChildWatches, watch.Child, func(s znode.Stat, code znode.Error) znode.EventType {
		switch {
		case code == znode.ErrNoNode:
			return znode.EventDeleted
		case code == znode.OK && s.Pzxid > q.RelativeZxid:
			return znode.EventChildrenChanged
		}
		return 0
	})
	restore(persistent, watch.Persistent, nil)
	restore(recursive, watch.Recursive, nil)
	r.reply(v.Zxid(), znode.OK, nil)
}

// catchUp sends an event that the client has missed. False means that its connection has ended.
func (r *request) catchUp(typ znode.EventType, path string) bool {
	out := &r.c.out
	b, ok := out.begin()
	if !ok {
		return false
	}
	out.stats.sent()
	out.commit(appendEvent(b, znode.NoZxid, typ, path), !r.quiet)
	return true
}

// Notify implements server.Client: it sends an event, which is encoded once for all
// connections.
func (c *conn) Notify(n *watch.Notification) {
	frame := n.Frame(encodeEvent)
	if b, ok := c.out.begin(); ok {
		c.out.stats.sent()
		c.out.commit(append(b, frame...), true)
	}
}

func encodeEvent(n *watch.Notification) []byte { return appendEvent(nil, n.Zxid, n.Type, n.Path) }

// appendEvent appends a notification's frame.
func appendEvent(b []byte, zxid znode.Zxid, typ znode.EventType, path string) []byte {
	if b == nil {
		b = make([]byte, 0, wire.FrameLengthBytes+wire.ReplyHeaderBytes+12+len(path))
	}
	return wire.AppendReply(b, wire.ReplyHeader{Xid: wire.XidNotification, Zxid: zxid},
		&wire.WatcherEvent{Type: typ, State: wire.StateSyncConnected, Path: path})
}
