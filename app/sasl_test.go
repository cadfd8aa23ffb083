package app

import (
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/zk-lite/zk-lite/app/config"
	"github.com/zk-lite/zk-lite/internal/follow"
	"github.com/zk-lite/zk-lite/internal/testkit/clock"
)

func TestSASL_Users(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jaas.conf")
	o := &Options{Logger: slog.New(slog.NewTextHandler(io.Discard, nil))}
	o.Settings.SASL = config.SASL{File: path, Section: "Server", SuperPassword: "better"}
	read := func(text string) error {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := sasl(o)
		return err
	}
	const digest = "Server { org.apache.zookeeper.server.auth.DigestLoginModule required "
	for text, want := range map[string]string{
		"":                          `0 modules in the section "Server"`,
		digest + ";":                "line 1",
		digest + "x=1; };":          "no users",
		"Server { a.B required; };": "the module a.B is not known",
		"Server { " + kerberosModule + " required; };":                                                      "needs useKeyTab=true",
		"Server { " + kerberosModule + ` required useKeyTab=true keyTab="/nonexistent" principal="a/b"; };`: "/nonexistent",
		digest + `user_a="secret;; };`:                                                                      "line 1: a quotation has no end",
	} {
		if err := read(text); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
	if err := read(digest + `user_super="bad" user_bob="secret"; };`); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	l, err := (&loginReader{SASL: &o.Settings.SASL}).read(text)
	if err != nil {
		t.Fatal(err)
	}
	for user, want := range map[string]string{"super": "better", "bob": "secret", "eve": ""} {
		if p, ok := l.digest.Password(user); p != want || ok != (want != "") {
			t.Errorf("password of %s: got %q, %v, want %q", user, p, ok, want)
		}
	}
	o.Settings.SASL.FIPS = true
	if err := read(string(text)); err == nil || !strings.Contains(err.Error(), "fips-mode") {
		t.Errorf("fips-mode: %v", err)
	}
}

// Users, mechanism and keytab change without a restart; what cannot be used leaves what was in use.
func TestSASL_FilesAreFollowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		write := func(name string, text []byte) {
			t.Helper()
			if err := os.WriteFile(dir+"/new", text, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Rename(dir+"/new", dir+"/"+name); err != nil {
				t.Fatal(err)
			}
		}
		keys := func(version byte) string { // a keytab as MIT Kerberos describes it, with an AES-256 key
			entry := "\x00\x02\x00\x01R\x00\x09zookeeper\x00\x01h\x00\x00\x00\x01\x00\x00\x00\x01" + string(rune(version)) +
				"\x00\x12\x00\x20" + strings.Repeat("k", 32)
			return "\x05\x02\x00\x00\x00" + string(rune(len(entry))) + entry
		}
		var log strings.Builder
		o := &Options{Logger: slog.New(slog.NewTextHandler(&log, nil))}
		o.Settings.SASL = config.SASL{File: dir + "/jaas.conf", Section: "Server"}
		write("jaas.conf", []byte("Server { "+digestModule+` required user_bob="secret"; };`))
		s, err := sasl(o)
		if err != nil {
			t.Fatal(err)
		}
		write("keytab", []byte(keys(1)))
		for _, x := range []struct{ name, file, text, mechanism, realm, logged string }{
			{"the first", "", "", digestMD5, "", ""},
			{"no JAAS", "jaas.conf", "Server", digestMD5, "", "the new JAAS file cannot be used"},
			{"Kerberos", "jaas.conf", "Server { " + kerberosModule + ` required useKeyTab=true keyTab="` + dir +
				`/keytab" principal="zookeeper/h@R"; };`, "GSSAPI", "R", "the JAAS file has changed and is in use"},
			{"no keytab", "keytab", "x", "GSSAPI", "R", "the new keytab cannot be used"},
			{"a new keytab", "keytab", keys(2), "GSSAPI", "R", "the keytab has changed and is in use"},
		} {
			log.Reset()
			if x.file != "" {
				write(x.file, []byte(x.text))
			}
			clock.Sleep(follow.LookEvery)
			if m, r := s.Mechanism(), s.Realm(); m != x.mechanism || r != x.realm || !strings.Contains(log.String(), x.logged) {
				t.Errorf("%s: %s of %q; logged: %s", x.name, m, r, log.String())
			}
		}
	})
}
