package kerberos

import (
	"encoding/binary"
	"errors"
	"slices"

	"github.com/jcmturner/gokrb5/v8/crypto"
	krb "github.com/jcmturner/gokrb5/v8/gssapi"
	"github.com/jcmturner/gokrb5/v8/iana/keyusage"
	"github.com/jcmturner/gokrb5/v8/types"
)

// context implements gssapi.Context by the Wrap tokens of RFC 4121, 4.2.6.2, not sealed.
type context struct {
	initiator    string
	key          types.EncryptionKey
	ownKey       bool   // key is this server's
	ours, theirs uint64 // sequence numbers
}

// The flags of RFC 4121, 4.2.2.
const (
	sentByAcceptor = 1 << iota
	sealed
	acceptorsKey
)

// Initiator implements gssapi.Context.
func (c *context) Initiator() string { return c.initiator }

// Wrap implements gssapi.Context.
func (c *context) Wrap(message []byte) ([]byte, error) {
	etype, err := crypto.GetEtype(c.key.KeyType)
	if err != nil {
		return nil, err
	}
	t := krb.WrapToken{
		Flags: sentByAcceptor | c.keyFlag(), EC: uint16(etype.GetHMACBitLength() / 8),
		SndSeqNum: c.ours, Payload: message,
	}
	if err := t.SetCheckSum(c.key, keyusage.GSSAPI_ACCEPTOR_SEAL); err != nil {
		return nil, err
	}
	return t.Marshal()
}

func (c *context) keyFlag() byte {
	if c.ownKey {
		return acceptorsKey
	}
	return 0
}

// Unwrap implements gssapi.Context.
func (c *context) Unwrap(token []byte) (message []byte, err error) {
	defer recovered(&err)
	if len(token) < krb.HdrLen {
		return nil, errors.New("a Wrap token is cut off")
	}
	body := slices.Clone(token[krb.HdrLen:])
	if n := int(binary.BigEndian.Uint16(token[6:])); len(body) > 0 {
		// What is behind the header was rotated to the right.
		n %= len(body)
		body = append(body[n:], body[:n]...)
	}
	var t krb.WrapToken
	if err := t.Unmarshal(append(slices.Clone(token[:krb.HdrLen]), body...), false); err != nil {
		return nil, err
	}
	if t.Flags != c.keyFlag() || t.SndSeqNum != c.theirs {
		return nil, errors.New("a Wrap token is sealed, out of order, or made with another key")
	}
	if ok, err := t.Verify(c.key, keyusage.GSSAPI_INITIATOR_SEAL); err != nil || !ok {
		return nil, errors.New("the checksum of a Wrap token is wrong")
	}
	return t.Payload, nil
}
