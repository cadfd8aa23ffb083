// Package kerberos accepts Kerberos clients: it is the acceptor of the GSS-API mechanism of RFC 4121, for
// internal/gssapi, with the keys of a keytab. It contacts no KDC, and is the only package that knows which library
// does the work (docs/adr/0023).
//
// Tickets, session keys and subkeys must be of AES (RFC 3962, RFC 8009): older kinds are refused (RFC 8429). It
// starts no goroutine.
package kerberos

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jcmturner/gofork/encoding/asn1"
	"github.com/jcmturner/gokrb5/v8/asn1tools"
	"github.com/jcmturner/gokrb5/v8/crypto"
	krb "github.com/jcmturner/gokrb5/v8/gssapi"
	"github.com/jcmturner/gokrb5/v8/iana/asnAppTag"
	"github.com/jcmturner/gokrb5/v8/iana/etypeID"
	"github.com/jcmturner/gokrb5/v8/iana/flags"
	"github.com/jcmturner/gokrb5/v8/iana/keyusage"
	"github.com/jcmturner/gokrb5/v8/iana/msgtype"
	"github.com/jcmturner/gokrb5/v8/keytab"
	"github.com/jcmturner/gokrb5/v8/messages"
	"github.com/jcmturner/gokrb5/v8/types"

	"github.com/zk-lite/zk-lite/internal/gssapi"
)

// skew is how far clocks of clients may be off (RFC 4120, 1.6).
const skew = 5 * time.Minute

// Acceptor is a service that clients authenticate to. It implements gssapi.Acceptor.
type Acceptor struct {
	components []string
	realm      string
	keys       *keytab.Keytab
	replays    *Replays
}

// New returns the acceptor of a principal, service/host@REALM or service/host, which must have keys of AES in the text
// of a keytab. Acceptors of one service share their replays.
func New(principal string, text []byte, replays *Replays) (a *Acceptor, err error) {
	defer recovered(&err)
	name, realm, hasRealm := strings.Cut(principal, "@")
	a = &Acceptor{strings.Split(name, "/"), realm, keytab.New(), replays}
	if len(a.components) != 2 || slices.Contains(a.components, "") || hasRealm && realm == "" {
		return nil, fmt.Errorf("%q is no principal of a service; want service/host@REALM", principal)
	}
	if a.keys.Unmarshal(text) != nil { // its errors may show keys
		return nil, errors.New("this is no keytab, or it is damaged")
	}
	for _, e := range a.keys.Entries {
		if !slices.Equal(e.Principal.Components, a.components) || !isAES(e.Key.KeyType) ||
			a.realm != "" && e.Principal.Realm != a.realm {
			continue
		}
		a.realm = e.Principal.Realm
		return a, nil
	}
	return nil, fmt.Errorf("the keytab has no key of AES for %s", principal)
}

// Realm is that of the service.
func (a *Acceptor) Realm() string { return a.realm }

func isAES(etype int32) bool {
	return slices.Contains([]int32{etypeID.AES128_CTS_HMAC_SHA1_96, etypeID.AES256_CTS_HMAC_SHA1_96,
		etypeID.AES128_CTS_HMAC_SHA256_128, etypeID.AES256_CTS_HMAC_SHA384_192}, etype)
}

// recovered turns a panic of the library about outside bytes into an error.
func recovered(err *error) {
	if r := recover(); r != nil {
		*err = errors.New("it cannot be read")
	}
}

// The framing of RFC 2743, 3.1 and RFC 4121, 4.1.
var (
	oid   = asn1.ObjectIdentifier{1, 2, 840, 113554, 1, 2, 2}
	apReq = []byte{1, 0}
	apRep = []byte{2, 0}
)

// Accept implements gssapi.Acceptor.
func (a *Acceptor) Accept(token []byte) (c gssapi.Context, reply []byte, err error) {
	defer recovered(&err)
	q, err := parse(token)
	if err != nil {
		return nil, nil, err
	}
	if err := a.verify(q); err != nil {
		return nil, nil, err
	}
	d := &q.Ticket.DecryptedEncPart
	ctx := &context{
		initiator: principalOf(d),
		key:       d.Key,
		theirs:    uint64(uint32(q.Authenticator.SeqNumber)),
	}
	ctx.ours = ctx.theirs // unless there is an AP-REP
	if len(q.Authenticator.SubKey.KeyValue) > 0 {
		ctx.key = q.Authenticator.SubKey
	}
	if !isAES(ctx.key.KeyType) || !isAES(d.Key.KeyType) {
		return nil, nil, errors.New("the ticket's session key, or the client's, is not of AES")
	}
	mutual, err := wantsMutual(q)
	if err == nil && mutual {
		reply, err = ctx.answer(q)
	}
	if err != nil {
		return nil, nil, err
	}
	return ctx, reply, nil
}

func principalOf(d *messages.EncTicketPart) string {
	return strings.Join(d.CName.NameString, "/") + "@" + d.CRealm
}

func parse(token []byte) (*messages.APReq, error) {
	var id asn1.ObjectIdentifier
	rest, err := asn1.UnmarshalWithParams(token, &id, "application,explicit,tag:0")
	q := new(messages.APReq)
	if err == nil && id.Equal(oid) && bytes.HasPrefix(rest, apReq) && q.Unmarshal(rest[len(apReq):]) == nil {
		return q, nil
	}
	return nil, errors.New("the token has no Kerberos AP-REQ")
}

