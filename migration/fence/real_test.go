//go:build interop

package fence_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/internal/testkit/wait"
	"github.com/zk-lite/zk-lite/internal/testkit/zookeeper"
	"github.com/zk-lite/zk-lite/migration/datadir"
	"github.com/zk-lite/zk-lite/migration/fence"
)

// TestFence_RealServers: a real server of each line, of an ensemble and alone, is not fenced while it runs; fenced, it
// does not start, not even when its container writes myid again; unfenced it starts with its data.
func TestFence_RealServers(t *testing.T) {
	for _, version := range []string{zookeeper.V34, "", zookeeper.V39} {
		for _, servers := range []int{3, 1} {
			t.Run(fmt.Sprintf("%s of %d", cmp.Or(version, "Debian's"), servers), func(t *testing.T) {
				t.Parallel()
				realServer(t, version, servers)
			})
		}
	}
}

func realServer(t *testing.T, version string, servers int) {
	e := zookeeper.Run(t, zookeeper.Options{Version: version, Servers: servers})
	c, err := client.Connect(t.Context(), e.ConnectString())
	must(t, err)
	_, err = c.Set(t.Context(), "/", []byte("x"), -1) // 3.4 does not know create2
	must(t, err)
	must(t, c.Sync(t.Context(), "/"))
	must(t, c.Close())
	s := e.Servers[0]
	h := fence.Host{DataDir: s.DataDir()}
	before := listing(t, h.DataDir)
	if _, err := h.Fence(fence.Point{}); !errors.Is(err, fence.ErrRunning) {
		t.Fatalf("while it runs: %v, want ErrRunning", err)
	}
	if after := listing(t, h.DataDir); len(after) != len(before) {
		t.Errorf("refused, there is %v, want %v", after, before)
	}
	for _, one := range e.Servers {
		one.Kill()
	}
	p, err := datadir.Since(h.DataDir, "", 1<<50, 0, 0)
	must(t, err)
	at := fence.Point{After: fence.Zxid(p.Zxid), Digest: fence.Digest(p.Digest)}
	r, err := h.Fence(at)
	must(t, err)
	if r.Server != 1 || r.Zxid != at.After {
		t.Errorf("%+v, want server 1's receipt", r)
	}
	fenced := listing(t, h.DataDir)
	for _, one := range e.Servers[1:] {
		one.Start()
	}
	ends(t, s, "without myid")
	must(t, os.WriteFile(filepath.Join(h.DataDir, "myid"), []byte("1"), 0o600))
	ends(t, s, "with a new myid")
	must(t, os.Remove(filepath.Join(h.DataDir, "myid")))
	if after := listing(t, h.DataDir); len(after) != len(fenced) {
		t.Errorf("after the attempts to start it there is %v, want %v", after, fenced)
	}
	must(t, h.Unfence())
	s.Start()
	s.WaitServing()
	c, err = client.Connect(t.Context(), s.Address)
	must(t, err)
	if data, _, err := c.Get(t.Context(), "/"); err != nil || string(data) != "x" {
		t.Errorf("unfenced: %q, %v; want x", data, err)
	}
	must(t, c.Close())
}

// ends starts a server, which ends by itself or at least never serves.
func ends(t *testing.T, s *zookeeper.Server, how string) {
	t.Helper()
	s.Start()
	served := false
	begun := time.Now()
	wait.Until(t, "the fenced server has ended, or answers, or has tried long enough", func() bool {
		served = served || s.Mode() != ""
		return served || s.EndedEarly() != nil || time.Since(begun) > 20*time.Second
	})
	if served { // as a standalone 3.4 does, which cannot write its log, and ends when a client wants it to
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		if c, err := client.Connect(ctx, s.Address); err == nil {
			_ = c.Close()
			t.Errorf("%s the fenced server opens a session", how)
		}
	}
	t.Logf("%s: ended %v", how, s.EndedEarly())
	s.Kill()
}
