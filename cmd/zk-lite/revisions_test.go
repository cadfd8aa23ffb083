package main

import (
	"bytes"
	"context"
	"regexp"
	"strings"
	"testing"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/cmd/zk-lite/cli"
	"github.com/zk-lite/zk-lite/zklitetest"
)

// A person looks what a znode was, goes back, and has a secret forgotten.
func TestRevisions(t *testing.T) {
	e := zklitetest.Start(t)
	c, err := client.Connect(t.Context(), e.ConnectString(), client.WithAuth("digest", []byte("ann:secret")))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_, first, err := c.Create(t.Context(), "/app", []byte("one"), client.Persistent)
	if err != nil {
		t.Fatal(err)
	}
	var seen string
	for _, x := range []struct{ path, data string }{{"/app", "two"}, {"/app/limit", "\xff"}, {"/app", "three"}} {
		set := func() (client.Stat, error) { return c.Set(t.Context(), x.path, []byte(x.data), client.AnyVersion) }
		if x.path != "/app" {
			set = func() (client.Stat, error) {
				_, st, err := c.Create(t.Context(), x.path, []byte(x.data), client.Persistent)
				return st, err
			}
		}
		st, err := set()
		if err != nil {
			t.Fatal(err)
		}
		seen = st.Mzxid.String()
	}
	for _, x := range []struct {
		args string
		code int
		want string // of the output or, of a failure, its message
	}{
		{"revisions /app", 0, `^0x\w+ \S+ changed version 2 by digest:ann:x "three"\n.* "two"\n.*created version 0 .* "one"\nthere is nothing else since 0x\w+\n$`},
		{"revisions -n 1 /app", 0, `^[^\n]* "three"\nthere are more; -n shows them\n$`},
		{"revisions /app/limit", 0, ` "\\xff"\n`},
		{"revisions -o json /app", 0, `"revisions":\[{"zxid":"0x`},
		{"revisions --at " + first.Mzxid.String() + " /app", 0, `^one\n$`},
		{"revisions --at " + seen + " -o json /app/limit", 0, `"data":"/w==","encoding":"base64"`},
		{"revisions --at now /app", 2, `--at "now": want a zxid`},
		{"revisions --recursive /app", 2, `--recursive`},
		{"revisions --purge --at 0x1 /app", 2, `--at, --purge`},
		{"revisions /none", 3, `/none`},
		{"revert /app", 2, `--to: missing; .zk-lite revisions /app. shows zxids`},
		{"revert -R --dry-run /app --to FIRST", 0, `^set /app\ndelete /app/limit\nnothing was done; there would be 2 changes \(zxid ` + seen + `\)\n$`},
		{"revert --seen " + first.Mzxid.String() + " /app --to FIRST", 4, `^/app: changed meanwhile; nothing was reverted`},
		{"revert --seen " + seen + " -R /app --to FIRST", 0, `^set /app\ndelete /app/limit\n2 changes \(zxid 0x\w+\)\n$`},
		{"revert -R /app --to FIRST", 0, `^nothing to do \(`},
		{"revert /app/limit --to " + seen + " -o json", 0, `"changes":\[{"action":"create","path":"/app/limit"}\],"left":\[\]`},
		{"revisions --purge -R /app", 0, `^$`},
		{"revisions /app", 0, `changed version 3 [^\n]* "one"\n[^\n]*\(purged\)\n[^\n]*\(purged\)\n[^\n]*\(purged\)\n`},
		{"revisions --at " + first.Mzxid.String() + " /app", 1, `was purged`},
	} {
		root := rootCommand()
		var out bytes.Buffer
		root.SetOut(&out)
		args := strings.Fields(strings.ReplaceAll(x.args, "FIRST", first.Mzxid.String()))
		root.SetArgs(append(args, "--http", "http://"+e.HTTPAddrs()[0], "--auth", "digest:ann:secret"))
		err := root.ExecuteContext(context.WithoutCancel(t.Context()))
		text := out.String()
		if err != nil {
			text = cli.Message(err)
		}
		if code := cli.ExitCode(err); code != x.code || !regexp.MustCompile(`(?s)`+x.want).MatchString(text) {
			t.Errorf("zk-lite %s: code %d, %q, want %d, %q", x.args, code, text, x.code, x.want)
		}
	}
}
