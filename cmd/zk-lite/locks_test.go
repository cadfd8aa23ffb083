package main

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/zklitetest"
)

// Two clients at two servers wait for each other: the commands say who they are, at every server.
func TestLocks_WhoWaitsForWhom(t *testing.T) {
	e := zklitetest.Start(t, zklitetest.WithServers(3))
	names := map[string]string{} // of what differs from run to run
	var clients []*client.Client
	for i, addr := range e.Addrs()[:2] {
		c, err := client.Connect(t.Context(), addr)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if err := c.AddAuth(t.Context(), "digest", fmt.Appendf(nil, "user%d:secret", i+1)); err != nil {
			t.Fatal(err)
		}
		clients = append(clients, c)
		names[c.SessionID().String()] = fmt.Sprintf("S%d", i+1)
	}
	a, b := clients[0], clients[1]
	for _, path := range []string{"/locks", "/locks/a", "/locks/b"} {
		if _, _, err := a.Create(t.Context(), path, nil, client.Persistent); err != nil {
			t.Fatal(err)
		}
	}
	for _, x := range []struct {
		by   *client.Client
		path string
	}{{a, "/locks/a"}, {b, "/locks/b"}, {b, "/locks/a"}, {a, "/locks/b"}} {
		who := "worker " + names[x.by.SessionID().String()]
		if _, _, err := x.by.Create(t.Context(), x.path+"/_c_g-lock-", []byte(who), client.EphemeralSequential); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, _, err := b.GetW(t.Context(), "/locks/a"); err != nil {
		t.Fatal(err)
	}
	for _, addr := range e.Addrs() { // all servers know of it
		c, err := client.Connect(t.Context(), addr)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if err := c.Sync(t.Context(), "/"); err != nil {
			t.Fatal(err)
		}
	}
	passing := regexp.MustCompile(`127\.0\.0\.1:\d+|\d{4}-\d\d-\d\dT[0-9:.]+Z|\b(\d+m)?\d+s\b`)
	run := func(args ...string) string {
		t.Helper()
		root := rootCommand()
		var out bytes.Buffer
		root.SetOut(&out)
		root.SetErr(&out)
		root.SetArgs(append(args, "--http", strings.Join(e.HTTPAddrs(), ",")))
		if err := root.ExecuteContext(t.Context()); err != nil {
			t.Fatalf("zk-lite %s failed: %v", strings.Join(args, " "), err)
		}
		text := passing.ReplaceAllString(out.String(), "~")
		for id, name := range names {
			text = strings.ReplaceAll(text, id, name)
		}
		t.Logf("zk-lite %s\n%s", strings.Join(args, " "), text)
		return strings.Join(strings.Fields(text), " ")
	}
	for _, x := range []struct{ args, want string }{
		{"locks", "deadlock: S1 (~ digest:user1:x) waits for S2 (~ digest:user2:x) waits for S1 " +
			"PATH KIND WAITING STATE FOR DATA SESSION ADDRESS IDENTITY WAITS FOR " +
			`/locks/a lock 1 holds ~ "worker S1" S1 ~ digest:user1:x - /locks/a lock 1 waits ~ "worker S2" S2 ~ digest:user2:x S1 ` +
			`/locks/b lock 1 holds ~ "worker S2" S2 ~ digest:user2:x - /locks/b lock 1 waits ~ "worker S1" S1 ~ digest:user1:x S2`},
		{"locks /locks/a -n 1", "PATH KIND WAITING STATE FOR DATA SESSION ADDRESS IDENTITY WAITS FOR " +
			`/locks/a lock 1 holds ~ "worker S1" S1 ~ digest:user1:x - /locks/a lock 1 waits`},
		{"locks --kind group", "deadlock: S1"},
		{"locks -o json", `{"deadlock":[{"session":"S1","server":1,"address":"~","identities":[{"scheme":"ip","id":"127.0.0.1"},` +
			`{"scheme":"digest","id":"user1:x"}]},{"session":"S2","server":2,`},
		{"watchers /locks/a", "SESSION SERVER ADDRESS IDENTITY KINDS S2 2 ~ digest:user2:x data"},
		{"sessions S1", "session S1 server 1 timeout ~ address ~ identity digest:user1:x connected for ~ heard ~ ago outstanding 0 " +
			"ephemeral /locks/a/_c_g-lock-0000000000 ephemeral /locks/b/_c_g-lock-0000000001"},
		{"sessions S2", "session S2 server 2 timeout ~ address ~ identity digest:user2:x connected for ~ heard ~ ago outstanding 0 watches /locks/a data"},
	} {
		args := strings.Fields(x.args)
		for i, arg := range args {
			for id, name := range names {
				if arg == name {
					args[i] = id
				}
			}
		}
		if got := run(args...); !strings.HasPrefix(got, x.want) {
			t.Errorf("%s:\n got %s\nwant %s", x.args, got, x.want)
		}
	}
	all := run("sessions")
	for _, row := range []string{"SESSION SERVER ADDRESS IDENTITY TIMEOUT EPHEMERALS HEARD", "S1 1 ~ digest:user1:x ~ 2 ~", "S2 2 ~ digest:user2:x ~ 2 ~", "5 sessions"} {
		if !strings.Contains(all, row) {
			t.Errorf("sessions: got %s, want it with %s", all, row)
		}
	}
	if some := run("sessions", "-n", "2"); !strings.HasSuffix(some, "the first 2 of 5 sessions; -n shows more") {
		t.Errorf("sessions -n 2: got %s", some)
	}
}
