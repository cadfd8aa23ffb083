package learner

import (
	"fmt"

	"github.com/zk-lite/zk-lite/internal/digestmd5"
	"github.com/zk-lite/zk-lite/internal/jute"
)

// SASL are the credentials of a server, for the mechanism DIGEST-MD5: those of the section QuorumLearner of its JAAS
// file. The other mechanism of ZooKeeper's servers, GSSAPI (Kerberos), is not supported.
type SASL struct{ User, Password string }

// The tokens of both sides travel in packets of their own (QuorumAuthPacket): a number that no other packet begins
// with, a status, the token.
const (
	authMagic  = 0x5f2435013501edcc
	authGoesOn = 0
	authDone   = 1
	// maxToken bounds a server's token; those of DIGEST-MD5 have at most 2048 bytes.
	maxToken = 64 << 10
)

// authenticate proves our identity to the server, and has it prove its own.
func (s *SASL) authenticate(c *conn) error {
	client := digestmd5.Client{
		Service: "zookeeper-quorum", Host: "zk-quorum-sasl-md5", User: s.User, Password: s.Password,
	}
	const mechanism = "; is quorum.auth.enableSasl on there, with the user, the same password, and DIGEST-MD5? " +
		"GSSAPI (Kerberos) is not supported"
	status, token, err := c.exchange([]byte{}) // the mechanism has no initial response
	if err != nil {
		return fmt.Errorf("%w: %w%s", ErrRefused, err, mechanism)
	}
	if status != authGoesOn {
		return fmt.Errorf("%w: the server does not begin%s", ErrRefused, mechanism)
	}
	response, err := client.Respond(token)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrRefused, err)
	}
	if status, token, err = c.exchange(response); err != nil {
		return fmt.Errorf("%w: %w%s", ErrRefused, err, mechanism)
	}
	if status != authDone {
		return fmt.Errorf("%w: the server does not accept user %q%s", ErrRefused, s.User, mechanism)
	}
	if err := client.Check(token); err != nil {
		return fmt.Errorf("%w: %w", ErrRefused, err)
	}
	return nil
}

// exchange sends a token and reads the server's.
func (c *conn) exchange(token []byte) (status int32, reply []byte, err error) {
	b := jute.AppendInt64(nil, authMagic)
	if _, err := c.Write(jute.AppendBuffer(jute.AppendInt32(b, authGoesOn), token)); err != nil {
		return 0, nil, err
	}
	r := jute.NewStream(c.in, maxToken)
	magic := r.Int64()
	if r.Err() == nil && magic != authMagic {
		return 0, nil, fmt.Errorf("%w: the answer does not begin with the number of a QuorumAuthPacket", ErrProtocol)
	}
	status, reply = r.Int32(), r.Buffer()
	return status, reply, c.explain(r.Err())
}
