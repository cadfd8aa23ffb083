package app

import (
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zk-lite/zk-lite/app/config"
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
			t.Errorf("%s: %q, %v", user, p, ok)
		}
	}
	o.Settings.SASL.FIPS = true
	if err := read(string(text)); err == nil || !strings.Contains(err.Error(), "fips-mode") {
		t.Errorf("fips-mode: %v", err)
	}
}
