package auth

import (
	"bufio"
	"bytes"
	"crypto"
	"encoding/hex"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/zk-lite/zk-lite/internal/follow"
	"github.com/zk-lite/zk-lite/internal/testkit/clock"
	"github.com/zk-lite/zk-lite/znode"
)

// testdata/names.txt has names in DER, and what Java 17's X500Principal.getName makes of them.
func TestName_IsJavas(t *testing.T) {
	f, err := os.Open("testdata/names.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	n := 0
	for lines := bufio.NewScanner(f); lines.Scan(); n++ {
		der, quoted, _ := strings.Cut(lines.Text(), " ")
		b, err := hex.DecodeString(der)
		if err != nil {
			t.Fatal(err)
		}
		want, err := strconv.Unquote(quoted)
		if err != nil {
			t.Fatalf("unquoting %s: %v", quoted, err)
		}
		if got := name(b); got != want {
			t.Errorf("%s: %q, want %q", der, got, want)
		}
	}
	if n < 20 {
		t.Errorf("only %d names", n)
	}
}

func FuzzName(f *testing.F) {
	f.Add([]byte{0x30, 0})
	f.Fuzz(func(_ *testing.T, der []byte) { _ = name(der) })
}

func TestPassword(t *testing.T) {
	// printf super:secret | openssl dgst -sha1 -binary | base64, and with -sha256
	const sha1, sha256 = "super:lK75jTNcA+U9vtVEw5vB51mj/w4=", "super:WTA5ucCHTdJq645xIMibj8HviTPeB5mMuJ4/+v1dIEw="
	want := []znode.ID{{Scheme: "digest", ID: sha1}, znode.SuperIDs}
	a := New(Config{SuperDigest: sha1})
	if ids, ok := a.Password("super:secret"); !ok || !slices.Equal(ids, want) {
		t.Errorf("the super user: %v, %v", ids, ok)
	}
	if ids, ok := a.Password("super:wrong"); !ok || len(ids) != 1 || ids[0].ID == sha1 || a.Administrator(ids) {
		t.Errorf("a wrong password: %v, %v", ids, ok)
	}
	for _, text := range []string{"", ":", "super", "super:secret"} {
		if ids, ok := New(Config{}).Password(text); !ok || len(ids) != 1 || ids[0].Scheme != "digest" {
			t.Errorf("%q without a super user: %v", text, ids)
		}
	}
	if ids, ok := New(Config{Digest: crypto.SHA256}).Password("super:secret"); !ok || ids[0].ID != sha256 {
		t.Errorf("with SHA-256: %v, %v", ids, ok)
	}
	if ids, ok := New(Config{NoDigest: true, SuperDigest: sha1}).Password("super:secret"); ok || len(ids) > 0 {
		t.Errorf("without the scheme: %v", ids)
	}
}

func TestAdministrator(t *testing.T) {
	ops := znode.ID{Scheme: "x509", ID: "CN=ops"}
	a := New(Config{Administrators: []znode.ID{ops}, SkipACL: true})
	for _, x := range []struct {
		id   znode.ID
		want bool
	}{
		{ops, true}, {znode.SuperIDs, true}, {znode.ID{Scheme: "super", ID: "CN=x"}, true},
		{znode.ID{Scheme: "digest", ID: "CN=ops"}, false}, {unchecked, false},
	} {
		if got := a.Administrator([]znode.ID{{Scheme: "ip", ID: "127.0.0.1"}, x.id}); got != x.want {
			t.Errorf("Administrator(%v) = %t, want %t", x.id, got, x.want)
		}
	}
	if ids := a.First("192.0.2.1"); a.Administrator(ids) || !znode.Permits([]znode.ACL{{ID: ops}}, znode.PermAdmin, ids) {
		t.Errorf("skipACL: %v", ids)
	}
	if !a.Configured() || New(Config{SkipACL: true}).Configured() {
		t.Error("who has named administrators is not known")
	}
}

// Which setting makes a client a super user is known by its identity, of a digest by the name alone.
func TestUnrestricted(t *testing.T) {
	all := Config{SuperDigest: "admin:hash", SuperName: "CN=super", SASL: &SASL{Supers: []string{"root"}}}
	for _, x := range []struct {
		cfg        Config
		scheme, id string
		want       string
	}{
		{all, "digest", "admin:x", "DigestAuthenticationProvider.superDigest"},
		{all, "x509", "CN=super", "X509AuthenticationProvider.superUser"},
		{all, "sasl", "root", "superUser"},
		{all, "super", "CN=x", "super user"},
		{all, "digest", "ann:x", ""}, {all, "x509", "CN=ann", ""}, {all, "sasl", "ann", ""}, {all, "ip", "10.0.0.1", ""},
		{Config{}, "digest", ":x", ""}, {Config{}, "x509", "", ""}, {Config{}, "sasl", "root", ""},
		{Config{SkipACL: true}, "ip", "10.0.0.1", "skipACL"},
	} {
		if got := New(x.cfg).Unrestricted([]znode.ID{{Scheme: x.scheme, ID: x.id}}); got != x.want {
			t.Errorf("%s:%s is unrestricted by %q, want %q", x.scheme, x.id, got, x.want)
		}
	}
}

func TestEnsembleAndSchemes(t *testing.T) {
	for _, x := range []struct {
		cfg  Config
		name string
		want bool
	}{
		{Config{}, "", false}, {Config{Ensemble: true}, "any", true},
		{Config{Ensemble: true, Ensembles: []string{"a", "b"}}, "b", true},
		{Config{Ensemble: true, Ensembles: []string{"a", "b"}}, "c", false},
		{Config{Ensemble: true, Ensembles: []string{"a"}}, "", true},
	} {
		if got := New(x.cfg).Ensemble(x.name); got != x.want {
			t.Errorf("%+v: Ensemble(%q) = %t, want %t", x.cfg, x.name, got, x.want)
		}
	}
	a := New(Config{Schemes: []string{"digest", "x509"}})
	if a.Enough([]znode.ID{{Scheme: "ip"}}) || !a.Enough([]znode.ID{{Scheme: "ip"}, {Scheme: "x509"}}) ||
		!New(Config{}).Enough(nil) {
		t.Error("the schemes that are needed")
	}
}

func TestTokens_FollowTheFile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "tokens")
		write := func(text string) {
			t.Helper()
			if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Rename(path+".new", path); err != nil {
				t.Fatal(err)
			}
			clock.Sleep(follow.LookEvery)
		}
		// printf hashed-token-of-bob | sha256sum
		const hashed = "sha256:4bcdd4ed7ee8414dc9c6165458c8a45987ecaccb8f4d45cf236a577d112e0477"
		write("# who may\n\nalice 0123456789abcdef\nbob " + hashed + "\n")
		var log bytes.Buffer
		tokens, err := OpenTokens(path, slog.New(slog.NewTextHandler(&log, nil)))
		if err != nil {
			t.Fatal(err)
		}
		a := New(Config{Tokens: tokens})
		wantIdentity := func(token, want string) {
			t.Helper()
			ids, ok := a.Token(token)
			if ok != (want != "") || ok && ids[0] != (znode.ID{Scheme: "token", ID: want}) {
				t.Errorf("token %q: identities %v, known: %t; want %q", token, ids, ok, want)
			}
		}
		wantIdentity("0123456789abcdef", "alice")
		wantIdentity("0123456789abcdeF", "")
		wantIdentity(hashed, "")
		wantIdentity("hashed-token-of-bob", "bob")
		wantIdentity("", "")
		write("carol fedcba9876543210\n")
		wantIdentity("0123456789abcdef", "")
		wantIdentity("fedcba9876543210", "carol")
		for bad, line := range map[string]string{
			"carol\n": "want NAME TOKEN", "carol short\n": "shorter than 16", "a sha256:12\n": "64 hexadecimal digits",
			"a 0123456789abcdef\nb 0123456789abcdef\n": "twice", strings.Repeat("#\n", follow.MaxBytes): "larger than",
		} {
			log.Reset()
			write(bad)
			wantIdentity("fedcba9876543210", "carol")
			wantIdentity("fedcba9876543210", "carol")
			if strings.Count(log.String(), "\n") != 1 || !strings.Contains(log.String(), line) ||
				strings.Contains(log.String(), "0123456789abcdef") {
				t.Errorf("%.20q: want one line, with %q and without a token, got %s", bad, line, log.String())
			}
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		clock.Sleep(follow.LookEvery)
		wantIdentity("fedcba9876543210", "carol")
		if _, err := OpenTokens(path, slog.Default()); err == nil {
			t.Error("a file that is not there was read")
		}
	})
}

