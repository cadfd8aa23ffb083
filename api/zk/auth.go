package zk

import (
	"slices"

	"github.com/zk-lite/zk-lite/internal/jute"
	"github.com/zk-lite/zk-lite/internal/wire"
	"github.com/zk-lite/zk-lite/znode"
)

// maxIdentityBytes bounds the identities that one connection collects, which
// travel with every write it makes. ZooKeeper has no bound; some hundred users
// on one connection are beyond any use known.
const maxIdentityBytes = 16 << 10

// auth proves an identity. It is done on the reader's own goroutine and out of
// order, so that a request right behind it has the identity already
// (ZooKeeperServer.processPacket). Failure costs the connection.
func (c *conn) auth(xid wire.Xid, rd *jute.Reader) error {
	var q wire.AuthRequest
	q.Decode(rd)
	if rd.Err() != nil {
		return badf("an auth request that cannot be decoded: %v", rd.Err())
	}
	if !c.authenticate(&q) {
		c.listener.authFailed.Add(1)
		c.direct(xid, znode.ErrAuthFailed, nil)
		c.out.end("authentication failed")
		c.closing = true
		return nil
	}
	c.direct(xid, znode.OK, nil)
	return nil
}

// authenticate adds the identities that q proves.
func (c *conn) authenticate(q *wire.AuthRequest) bool {
	switch q.Scheme {
	case "ip": // every connection has it from the start
		return true
	case "digest":
		if q.Auth == nil {
			return false
		}
		for _, id := range c.listener.srv.Authenticate(string(q.Auth)) {
			if slices.Contains(c.sc.Load().Identities(), id) {
				continue
			}
			if c.idBytes += len(id.Scheme) + len(id.ID); c.idBytes > maxIdentityBytes {
				return false
			}
			c.sc.Load().AddIdentity(id)
		}
		return true
	}
	return false
}

// sasl is answered like a ZooKeeper without SASL configured does: all is well,
// and there is no token (ZooKeeperServer.processSasl).
func (c *conn) sasl(xid wire.Xid, rd *jute.Reader) error {
	var q wire.SASLRequest
	q.Decode(rd)
	if rd.Err() != nil {
		return badf("a sasl request that cannot be decoded: %v", rd.Err())
	}
	c.direct(xid, znode.OK, &wire.SASLResponse{})
	return nil
}

// direct sends a reply that needs no place in the order of requests. Its zxid
// is 0. The reader flushes.
func (c *conn) direct(xid wire.Xid, code znode.Error, body wire.Response) {
	b, ok := c.out.begin()
	if !ok {
		return
	}
	c.out.stats.sent()
	c.out.commit(wire.AppendReply(b, wire.ReplyHeader{Xid: xid, Err: code}, body), false)
}
