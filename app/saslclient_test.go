package app_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/zk-lite/zk-lite/app/config"
	"github.com/zk-lite/zk-lite/client"
)

// The Go client proves a user by DIGEST-MD5, again on each new connection; a wrong password, and a server without
// users, are errors that say so.
func TestSASL_GoClient(t *testing.T) {
	o := options(t, t.TempDir())
	jaas := filepath.Join(t.TempDir(), "jaas.conf")
	if err := os.WriteFile(jaas, []byte("Server { org.apache.zookeeper.server.auth.DigestLoginModule required "+
		`user_bob="se:cret"; };`), 0o600); err != nil {
		t.Fatal(err)
	}
	o.Settings.SASL = config.SASL{File: jaas, Section: "Server"}
	n := open(t, o)
	defer n.Close()
	at := n.ClientAddr().String()
	c, err := client.Connect(t.Context(), at, client.WithAuth("sasl", []byte("bob:se:cret")))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	bob := client.ID{Scheme: "sasl", ID: "bob"}
	if ids, err := c.WhoAmI(t.Context()); err != nil || !slices.Contains(ids, bob) {
		t.Errorf("the server knows %v, %v; want %v", ids, err, bob)
	}
	for _, wrong := range []string{"bob:secret", "eve:se:cret", "bob"} {
		if c, err := client.Connect(t.Context(), at, client.WithAuth("sasl", []byte(wrong))); !errors.Is(err, client.ErrAuthFailed) {
			t.Errorf("%q: %v, %v; want %v", wrong, c, err, client.ErrAuthFailed)
		}
	}
	without := open(t, options(t, t.TempDir()))
	defer without.Close()
	_, err = client.Connect(t.Context(), without.ClientAddr().String(), client.WithAuth("sasl", []byte("bob:se:cret")))
	if !errors.Is(err, client.ErrAuthFailed) || !strings.Contains(err.Error(), "the server has no SASL") {
		t.Errorf("without SASL: %v", err)
	}
}
