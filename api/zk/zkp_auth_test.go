package zk_test

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/api/zk"
	"github.com/zk-lite/zk-lite/internal/testkit/certs"
	"github.com/zk-lite/zk-lite/internal/tlsport"
	"github.com/zk-lite/zk-lite/internal/wire"
	"github.com/zk-lite/zk-lite/server/audit"
	"github.com/zk-lite/zk-lite/server/auth"
	"github.com/zk-lite/zk-lite/znode"
)

func knows(cfg auth.Config) option {
	return func(s *serverConfig, _ *zkConfig) { s.Auth = auth.New(cfg) }
}

// A client without an identity of enforce.auth.schemes gets -124 for whatever it asks, and goes (AuthenticationHelper).
func TestZKP_EnforceAuth(t *testing.T) {
	k := start(t, knows(auth.Config{Schemes: []string{"digest"}}))
	for op := wire.OpCloseSession - 1; op <= wire.OpWhoAmI+1; op++ { // those that there are, and others
		if op == wire.OpAuth || op == wire.OpSASL {
			continue
		}
		c := k.connect()
		xid := c.send(op, nil)
		if h, _ := c.reply(xid, op); h.Err != znode.ErrSessionClosedNeedsSASL || h.Zxid != 0 {
			t.Errorf("%v: reply %+v, want SESSIONCLOSEDREQUIRESASLAUTH and zxid 0", op, h)
		}
		c.closed()
	}
	c := k.connect()
	c.auth("digest", "ann:secret")
	c.create("/mine", "")
	c.fence()
}

func TestZKP_EnsembleName(t *testing.T) {
	k := start(t, knows(auth.Config{Ensemble: true, Ensembles: []string{"one", "two"}}))
	for _, name := range []string{"", "two"} {
		c := k.connect()
		c.want(znode.OK, wire.OpAuth, &wire.AuthRequest{Scheme: "ensemble", Auth: []byte(name)})
		c.fence()
	}
	c := k.connect()
	c.send(wire.OpAuth, &wire.AuthRequest{Scheme: "ensemble", Auth: []byte("three")})
	c.closed() // without an answer: it may try another server

	c = start(t, knows(auth.Config{})).connect()
	c.want(znode.ErrAuthFailed, wire.OpAuth, &wire.AuthRequest{Scheme: "ensemble"})
	c.closed()
}

func TestZKP_DigestSwitchedOff_AndSkipACL(t *testing.T) {
	c := start(t, knows(auth.Config{NoDigest: true})).connect()
	c.want(znode.ErrAuthFailed, wire.OpAuth, &wire.AuthRequest{Scheme: "digest", Auth: []byte("a:b")})
	c.closed()

	free := start(t, knows(auth.Config{SkipACL: true})).connect()
	nobodys := []znode.ACL{{Perms: znode.PermAll, ID: znode.ID{Scheme: "digest", ID: "x:y"}}}
	free.want(znode.OK, wire.OpCreate, &wire.CreateRequest{Path: "/locked", ACL: nobodys})
	free.want(znode.OK, wire.OpGetData, &wire.GetDataRequest{Path: "/locked"})
}

// A client's certificate is its identity from the start; addauth x509 adds nothing, and fails without one.
func TestZKP_X509(t *testing.T) {
	ca := certs.Authority(t, "ca")
	own := ca.Issue(t, "server", nil)
	roots := x509.NewCertPool()
	roots.AddCert(ca.Cert)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l = tlsport.New(l, tlsport.Options{
		Config: &tls.Config{
			Certificates: []tls.Certificate{{Certificate: [][]byte{own.Cert.Raw}, PrivateKey: own.Key}},
			ClientAuth:   tls.VerifyClientCertIfGiven, ClientCAs: roots,
		},
		Handshakes: tlsport.NewHandshakes(0, time.Minute),
	})
	k := startOn(t, l, knows(auth.Config{SuperName: "CN=boss"}))
	as := func(name string) *client {
		t.Helper()
		cfg := &tls.Config{RootCAs: roots, ServerName: "localhost"}
		if name != "" {
			p := ca.Issue(t, name, nil)
			cfg.Certificates = []tls.Certificate{{Certificate: [][]byte{p.Cert.Raw}, PrivateKey: p.Key}}
		}
		raw, err := net.Dial("tcp", k.addr)
		if err != nil {
			t.Fatal(err)
		}
		return k.over(tls.Client(raw, cfg)).connect(wire.ConnectRequest{TimeoutMillis: 30_000})
	}
	ann, boss, nobody := as("ann"), as("boss"), as("")
	ann.want(znode.OK, wire.OpCreate, &wire.CreateRequest{Path: "/ann", ACL: []znode.ACL{{Perms: znode.PermAll, ID: znode.AuthIDs}}})
	_, x := boss.want(znode.OK, wire.OpGetACL, &wire.GetACLRequest{Path: "/ann"})
	if acl := x.(*wire.GetACLResponse).ACL; !slices.Equal(acl, []znode.ACL{{Perms: znode.PermAll, ID: znode.ID{Scheme: "x509", ID: "CN=ann"}}}) {
		t.Errorf("ACL %v, want all rights for x509:CN=ann", acl)
	}
	nobody.want(znode.ErrNoAuth, wire.OpGetData, &wire.GetDataRequest{Path: "/ann"})
	boss.want(znode.OK, wire.OpGetData, &wire.GetDataRequest{Path: "/ann"})
	ann.want(znode.OK, wire.OpAuth, &wire.AuthRequest{Scheme: "x509"})
	nobody.want(znode.ErrAuthFailed, wire.OpAuth, &wire.AuthRequest{Scheme: "x509"})
	nobody.closed()

	// Frames larger than a TLS record, both ways, and a client that only closes its side.
	big := strings.Repeat("x", 900_000)
	ann.create("/big", big)
	if _, x := ann.want(znode.OK, wire.OpGetData, &wire.GetDataRequest{Path: "/big"}); string(x.(*wire.GetDataResponse).Data) != big {
		t.Error("the data have changed")
	}
	ann.want(znode.OK, wire.OpCloseSession, nil)
	ann.closed()
}

