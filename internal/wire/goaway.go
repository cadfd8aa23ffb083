package wire

import "github.com/zk-lite/zk-lite/znode"

// GoAway is the last frame of a server that leaves: what this connection has sent and got no reply to has not
// happened, and will not. It is a reply to a ping, for which all clients of ZooKeeper have no use when they have
// sent none, with SESSIONMOVED as its code: the session goes on at another server. ZooKeeper does not send it.
func GoAway(zxid znode.Zxid) ReplyHeader {
	return ReplyHeader{Xid: XidPing, Zxid: zxid, Err: znode.ErrSessionMoved}
}

// IsGoAway reports whether h is a GoAway.
func IsGoAway(h ReplyHeader) bool { return h.Xid == XidPing && h.Err == znode.ErrSessionMoved }
