package kerberos

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jcmturner/gofork/encoding/asn1"
	"github.com/jcmturner/gokrb5/v8/asn1tools"
	"github.com/jcmturner/gokrb5/v8/crypto"
	krb "github.com/jcmturner/gokrb5/v8/gssapi"
	"github.com/jcmturner/gokrb5/v8/iana/etypeID"
	"github.com/jcmturner/gokrb5/v8/iana/flags"
	"github.com/jcmturner/gokrb5/v8/iana/keyusage"
	"github.com/jcmturner/gokrb5/v8/iana/nametype"
	"github.com/jcmturner/gokrb5/v8/keytab"
	"github.com/jcmturner/gokrb5/v8/messages"
	"github.com/jcmturner/gokrb5/v8/types"

	"github.com/zk-lite/zk-lite/internal/gssapi"
	"github.com/zk-lite/zk-lite/internal/testkit/clock"
)

const aes = etypeID.AES256_CTS_HMAC_SHA1_96

// keys is a keytab of zookeeper/h@R.
func keys(t testing.TB, etypes ...int32) *keytab.Keytab {
	t.Helper()
	k := keytab.New()
	for _, e := range etypes {
		if err := k.AddEntry("zookeeper/h", "R", "secret", time.Unix(1, 0), 1, e); err != nil {
			t.Fatal(err)
		}
	}
	return k
}