// Beyond requestThrottleLimit requests wait for each other, also those of one client, and all are answered in order.
func TestListener_MaxRequests(t *testing.T) {
	k := start(t, func(_ *serverConfig, z *zkConfig) { z.MaxRequests = 2 })
	clients := []*client{k.connect(), k.connect()}
	var xids [2][]wire.Xid
	for i := range 50 {
		for n, c := range clients {
			op, body := wire.OpCreate, wire.Request(&wire.CreateRequest{
				Path: fmt.Sprintf("/n%d-%d", n, i), ACL: znode.OpenACL})
			if i%2 == 1 {
				op, body = wire.OpExists, &wire.ExistsRequest{Path: fmt.Sprintf("/n%d-%d", n, i-1)}
			}
			xids[n] = append(xids[n], c.send(op, body))
		}
	}
	for n, c := range clients {
		for i, xid := range xids[n] {
			op := wire.OpCreate
			if i%2 == 1 {
				op = wire.OpExists
			}
			if h, _ := c.reply(xid, op); h.Err != znode.OK {
				t.Fatalf("request %d of client %d: %v", i, n, h.Err)
			}
		}
	}
}

func TestListener_ConnectionThrottle(t *testing.T) {
	k := start(t, func(_ *serverConfig, z *zkConfig) {
		z.Throttle = zk.ConnectionThrottle{MaxTokens: 2, FillTime: time.Hour, FillCount: 1}
	})
	k.connect()
	k.connect()
	c := k.dial()
	q := wire.ConnectRequest{TimeoutMillis: 30_000, Password: make([]byte, znode.PasswordSize)}
	b, mark := wire.BeginFrame(nil)
	b = q.Append(b)
	wire.EndFrame(b, mark)
	c.raw(b)
	c.closed()
}

// fakeSASL proves the client's identity in its second round.
type fakeSASL struct{ rounds int }

func (e *fakeSASL) Next(token []byte) (reply []byte, user string, err error) {
	switch e.rounds++; {
	case e.rounds > 2 || string(token) == "wrong":
		return nil, "", errors.New("no")
	case e.rounds == 1:
		return []byte("who?"), "", nil
	}
	return []byte("welcome"), string(token), nil
}

var creatorAll = []znode.ACL{{Perms: znode.PermAll, ID: znode.ID{Scheme: "auth"}}}

func withSASL(failed bool, schemes ...string) option {
	return knows(auth.Config{Schemes: schemes, SASL: &auth.SASL{
		Mechanism: func() string { return "DIGEST-MD5" }, Begin: func() auth.Exchange { return new(fakeSASL) }, AllowFailed: failed,
		Realm: func() string { return "" }, Supers: []string{"boss"},
	}})
}

func (c *client) sasl(want znode.Error, token, reply string) {
	c.t.Helper()
	h, x := c.want(want, wire.OpSASL, &wire.SASLRequest{Token: []byte(token)})
	if r, _ := x.(*wire.SASLResponse); h.Zxid != 0 || want == znode.OK && string(r.Token) != reply {
		c.t.Errorf("%q: reply %+v, %+v; want zxid 0 and token %q", token, h, x, reply)
	}
}