// verify checks ticket and authenticator (RFC 4120, 3.2.3).
func (a *Acceptor) verify(q *messages.APReq) error {
	t := &q.Ticket
	if !slices.Equal(t.SName.NameString, a.components) || t.Realm != a.realm {
		return fmt.Errorf("the ticket is for %.200q, and this is %s@%s", t.SName.PrincipalNameString()+"@"+t.Realm,
			strings.Join(a.components, "/"), a.realm)
	}
	if !isAES(t.EncPart.EType) {
		return errors.New("the ticket is not encrypted by AES")
	}
	if ok, err := q.Verify(a.keys, skew, types.HostAddress{}, nil); err != nil || !ok {
		return fmt.Errorf("the ticket is not good: %w", err)
	}
	d := &t.DecryptedEncPart
	if q.Authenticator.CRealm != d.CRealm {
		return errors.New("ticket and authenticator are of different realms")
	}
	for _, name := range append(slices.Clone(d.CName.NameString), d.CRealm) {
		if name == "" || strings.ContainsAny(name, "/@") {
			return errors.New("the client's name has an empty part, or a slash or an at sign in a part")
		}
	}
	// The KDC has checked the realms on the way, or there are none.
	if d.CRealm != a.realm && len(d.Transited.Contents) > 0 &&
		!types.IsFlagSet(&d.Flags, flags.TransitedPolicyChecked) {
		return fmt.Errorf("the KDC has not checked the way from the realm %.100q", d.CRealm)
	}
	return a.replays.add(principalOf(d), sha256.Sum256(q.EncryptedAuthenticator.Cipher))
}

// wantsMutual reads the flags in the authenticator (RFC 4121, 4.1.1).
func wantsMutual(q *messages.APReq) (bool, error) {
	const gssChecksum, size, mutual = 0x8003, 24, 2
	sum := q.Authenticator.Cksum
	if sum.CksumType != gssChecksum || len(sum.Checksum) < size {
		return false, errors.New("the authenticator has no checksum of GSS-API")
	}
	return binary.LittleEndian.Uint32(sum.Checksum[size-4:])&mutual != 0, nil
}

// answer makes the AP-REP, with a key of this server's: a message that a client has sent to another server is worth
// nothing here.
func (c *context) answer(q *messages.APReq) ([]byte, error) {
	etype, err := crypto.GetEtype(c.key.KeyType)
	if err != nil {
		return nil, err
	}
	value := make([]byte, etype.GetKeyByteSize()+4)
	rand.Read(value)
	c.key = types.EncryptionKey{KeyType: c.key.KeyType, KeyValue: value[4:]}
	c.ours, c.ownKey = uint64(binary.BigEndian.Uint32(value)>>2), true // signed for old clients
	part, err := asn1.Marshal(messages.EncAPRepPart{
		CTime: q.Authenticator.CTime, Cusec: q.Authenticator.Cusec, Subkey: c.key, SequenceNumber: int64(c.ours),
	})
	if err != nil {
		return nil, err
	}
	rep := messages.APRep{PVNO: 5, MsgType: msgtype.KRB_AP_REP}
	rep.EncPart, err = crypto.GetEncryptedData(asn1tools.AddASNAppTag(part, asnAppTag.EncAPRepPart),
		q.Ticket.DecryptedEncPart.Key, keyusage.AP_REP_ENCPART, 0)
	if err != nil {
		return nil, err
	}
	body, err := asn1.Marshal(rep)
	if err != nil {
		return nil, err
	}
	head, err := asn1.Marshal(oid)
	return asn1tools.AddASNAppTag(slices.Concat(head, apRep, asn1tools.AddASNAppTag(body, asnAppTag.APREP)), 0), err
}

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
		// The bytes after the header were rotated to the right.
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

const (
	// replayWindow is how long an authenticator is valid, from one end of the skew to the
	// other.
	replayWindow = 2 * skew
	// maxReplays bounds the logins of one window, which take some 10 MiB.
	maxReplays = 1 << 17
)

// Replays remembers which authenticators clients have used (RFC 4120, 3.2.3), in memory: those from before the
// start are not known. The zero value is ready.
type Replays struct {
	mu       sync.Mutex // protects the fields below
	now, old map[[sha256.Size]byte]struct{}
	since    time.Time      // of now
	by       map[string]int // of now, by the principal
}

// add remembers an authenticator of a principal. It returns an error if that was used before, or if there is no
// room for it: a principal may have as many as there is room left for, so that one that takes much leaves as
// much to all others.
func (r *Replays) add(principal string, sum [sha256.Size]byte) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if t := time.Now(); r.now == nil || t.Sub(r.since) >= replayWindow {
		if r.old = r.now; t.Sub(r.since) >= 2*replayWindow {
			r.old = nil
		}
		r.now, r.by, r.since = map[[sha256.Size]byte]struct{}{}, map[string]int{}, t
	}
	_, before := r.now[sum]
	if _, long := r.old[sum]; before || long {
		return errors.New("the token was used before")
	}
	if r.by[principal] >= maxReplays-len(r.now) {
		return errors.New("too many logins of this principal: their tokens could not be told from replayed ones")
	}
	r.now[sum] = struct{}{}
	r.by[principal]++
	return nil
}
