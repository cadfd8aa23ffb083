//go:build interop

package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/internal/testkit/zookeeper"
	"github.com/zk-lite/zk-lite/zklitetest"
	"github.com/zk-lite/zk-lite/znode"
)

// seen is a znode as a client of administrators sees it.
type seen struct {
	path string
	data []byte
	stat client.Stat
	acl  []client.ACL
}

// look reads all znodes of a server that its clients may have.
func look(t *testing.T, servers, superuser string) (all []seen) {
	t.Helper()
	ctx := t.Context()
	c, err := client.Connect(ctx, servers, client.WithAuth("digest", []byte(superuser)))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	pending := []string{"/"}
	for len(pending) > 0 {
		path := pending[0]
		pending = pending[1:]
		data, stat, err := c.Get(ctx, path)
		if err != nil {
			t.Fatalf("get %s: %v", path, err)
		}
		acl, _, err := c.GetACL(ctx, path)
		if err != nil {
			t.Fatalf("getacl %s: %v", path, err)
		}
		names, _, err := c.Children(ctx, path)
		if err != nil {
			t.Fatalf("children of %s: %v", path, err)
		}
		for _, name := range names {
			if child := znode.Join(path, name); child != znode.ConfigPath { // each server's own
				pending = append(pending, child)
			}
		}
		all = append(all, seen{path, data, stat, acl})
	}
	slices.SortFunc(all, func(a, b seen) int { return cmp.Compare(a.path, b.path) })
	return all
}

// A real ZooKeeper starts from an export, shows every client the same, and resumes the sessions that are not listed.
func TestExportZooKeeper_RealServersStart(t *testing.T) {
	for _, x := range []struct {
		version    string
		servers    int
		compatible bool // session.compatiblePasswords
	}{
		{"", 1, false}, {"", 3, true}, {zookeeper.V35, 1, true}, {zookeeper.V36, 1, true}, {zookeeper.V37, 1, true},
		{zookeeper.V39, 3, true},
	} {
		t.Run(fmt.Sprintf("%s/%d", cmp.Or(x.version, "Debian"), x.servers), func(t *testing.T) {
			e := zklitetest.Start(t, zklitetest.WithSetting("extendedTypesEnabled", "true"),
				zklitetest.WithSetting("session.compatiblePasswords", strconv.FormatBool(x.compatible)),
				zklitetest.WithSetting("DigestAuthenticationProvider.superDigest", superDigest))
			clients := everything(t, e.ConnectString())
			want := look(t, e.ConnectString(), "super:secret")
			dir := filepath.Join(t.TempDir(), "data")
			got, err := runExport(t, "--out", dir, "--http", "http://"+e.HTTPAddrs()[0], "--auth", "digest:super:secret")
			if err != nil {
				t.Fatal(err)
			}
			held := map[client.SessionID]client.Credentials{}
			for _, c := range clients {
				held[c.SessionID()] = c.Credentials()
			}
			if random := len(got.Lost) == len(held); random == x.compatible {
				t.Errorf("%d of %d sessions are lost; compatible passwords: %v", len(got.Lost), len(held), x.compatible)
			}
			e.Stop(0)
			zk := zookeeper.Run(t, zookeeper.Options{Version: x.version, Servers: x.servers, Data: dir})
			have := look(t, zk.ConnectString(), zookeeper.Superuser)
			if len(have) != len(want) {
				t.Errorf("ZooKeeper shows %d znodes, want %d", len(have), len(want))
			}
			for i := range min(len(have), len(want)) {
				h, w := have[i], want[i]
				if h.path != w.path || !bytes.Equal(h.data, w.data) || (h.data == nil) != (w.data == nil) || h.stat != w.stat || !slices.Equal(h.acl, w.acl) {
					t.Errorf("ZooKeeper shows %+v, want %+v", h, w)
				}
			}
			resume(t, zk.ConnectString(), held, got.Lost)
		})
	}
}

// resume connects with the credentials of each session: those that are listed as lost must be refused.
func resume(t *testing.T, servers string, held map[client.SessionID]client.Credentials, lost []lostSession) {
	t.Helper()
	for id, credentials := range held {
		c, err := client.Connect(t.Context(), servers, client.WithSession(credentials), client.WithFinalExpiry(),
			client.WithSessionTimeout(30*time.Second))
		resumed := err == nil && c.SessionID() == id
		if err == nil {
			_ = c.Close() // which ends the session
		} else if !errors.Is(err, client.ErrSessionExpired) {
			t.Errorf("session %v: %v, want it to resume or ErrSessionExpired", znode.SessionID(id), err)
		}
		text := znode.SessionID(id).String()
		listed := slices.ContainsFunc(lost, func(l lostSession) bool { return l.Session == text })
		if resumed == listed {
			t.Errorf("session %s: resumes: %v, is listed as lost: %v", text, resumed, listed)
		}
	}
}