func TestLocal(t *testing.T) {
	dir := t.TempDir()
	l, err := NewLocal(dir, 8080)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(l.Path())
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(l.Path())
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if string(text) != l.token+"\n8080\n" || !l.Is(l.token) || l.Is("") || l.Is(l.token[1:]) || (*Local)(nil).Is("") {
		t.Error("it is taken for another")
	}
	again, err := NewLocal(dir, 8080)
	if err != nil || again.Is(l.token) {
		t.Errorf("the token of the last start is good: %v", err)
	}
	if files, err := os.ReadDir(dir); len(files) != 1 {
		t.Errorf("%v, %v", files, err)
	}
	if _, err := NewLocal(dir+"/gone", 1); err == nil {
		t.Error("there is no such directory")
	}
}

// With a relative data directory, only clients in the server's working directory found the token.
func TestRegression_Local_PathIsGoodFromEverywhere(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	l, err := NewLocal(".", 1)
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir("/")
	if _, err := os.Stat(l.Path()); err != nil || !filepath.IsAbs(l.Path()) {
		t.Errorf("%s: %v", l.Path(), err)
	}
}

func TestSASL_Identities(t *testing.T) {
	sasl := func(name string) []znode.ID { return []znode.ID{{Scheme: "sasl", ID: name}} }
	boss := append(sasl("boss"), znode.SuperIDs)
	for _, x := range []struct {
		user        string
		host, realm bool // are removed
		want        []znode.ID
	}{
		{"bob", false, false, sasl("bob")}, {"bob", true, true, sasl("bob")}, {"a/b/c", true, true, sasl("a/b/c")},
		{"hbase/h1@HERE", false, false, sasl("hbase/h1@HERE")}, {"hbase/h1@HERE", true, false, sasl("hbase@HERE")},
		{"hbase/h1@HERE", false, true, sasl("hbase/h1")}, {"hbase/h1@HERE", true, true, sasl("hbase")},
		{"boss@HERE", false, false, sasl("boss@HERE")}, {"boss@HERE", false, true, boss}, {"boss", false, false, boss},
		{"boss@THERE", true, true, sasl("boss@THERE")}, // another user
		{"boss/h@THERE", true, true, sasl("boss/h@THERE")},
		{"", true, true, nil}, {"a@b@c", true, true, nil}, {"a/b/c@HERE", true, true, nil}, {"@HERE", true, true, nil},
		{"/h@HERE", true, true, nil}, {"boss@", true, true, sasl("boss@")},
	} {
		s := &SASL{Realm: func() string { return "HERE" }, RemoveHost: x.host, RemoveRealm: x.realm, Supers: []string{"boss"}}
		if ids, err := s.Identities(x.user); !slices.Equal(ids, x.want) || (err == nil) != (x.want != nil) {
			t.Errorf("%+v: identities %v, error %v; want %v", x, ids, err, x.want)
		}
	}
	if !New(Config{SASL: &SASL{Supers: []string{"boss"}}}).Configured() || New(Config{SASL: &SASL{}}).Configured() {
		t.Error("who has named super users is not known")
	}
}