func acceptor(t testing.TB) *Acceptor {
	t.Helper()
	text, err := keys(t, aes, etypeID.AES128_CTS_HMAC_SHA256_128, etypeID.RC4_HMAC).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	a, err := New("zookeeper/h@R", text, new(Replays))
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// client is the data that a client presents. The zero value of every field but the names is the usual one.
type client struct {
	cname, crealm, sname, srealm string
	ticket, session              int32 // etypes
	age                          time.Duration
	mutual, subkey               bool
	change                       func(*messages.EncTicketPart, *types.Authenticator)

	auth types.Authenticator
	key  types.EncryptionKey // of the ticket
}

func bob() *client {
	return &client{cname: "bob", crealm: "R", sname: "zookeeper/h", srealm: "R", ticket: aes, session: aes, mutual: true}
}

// token makes the first token.
func (c *client) token(t testing.TB) []byte {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	now := time.Now().UTC().Add(-c.age).Truncate(time.Second)
	sname := types.NewPrincipalName(nametype.KRB_NT_SRV_INST, c.sname)
	cname := types.NewPrincipalName(nametype.KRB_NT_PRINCIPAL, c.cname)
	k := keytab.New()
	must(k.AddEntry(c.sname, c.srealm, "secret", time.Unix(1, 0), 1, c.ticket))
	must(k.AddEntry(c.sname, c.srealm, "secret", time.Unix(1, 0), 1, c.session))
	tkt, key, err := messages.NewTicket(cname, c.crealm, sname, c.srealm, types.NewKrbFlags(), k, c.session, 1, now, now,
		now.Add(time.Hour), now.Add(time.Hour))
	must(err)
	c.key = key
	must(tkt.DecryptEncPart(k, nil))
	c.auth, err = types.NewAuthenticator(c.crealm, cname)
	must(err)
	sum := make([]byte, 24)
	sum[0] = 16
	if c.mutual {
		sum[20] = 2
	}
	c.auth.Cksum = types.Checksum{CksumType: 0x8003, Checksum: sum}
	if c.subkey {
		must(c.auth.GenerateSeqNumberAndSubKey(aes, 32))
	}
	if c.change != nil {
		c.change(&tkt.DecryptedEncPart, &c.auth)
	}
	part, err := asn1.Marshal(tkt.DecryptedEncPart)
	must(err)
	serviceKey, _, err := k.GetEncryptionKey(sname, c.srealm, 1, c.ticket)
	must(err)
	tkt.EncPart, err = crypto.GetEncryptedData(asn1tools.AddASNAppTag(part, 3), serviceKey, keyusage.KDC_REP_TICKET, 1)
	must(err)
	q, err := messages.NewAPReq(tkt, key, c.auth)
	must(err)
	body, err := q.Marshal()
	must(err)
	head, err := asn1.Marshal(oid)
	must(err)
	return asn1tools.AddASNAppTag(slices.Concat(head, apReq, body), 0)
}

// base is the key of Wrap tokens without a key of the server's.
func (c *client) base() types.EncryptionKey {
	if c.subkey {
		return c.auth.SubKey
	}
	return c.key
}

// read takes the AP-REP and returns the server's key and number.
func (c *client) read(t *testing.T, reply []byte) (types.EncryptionKey, uint64) {
	t.Helper()
	var id asn1.ObjectIdentifier
	rest, err := asn1.UnmarshalWithParams(reply, &id, "application,explicit,tag:0")
	if err != nil || !id.Equal(oid) || !bytes.HasPrefix(rest, apRep) {
		t.Fatalf("reply %x (%v), want an AP-REP of Kerberos", reply, err)
	}
	var rep messages.APRep
	if err := rep.Unmarshal(rest[2:]); err != nil {
		t.Fatal(err)
	}
	b, err := crypto.DecryptEncPart(rep.EncPart, c.key, keyusage.AP_REP_ENCPART)
	if err != nil {
		t.Fatal(err)
	}
	var part messages.EncAPRepPart
	if err := part.Unmarshal(b); err != nil {
		t.Fatal(err)
	}
	if !part.CTime.Equal(c.auth.CTime.Truncate(time.Second)) || part.Cusec != c.auth.Cusec {
		t.Errorf("%v %d, want %v %d", part.CTime, part.Cusec, c.auth.CTime, c.auth.Cusec)
	}
	return part.Subkey, uint64(part.SequenceNumber)
}

// wrap makes a Wrap token, rotated to the right.
func wrap(t *testing.T, key types.EncryptionKey, flags byte, seq uint64, rotation int, message string) []byte {
	t.Helper()
	etype, err := crypto.GetEtype(key.KeyType)
	if err != nil {
		t.Fatal(err)
	}
	w := krb.WrapToken{Flags: flags, EC: uint16(etype.GetHMACBitLength() / 8), SndSeqNum: seq, Payload: []byte(message)}
	if err := w.SetCheckSum(key, keyusage.GSSAPI_INITIATOR_SEAL); err != nil {
		t.Fatal(err)
	}
	b, err := w.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	binary.BigEndian.PutUint16(b[6:], uint16(rotation))
	body := b[krb.HdrLen:]
	n := len(body) - rotation%len(body)
	copy(body, slices.Concat(body[n:], body[:n]))
	return b
}

// begin does everything up to the server's offer.
func (c *client) begin(t *testing.T) (e *gssapi.Exchange, key types.EncryptionKey, flags byte) {
	t.Helper()
	e = gssapi.New(acceptor(t))
	reply, _, err := e.Next(c.token(t))
	key, seq := c.base(), uint64(c.auth.SeqNumber)
	if err == nil && c.mutual {
		key, seq = c.read(t, reply)
		flags = acceptorsKey
		reply, _, err = e.Next(nil)
	}
	var w krb.WrapToken
	if err != nil || w.Unmarshal(reply, true) != nil || w.Flags != sentByAcceptor|flags || w.SndSeqNum != seq ||
		!bytes.Equal(w.Payload, []byte{1, 0, 0, 0}) {
		t.Fatalf("reply %x, read as %+v (%v); want the acceptor's offer with number %d", reply, w, err, seq)
	}
	if ok, err := w.Verify(key, keyusage.GSSAPI_ACCEPTOR_SEAL); !ok {
		t.Fatalf("the offer's checksum is wrong, want a right one: %v", err)
	}
	return e, key, flags
}

const choice = "\x01\x00\x00\x00bob"

func TestExchange(t *testing.T) {
	for name, x := range map[string]struct {
		c        *client
		rotation int
		want     string
	}{
		"usual":            {bob(), 0, "bob@R"},
		"rotated":          {bob(), 28, "bob@R"},
		"a lot":            {bob(), 65535, "bob@R"},
		"not mutual":       {&client{cname: "a/b", crealm: "R", sname: "zookeeper/h", srealm: "R", ticket: aes, session: aes}, 0, "a/b@R"},
		"the client's key": {&client{cname: "c", crealm: "R", sname: "zookeeper/h", srealm: "R", ticket: aes, session: aes, subkey: true}, 12, "c@R"},
		"both keys":        {&client{cname: "c", crealm: "R", sname: "zookeeper/h", srealm: "R", ticket: aes, session: aes, subkey: true, mutual: true}, 0, "c@R"},
		"AES with SHA-2": {&client{cname: "c", crealm: "R", sname: "zookeeper/h", srealm: "R",
			ticket: etypeID.AES128_CTS_HMAC_SHA256_128, session: etypeID.AES128_CTS_HMAC_SHA256_128, mutual: true}, 0, "c@R"},
		"a realm that it trusts": {&client{cname: "bob", crealm: "S", sname: "zookeeper/h", srealm: "R", ticket: aes, session: aes}, 0, "bob@S"},
	} {
		e, key, flags := x.c.begin(t)
		_, user, err := e.Next(wrap(t, key, flags, uint64(x.c.auth.SeqNumber), x.rotation, choice))
		if user != x.want || err != nil {
			t.Errorf("%s: user %q (%v), want %q", name, user, err, x.want)
		}
	}
}

func TestUnwrap_IsRefused(t *testing.T) {
	for name, change := range map[string]func(c *client, key types.EncryptionKey, flags byte) []byte{
		"another key": func(c *client, _ types.EncryptionKey, f byte) []byte {
			return wrap(t, c.key, f, uint64(c.auth.SeqNumber), 0, choice)
		},
		"the older key": func(c *client, _ types.EncryptionKey, _ byte) []byte {
			return wrap(t, c.key, 0, uint64(c.auth.SeqNumber), 0, choice)
		},
		"sealed": func(c *client, k types.EncryptionKey, f byte) []byte {
			return wrap(t, k, f|sealed, uint64(c.auth.SeqNumber), 0, choice)
		},
		"our own flag": func(c *client, k types.EncryptionKey, f byte) []byte {
			return wrap(t, k, f|1, uint64(c.auth.SeqNumber), 0, choice)
		},
		"another number": func(c *client, k types.EncryptionKey, f byte) []byte {
			return wrap(t, k, f, uint64(c.auth.SeqNumber)+1, 0, choice)
		},
		"nothing": func(*client, types.EncryptionKey, byte) []byte { return nil },
		"the header only": func(c *client, k types.EncryptionKey, f byte) []byte {
			return wrap(t, k, f, uint64(c.auth.SeqNumber), 0, choice)[:16]
		},
		"changed": func(c *client, k types.EncryptionKey, f byte) []byte {
			b := wrap(t, k, f, uint64(c.auth.SeqNumber), 0, choice)
			b[16] ^= 2
			return b
		},
	} {
		c := bob()
		e, key, flags := c.begin(t)
		if _, user, err := e.Next(change(c, key, flags)); user != "" || err == nil {
			t.Errorf("%s: user %q (%v), want no user and an error", name, user, err)
		}
	}
}

func TestAccept_IsRefused(t *testing.T) {
	ticket := func(f func(*messages.EncTicketPart)) func(*messages.EncTicketPart, *types.Authenticator) {
		return func(p *messages.EncTicketPart, _ *types.Authenticator) { f(p) }
	}
	for name, x := range map[string]struct {
		change func(*client)
		says   string
	}{
		"another service":   {func(c *client) { c.sname = "hdfs/h" }, "the ticket is for"},
		"another realm":     {func(c *client) { c.srealm = "S" }, "the ticket is for"},
		"a key of RC4":      {func(c *client) { c.ticket = etypeID.RC4_HMAC }, "AES"},
		"a session of RC4":  {func(c *client) { c.session = etypeID.RC4_HMAC }, "AES"},
		"an old ticket":     {func(c *client) { c.age = 2 * time.Hour }, "expired"},
		"a ticket too soon": {func(c *client) { c.age = -time.Hour }, "not yet valid"},
		"a slow clock": {func(c *client) {
			c.change = func(_ *messages.EncTicketPart, a *types.Authenticator) { a.CTime = a.CTime.Add(-skew - time.Minute) }
		}, "skew"},
		"somebody else's authenticator": {func(c *client) {
			c.change = func(_ *messages.EncTicketPart, a *types.Authenticator) { a.CName.NameString = []string{"root"} }
		}, "CName"},
		"another realm's authenticator": {func(c *client) {
			c.change = func(_ *messages.EncTicketPart, a *types.Authenticator) { a.CRealm = "S" }
		}, "different realms"},
		"no checksum": {func(c *client) {
			c.change = func(_ *messages.EncTicketPart, a *types.Authenticator) { a.Cksum.Checksum = a.Cksum.Checksum[:23] }
		}, "checksum"},
		"an invalid ticket": {func(c *client) {
			c.change = ticket(func(p *messages.EncTicketPart) { types.SetFlag(&p.Flags, flags.Invalid) })
		}, "not good"},
		"a ticket for an address": {func(c *client) {
			c.change = ticket(func(p *messages.EncTicketPart) {
				p.CAddr = types.HostAddresses{{AddrType: 2, Address: []byte{10, 0, 0, 1}}}
			})
		}, "address"},
		"a way that is not checked": {func(c *client) {
			c.crealm = "S"
			c.change = ticket(func(p *messages.EncTicketPart) { p.Transited.Contents = []byte("T") })
		}, "the way from"},
		"a slash in a name": {func(c *client) {
			c.change = func(p *messages.EncTicketPart, a *types.Authenticator) {
				p.CName.NameString, a.CName.NameString = []string{"a/b"}, []string{"a/b"}
			}
		}, "slash"},
	} {
		c := bob()
		x.change(c)
		got, reply, err := acceptor(t).Accept(c.token(t))
		if got != nil || reply != nil || err == nil || !strings.Contains(err.Error(), x.says) {
			t.Errorf("%s: reply %x, error %v; want none, and an error with %q", name, reply, err, x.says)
		}
	}
}

func TestAccept_ReplayedAndDamaged(t *testing.T) {
	a, token := acceptor(t), bob().token(t)
	for n := range token {
		if _, _, err := a.Accept(token[:n]); err == nil {
			t.Fatalf("%d of %d bytes were taken", n, len(token))
		}
	}
	for n := len(token) - 100; n < len(token); n++ { // of the encrypted authenticator
		damaged := slices.Clone(token)
		damaged[n] ^= 0x40
		if _, _, err := a.Accept(damaged); err == nil {
			t.Fatalf("byte %d of %d may be changed", n, len(token))
		}
	}
	if _, _, err := a.Accept(token); err != nil {
		t.Fatal(err)
	}
	if _, _, err := a.Accept(token); err == nil || !strings.Contains(err.Error(), "used before") {
		t.Errorf("a replayed token: %v", err)
	}
}

func TestNew(t *testing.T) {
	text := func(etypes ...int32) []byte {
		b, err := keys(t, etypes...).Marshal()
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	good := text(aes)
	for _, x := range []struct {
		principal string
		text      []byte
		says      string
	}{
		{"zookeeper/h@R", good, ""}, {"zookeeper/h", good, ""}, {"zookeeper/h@S", good, "no key"},
		{"zookeeper/g@R", good, "no key"}, {"zookeeper@R", good, "no principal"}, {"zookeeper/h@", good, "no principal"},
		{"/h@R", good, "no principal"}, {"zookeeper/h@R", text(etypeID.RC4_HMAC), "no key of AES"},
		{"zookeeper/h@R", good[:len(good)-10], "damaged"}, {"zookeeper/h@R", []byte("hello"), "no keytab"},
		{"zookeeper/h@R", nil, "no keytab"},
	} {
		a, err := New(x.principal, x.text, new(Replays))
		if (err == nil) != (x.says == "") || err != nil && (!strings.Contains(err.Error(), x.says) ||
			strings.Contains(err.Error(), hex.EncodeToString(good[len(good)-20:len(good)-12]))) {
			t.Errorf("%s: error %v, want one with %q and without key bytes", x.principal, err, x.says)
		}
		if err == nil && a.Realm() != "R" {
			t.Errorf("%s: the realm is %q", x.principal, a.Realm())
		}
	}
}

func TestReplays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, sum := new(Replays), [32]byte{1}
		if err := r.add("bob@R", [32]byte{2}); err != nil {
			t.Fatal(err)
		}
		clock.Sleep(replayWindow - time.Second)
		if err := r.add("bob@R", sum); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if r.add("bob@R", sum) == nil {
				t.Error("a token was taken twice")
			}
			clock.Sleep(replayWindow - 2*time.Second)
		}
		clock.Sleep(2 * replayWindow)
		if err := r.add("bob@R", sum); err != nil || len(r.now)+len(r.old) != 1 {
			t.Errorf("it is remembered forever: %v", err)
		}
	})
}

