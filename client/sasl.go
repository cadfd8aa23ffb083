package client

import (
	"fmt"
	"strings"

	"github.com/zk-lite/zk-lite/internal/digestmd5"
	"github.com/zk-lite/zk-lite/internal/jute"
	"github.com/zk-lite/zk-lite/internal/wire"
	"github.com/zk-lite/zk-lite/znode"
)

// saslScheme is no scheme of auth packets: its credentials, user:password, go through SASL with DIGEST-MD5.
const saslScheme = "sasl"

// The names that all clients of ZooKeeper's have built in for that mechanism (SecurityUtils.createSaslClient).
const saslService, saslHost = "zookeeper", "zk-sasl-md5"

// exchangeSASL proves a user on a new connection (ZooKeeper's Sasl client): the server sends a challenge, and after the
// response the proof that it knows the password, too.
func exchangeSASL(l *link, a credential) error {
	user, password, ok := strings.Cut(string(a.auth), ":")
	if !ok {
		return fmt.Errorf("credentials of scheme sasl are not user:password: %w", ErrAuthFailed)
	}
	mechanism := &digestmd5.Client{Service: saslService, Host: saslHost, User: user, Password: password}
	challenge, err := saslRound(l, 1, []byte{})
	if err == nil && len(challenge) == 0 {
		err = fmt.Errorf("the server has no SASL: %w", ErrAuthFailed)
	}
	if err != nil {
		return err
	}
	response, err := mechanism.Respond(challenge)
	if err != nil {
		return fmt.Errorf("SASL with DIGEST-MD5: %w: %w", ErrAuthFailed, err)
	}
	last, err := saslRound(l, 2, response)
	if err == nil {
		err = mechanism.Check(last)
	}
	return err
}

// saslRound sends a token and returns the server's.
func saslRound(l *link, xid wire.Xid, token []byte) ([]byte, error) {
	frame := wire.AppendRequest(nil, wire.RequestHeader{Xid: xid, Type: wire.OpSASL}, &wire.SASLRequest{Token: token})
	if _, err := l.conn.Write(frame); err != nil {
		return nil, fmt.Errorf("sending a SASL token: %w", err)
	}
	payload, err := l.frames.Next()
	if err != nil {
		return nil, fmt.Errorf("reading the reply to a SASL token: %w", err)
	}
	r := jute.NewReader(payload)
	var h wire.ReplyHeader
	var reply wire.SASLResponse
	h.Decode(r)
	switch {
	case r.Err() == nil && h.Err != znode.OK: // perhaps with a body
		return nil, fmt.Errorf("SASL with DIGEST-MD5: %w: %w", ErrAuthFailed, h.Err)
	case r.Err() == nil && h.Xid != xid:
		return nil, protocolError("reply with xid %v, want %v", h.Xid, xid)
	}
	reply.Decode(r)
	if err := r.Err(); err != nil {
		return nil, protocolError("SASL reply: %w", err)
	}
	return reply.Token, nil
}
