package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/zklitetest"
)

// A client's session, address and path are found by requests, by bytes and by watches; and the session and address by
// how long they are held back, for asking for more in a second than they may.
func TestTop_Client_IsFound(t *testing.T) {
	e := zklitetest.Start(t, zklitetest.WithSetting("limits.clientRequests", "80"))
	c, err := client.Connect(t.Context(), e.ConnectString())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, _, err := c.Create(t.Context(), "/busy", bytes.Repeat([]byte("x"), 1000), client.Persistent); err != nil {
		t.Fatal(err)
	}
	for range 100 {
		if _, _, err := c.Get(t.Context(), "/busy"); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, _, err := c.GetW(t.Context(), "/busy"); err != nil {
		t.Fatal(err)
	}
	for _, by := range []string{"requests", "bytes", "held", "watches"} {
		root := rootCommand()
		var out bytes.Buffer
		root.SetOut(&out)
		root.SetArgs([]string{"top", "--by", by, "-o", "json", "--http", "http://" + e.HTTPAddrs()[0]})
		if err := root.ExecuteContext(t.Context()); err != nil {
			t.Fatal(err)
		}
		found := map[string]bool{}
		for line := range strings.Lines(out.String()) {
			var x struct {
				Kind, Name string
				Share      float64
			}
			if err := json.Unmarshal([]byte(line), &x); err != nil {
				t.Fatal(err)
			}
			found[x.Kind+" "+x.Name] = x.Share > 0.5
		}
		for _, want := range []string{"session " + c.SessionID().String(), "address 127.0.0.1", "path /busy"} {
			if !found[want] && (by != "held" || want != "path /busy") {
				t.Errorf("by %s: %s is not most of\n%s", by, want, out.String())
			}
		}
	}
}

// The subtrees' sizes are printed with the watches of all servers, and what a client may do is explained.
func TestTop_Tree_AndExplain(t *testing.T) {
	e := zklitetest.Start(t, zklitetest.WithServers(3))
	c, err := client.Connect(t.Context(), e.ConnectString())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, path := range []string{"/app", "/app/a", "/app/a/b", "/app/c"} {
		if _, _, err := c.Create(t.Context(), path, []byte("12345"), client.Persistent); err != nil {
			t.Fatal(err)
		}
	}
	for addr := range strings.SplitSeq(e.ConnectString(), ",") {
		one, err := client.Connect(t.Context(), addr)
		if err != nil {
			t.Fatal(err)
		}
		defer one.Close()
		if err := one.Sync(t.Context(), "/"); err != nil {
			t.Fatal(err)
		}
		if _, _, _, err := one.GetW(t.Context(), "/app/a/b"); err != nil {
			t.Fatal(err)
		}
	}
	var urls []string
	for _, addr := range e.HTTPAddrs() {
		urls = append(urls, "http://"+addr)
	}
	run := func(args ...string) string {
		t.Helper()
		root := rootCommand()
		var out bytes.Buffer
		root.SetOut(&out)
		root.SetErr(&out)
		root.SetArgs(append(args, "--http", strings.Join(urls, ",")))
		if err := root.ExecuteContext(t.Context()); err != nil {
			t.Fatalf("zk-lite %s failed: %v", strings.Join(args, " "), err)
		}
		return strings.Join(strings.Fields(out.String()), " ")
	}
	for _, x := range []struct{ args, want string }{
		{"top --tree /app", "ZNODES BYTES WATCHES SHARE PATH 4 20 3 100 % /app 2 10 3 50 % /app/a 1 5 3 25 % /app/a/b 1 5 0 25 % /app/c"},
		{"top --tree /app --by watches -n 3", "ZNODES BYTES WATCHES SHARE PATH " +
			"4 20 3 100 % /app 2 10 3 100 % /app/a 1 5 3 100 % /app/a/b"},
		{"acl explain /app ip:10.0.0.1", "OPERATION MAY NEEDS ACL OF ENTRY WHY read yes r /app world:anyone:cdrwa by this entry"},
	} {
		if got := run(strings.Fields(x.args)...); !strings.HasPrefix(got, x.want) {
			t.Errorf("%s:\n got %s\nwant %s", x.args, got, x.want)
		}
	}
}
