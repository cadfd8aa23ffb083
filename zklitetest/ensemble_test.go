package zklitetest_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/internal/testkit/tier"
	"github.com/zk-lite/zk-lite/zklitetest"
)

func connect(t *testing.T, servers string) *client.Client {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c, err := client.Connect(ctx, servers, client.WithBackoff(time.Millisecond, 20*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func TestStart_ThreeServers_LeaderStops(t *testing.T) {
	tier.Seconds(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	e := zklitetest.Start(t, zklitetest.WithServers(3))
	c := connect(t, e.ConnectString())
	if _, _, err := c.Create(ctx, "/kept", []byte("x"), client.Persistent); err != nil {
		t.Fatal(err)
	}
	leader := e.Leader()
	if leader < 0 || len(e.Addrs()) != 3 {
		t.Fatalf("the leader is %d of %q, want one of three", leader, e.Addrs())
	}
	e.Stop(leader)
	e.Stop(leader) // the second has no effect
	if err := c.Sync(ctx, "/"); err != nil {
		t.Fatal(err)
	}
	e.Restart(leader)
	back := connect(t, e.Addrs()[leader])
	if data, _, err := back.Get(ctx, "/kept"); err != nil || string(data) != "x" {
		t.Errorf("after the restart: data %q (%v), want x", data, err)
	}
}

func TestStart_OneServer_HTTPAndSettings(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	e := zklitetest.Start(t, zklitetest.WithSetting("maxSessionTimeout", "2000"))
	resp, err := http.Get("http://" + e.HTTPAddrs()[0] + "/readyz")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Errorf("status %s, want 200", resp.Status)
	}
	c, err := client.Connect(ctx, e.ConnectString(), client.WithSessionTimeout(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if got := c.Session().Timeout; got != 2*time.Second {
		t.Errorf("the session timeout is %v, want 2s", got)
	}
	e.Stop(0)
	if e.Leader() != -1 {
		t.Errorf("server %d leads, want none: it is stopped", e.Leader())
	}
	e.Restart(0)
	if err := c.Sync(ctx, "/"); err != nil {
		t.Error(err)
	}
}

// TestStore is the example of the package comment: a test of a user's program.
func TestStore(t *testing.T) {
	e := zklitetest.Start(t, zklitetest.WithServers(3))
	c, err := client.Connect(t.Context(), e.ConnectString())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, _, err := c.Create(t.Context(), "/config", []byte("v1"), client.Persistent); err != nil {
		t.Fatal(err)
	}
	e.Stop(e.Leader()) // two servers are left, a majority
	data, _, err := c.Get(t.Context(), "/config")
	if err != nil || string(data) != "v1" {
		t.Errorf("without the leader: data %q (%v), want v1", data, err)
	}
}