// 84. SASL: the identity is there for the next request, and for ACLs.
func TestZKP_SASL(t *testing.T) {
	k := start(t, withSASL(false, "sasl", "x509"))
	bob := k.connect()
	bob.sasl(znode.OK, "", "who?")
	bob.send(wire.OpSASL, &wire.SASLRequest{Token: []byte("bob")})
	xid := bob.send(wire.OpCreate, &wire.CreateRequest{Path: "/bobs", ACL: creatorAll})
	bob.next()
	if h, _ := bob.reply(xid, wire.OpCreate); h.Err != znode.OK {
		t.Errorf("create: %+v", h)
	}
	acl := wantOK[*wire.GetACLResponse](bob, wire.OpGetACL, &wire.GetACLRequest{Path: "/bobs"})
	if !slices.Equal(acl.ACL, []znode.ACL{{Perms: znode.PermAll, ID: znode.ID{Scheme: "sasl", ID: "bob"}}}) {
		t.Errorf("ACL %v, want all rights for sasl:bob", acl.ACL)
	}
	for user, want := range map[string]znode.Error{"eve": znode.ErrNoAuth, "boss": znode.OK, "super": znode.OK} {
		c := k.connect()
		c.sasl(znode.OK, "", "who?")
		c.sasl(znode.OK, user, "welcome")
		c.want(want, wire.OpGetData, &wire.GetDataRequest{Path: "/bobs"})
	}
	bob.sasl(znode.ErrSessionClosedNeedsSASL, "again", "")
	bob.closed()
}

func TestZKP_SASL_Fails(t *testing.T) {
	for _, x := range []struct {
		allow   bool
		schemes []string
		want    znode.Error
	}{
		{false, nil, znode.ErrAuthFailed}, {false, []string{"sasl"}, znode.ErrSessionClosedNeedsSASL},
		{true, []string{"sasl"}, znode.ErrSessionClosedNeedsSASL}, {true, nil, znode.OK},
	} {
		k := start(t, withSASL(x.allow, x.schemes...))
		c := k.connect()
		c.sasl(x.want, "wrong", "")
		if x.want != znode.OK {
			c.closed()
			continue
		}
		c.create("/anybody", "") // without an identity
		c.want(znode.ErrInvalidACL, wire.OpCreate, &wire.CreateRequest{Path: "/mine", ACL: creatorAll})
	}
	k := start(t, withSASL(false))
	c := k.connect()
	c.sasl(znode.OK, "", "who?")
	c.sasl(znode.ErrAuthFailed, "a@b@c", "")
	c.closed()
	// Java's client also reads a token after an error: without one it would connect again and again.
	c = k.connect()
	c.send(wire.OpSASL, &wire.SASLRequest{Token: []byte("wrong")})
	if b := c.next(); !bytes.HasSuffix(b, []byte{0xff, 0xff, 0xff, 0x8d, 0xff, 0xff, 0xff, 0xff}) {
		t.Errorf("reply % x, want one that ends in AUTHFAILED and an absent token", b)
	}
}

// A read that an ACL refuses is in the audit log, whichever it is. It was not.
func TestRegression_Audit_RefusedReads(t *testing.T) {
	file := filepath.Join(t.TempDir(), "audit.log")
	trail := audit.Open(audit.Config{File: file, MaxBytes: 1 << 20, Keep: 1, Logger: slog.Default()})
	k := start(t, func(_ *serverConfig, z *zkConfig) { z.Audit = trail })
	c := k.connect()
	acl := []znode.ACL{{Perms: znode.PermAll, ID: znode.ID{Scheme: "digest", ID: "x:y"}}}
	c.want(znode.OK, wire.OpCreate, &wire.CreateRequest{Path: "/locked", ACL: acl})
	c.want(znode.ErrNoAuth, wire.OpGetData, &wire.GetDataRequest{Path: "/locked"})
	c.want(znode.ErrNoAuth, wire.OpGetChildren2, &wire.GetChildrenRequest{Path: "/locked"})
	if err := trail.Close(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	for _, operation := range []string{"getData", "getChildren2"} {
		want := "operation=" + operation + "\tznode=/locked\tresult=failure\treason=NOAUTH\n"
		if err != nil || strings.Count(string(text), want) != 1 {
			t.Errorf("%v: want %q once in\n%s", err, want, text)
		}
	}
}

// A failed login is in the audit log, and the log tells an operator with Java clients what may be wrong with
// them.
func TestZKP_SASL_FailuresAreToldToTheOperator(t *testing.T) {
	file := filepath.Join(t.TempDir(), "audit.log")
	trail := audit.Open(audit.Config{File: file, MaxBytes: 1 << 20, Keep: 1, Logger: slog.Default()})
	log := &lines{}
	k := start(t, withSASL(false, "sasl"), logTo(log), func(_ *serverConfig, z *zkConfig) { z.Audit = trail })
	c := k.connect()
	c.sasl(znode.ErrSessionClosedNeedsSASL, "wrong", "")
	c.closed()
	c = k.connect()
	c.want(znode.ErrSessionClosedNeedsSASL, wire.OpExists, &wire.ExistsRequest{Path: "/"})
	c.closed()
	if err := trail.Close(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if want := "operation=login\tresult=failure\treason=sasl DIGEST-MD5: no\n"; err != nil || !strings.Contains(string(text), want) {
		t.Errorf("%v: no %q in\n%s", err, want, text)
	}
	if got := log.String(); !strings.Contains(got, "-Dzookeeper.fips-mode=false") {
		t.Errorf("no hint in\n%s", got)
	}
}
