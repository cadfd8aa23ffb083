package zk

import (
	"errors"
	"slices"

	"github.com/zk-lite/zk-lite/internal/jute"
	"github.com/zk-lite/zk-lite/internal/wire"
	"github.com/zk-lite/zk-lite/server/audit"
	"github.com/zk-lite/zk-lite/server/auth"
	"github.com/zk-lite/zk-lite/znode"
)

// maxIdentityBytes bounds the identities that one connection collects, which
// travel with every write it makes. ZooKeeper has no bound; some hundred users
// on one connection are beyond any use known.
const maxIdentityBytes = 16 << 10

// auth proves an identity. It is done on the reader's own goroutine and out of
// order, so that a request right after it has the identity already
// (ZooKeeperServer.processPacket). Failure costs the connection.
func (c *conn) auth(xid wire.Xid, rd *jute.Reader) error {
	var q wire.AuthRequest
	q.Decode(rd)
	if rd.Err() != nil {
		return badf("an auth request that cannot be decoded: %v", rd.Err())
	}
	if !c.authenticate(&q) {
		c.listener.authFailed.Add(1)
		c.note("login", audit.Failure, "scheme "+q.Scheme)
		// A client of another ensemble gets no answer, which would have it give up: it tries the next server
		// (EnsembleAuthenticationProvider).
		if q.Scheme != "ensemble" || !c.listener.srv.Auth().Ensemble("") {
			c.replyAtOnce(xid, znode.ErrAuthFailed, nil)
		}
		c.out.end("authentication failed")
		c.closing = true
		return nil
	}
	c.replyAtOnce(xid, znode.OK, nil)
	return nil
}

// authenticate adds the identities that q proves.
func (c *conn) authenticate(q *wire.AuthRequest) bool {
	a := c.listener.srv.Auth()
	switch q.Scheme {
	case "ip": // every connection has it from the start
		return true
	case "x509": // that one too, if it has one
		return len(c.certificate()) > 0
	case "ensemble":
		return a.Ensemble(string(q.Auth))
	case "digest":
		if q.Auth == nil {
			return false
		}
		ids, ok := a.Password(string(q.Auth))
		return ok && c.addIdentities(ids)
	}
	return false
}

// addIdentities adds those that the connection does not have. It reports false when they are too many.
func (c *conn) addIdentities(ids []znode.ID) bool {
	for _, id := range ids {
		if slices.Contains(c.sc.Load().Identities(), id) {
			continue
		}
		if c.idBytes += int32(len(id.Scheme) + len(id.ID)); c.idBytes > maxIdentityBytes {
			return false
		}
		c.sc.Load().AddIdentity(id)
	}
	return true
}

// hasIdentity reports whether the client has an identity of enforce.auth.schemes. A client without one gets
// ZooKeeper's answer to every request but those that prove something, and is disconnected.
func (c *conn) hasIdentity(xid wire.Xid) bool {
	if c.listener.srv.Auth().Enough(c.sc.Load().Identities()) {
		return true
	}
	c.listener.authFailed.Add(1)
	c.note("request", audit.Failure, "no identity of enforce.auth.schemes")
	c.listener.logRefusal("enforce.auth", "remote", c.remote, "session", c.session(),
		"schemes", c.listener.srv.Auth().Schemes(), "hint", c.hint())
	c.replyAtOnce(xid, znode.ErrSessionClosedNeedsSASL, nil)
	c.out.end("no identity of a scheme that is needed (enforce.auth.schemes)")
	c.closing = true
	return false
}

// hint names another cause for which a client can lack the identity that it needs; empty: none is known.
func (c *conn) hint() string {
	a := c.listener.srv.Auth()
	if s := a.SASL(); s != nil && slices.Contains(a.Schemes(), "sasl") && s.Mechanism() == "DIGEST-MD5" &&
		c.exchange == nil {
		return "Java clients of 3.9 do not begin DIGEST-MD5 unless they run with -Dzookeeper.fips-mode=false"
	}
	return ""
}

// auditClient is the client for the audit log.
func (c *conn) auditClient() audit.Client {
	a := audit.Client{IP: c.remote}
	if c.address.IsValid() {
		a.IP = c.address.String()
	}
	if sc := c.sc.Load(); sc != nil {
		a.Session, _ = sc.Session()
		a.IDs = sc.Identities()
	}
	return a
}

// note records an event of this client in the audit log, if there is one.
func (c *conn) note(operation string, r audit.Result, reason string) {
	if log := c.listener.cfg.Audit; log != nil {
		log.Note(c.auditClient(), audit.Event{Operation: operation, Result: r, Reason: reason})
	}
}

// sasl is one round of a SASL exchange (ZooKeeperServer.processSasl). Like auth it is out of order. Without SASL
// configured all is well, and there is no token.
func (c *conn) sasl(xid wire.Xid, rd *jute.Reader) error {
	var q wire.SASLRequest
	q.Decode(rd)
	if rd.Err() != nil {
		return badf("a sasl request that cannot be decoded: %v", rd.Err())
	}
	s := c.listener.srv.Auth().SASL()
	if s == nil {
		c.replyAtOnce(xid, znode.OK, &wire.SASLResponse{})
		return nil
	}
	if c.exchange == nil {
		c.exchange = s.Begin()
	}
	reply, user, err := c.exchange.Next(q.Token)
	if err == nil && user != "" {
		err = c.addSASL(s, user)
	}
	if err != nil {
		c.saslFailed(xid, s, err)
		return nil
	}
	c.replyAtOnce(xid, znode.OK, &wire.SASLResponse{Token: reply})
	return nil
}

// addSASL adds the identities of an authenticated user.
func (c *conn) addSASL(s *auth.SASL, user string) error {
	ids, err := s.Identities(user)
	if err == nil && !c.addIdentities(ids) {
		err = errors.New("the connection has too many identities")
	}
	return err
}

// saslFailed answers a client that has failed to authenticate, and ends its connection unless allowSaslFailedClients is
// set.
func (c *conn) saslFailed(xid wire.Xid, s *auth.SASL, err error) {
	c.listener.authFailed.Add(1)
	c.note("login", audit.Failure, "sasl "+s.Mechanism()+": "+err.Error())
	c.listener.logRefusal("sasl", "remote", c.remote, "session", c.session(), "mechanism", s.Mechanism(), "error", err)
	code := znode.ErrAuthFailed
	switch {
	case slices.Contains(c.listener.srv.Auth().Schemes(), "sasl"):
		code = znode.ErrSessionClosedNeedsSASL
	case s.AllowFailed:
		c.replyAtOnce(xid, znode.OK, &wire.SASLResponse{})
		return
	}
	if b, ok := c.out.begin(); ok { // with a body, which Java's client reads whatever the code
		b, mark := wire.BeginFrame(b)
		h := wire.ReplyHeader{Xid: xid, Err: code}
		b = (&wire.SASLResponse{}).Append(h.Append(b))
		wire.EndFrame(b, mark)
		c.out.stats.sent()
		c.out.commit(b, false)
	}
	c.out.end("SASL authentication failed")
	c.closing = true
}

// replyAtOnce sends a reply that needs no place in the order of requests. Its zxid
// is 0. The reader flushes.
func (c *conn) replyAtOnce(xid wire.Xid, code znode.Error, body wire.Response) {
	b, ok := c.out.begin()
	if !ok {
		return
	}
	c.out.stats.sent()
	c.out.commit(wire.AppendReply(b, wire.ReplyHeader{Xid: xid, Err: code}, body), false)
}
