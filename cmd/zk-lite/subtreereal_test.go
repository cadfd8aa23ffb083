//go:build interop

package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/zk-lite/zk-lite/internal/testkit/zookeeper"
)

// With ZooKeeper, which has no subtrees of one state, export, cp -R and diff read znode by znode; watch --list says
// that it needs zk-lite.
func TestSubtrees_ZooKeeper(t *testing.T) {
	servers := zookeeper.Run(t, zookeeper.Options{Version: zookeeper.V39, Servers: 1}).ConnectString()
	run := func(args ...string) (string, string, error) {
		root := rootCommand()
		var out, errors bytes.Buffer
		root.SetOut(&out)
		root.SetErr(&errors)
		root.SetArgs(append(args, "--server", servers))
		err := root.ExecuteContext(t.Context())
		return out.String(), errors.String(), err
	}
	for _, args := range [][]string{
		{"create", "--parents", "/app/a/x", "data"}, {"create", "/app/a-b"}, {"cp", "-R", "/app", "/copy"},
		{"diff", "/app", "/copy"},
	} {
		if out, errors, err := run(args...); err != nil || strings.Contains(errors, "as of") {
			t.Fatalf("%q prints %q and %q, error %v, want none", args, out, errors, err)
		}
	}
	out, _, err := run("export", "/copy")
	want := `{"format":"zk-lite-export-1","root":"/copy"}
{"path":"","data":null,"acl":["world:anyone:cdrwa"]}
{"path":"a","data":null,"acl":["world:anyone:cdrwa"]}
{"path":"a/x","data":"data","encoding":"utf-8","acl":["world:anyone:cdrwa"]}
{"path":"a-b","data":null,"acl":["world:anyone:cdrwa"]}
{"end":4}
`
	if err != nil || out != want {
		t.Errorf("export prints %s, error %v; want %s", out, err, want)
	}
	if _, errors, err := run("watch", "--values", "--list", "/app"); err == nil {
		t.Errorf("watch --list prints %q, error nil, want one", errors)
	}
}