// One user who logged in 131,072 times within ten minutes had all others refused. A user who takes much leaves room
// to the others, and so do some who do it together.
func TestRegression_Replays_OneUserLeavesRoom(t *testing.T) {
	r, next := new(Replays), uint64(0)
	login := func(principal string) error {
		next++
		return r.add(principal, [32]byte(binary.BigEndian.AppendUint64(make([]byte, 24), next)))
	}
	for bad := range 10 {
		refused := false
		for range 2 * maxReplays {
			if refused = login(fmt.Sprint("bad", bad)) != nil; refused {
				break
			}
		}
		if !refused {
			t.Error("there is no bound")
		}
	}
	if left := maxReplays - len(r.now); left < 20 {
		t.Errorf("ten users leave room for %d logins", left)
	}
	for good := range 10 {
		if err := login(fmt.Sprint("good", good)); err != nil {
			t.Errorf("user %d: %v", good, err)
		}
	}
}

func FuzzAccept(f *testing.F) {
	a := acceptor(f)
	f.Add(bob().token(f))
	f.Add([]byte{0x60, 0x0b, 6, 9, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x12, 1, 2, 2})
	f.Fuzz(func(t *testing.T, token []byte) {
		if c, _, err := a.Accept(token); err == nil && c.Initiator() != "bob@R" {
			t.Errorf("token %x is accepted for %s, want bob@R or an error", token, c.Initiator())
		}
	})
}

func FuzzNew(f *testing.F) {
	text, err := keys(f, aes).Marshal()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Fuzz(func(t *testing.T, text []byte) {
		if a, err := New("zookeeper/h@R", text, new(Replays)); err == nil && a.Realm() != "R" {
			t.Errorf("keytab %x: realm %s, want R or an error", text, a.Realm())
		}
	})
}

func FuzzUnwrap(f *testing.F) {
	c := &context{key: types.EncryptionKey{KeyType: aes, KeyValue: make([]byte, 32)}}
	f.Add([]byte{5, 4, 0, 0xff, 0, 12, 0, 12, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0})
	f.Fuzz(func(t *testing.T, token []byte) {
		if m, err := c.Unwrap(token); err == nil {
			t.Errorf("token %x is unwrapped to %x, want an error", token, m)
		}
	})
}
