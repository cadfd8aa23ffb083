package api_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/znode"
)

// A backup that is taken while clients write is the state at one moment.
func TestSnapshot_IsConsistent(t *testing.T) {
	e := shared()
	c := newClient(t, e.urls[0])
	r := root(t, c)
	path := strings.TrimPrefix(r, "/v1/znodes")
	// Each transaction changes both, so they are equal at any moment.
	ops := func(op string, n int) string {
		return fmt.Sprintf(`{"ops": [{"op": %q, "path": "%s/a", "data": "%d"}, {"op": %q, "path": "%s/b", "data": "%d"}]}`,
			op, path, n, op, path, n)
	}
	c.post("/v1/multi", ops("create", 0)).want(200)
	var all sync.WaitGroup
	stop := make(chan struct{})
	written := make(chan struct{}, 1)
	all.Go(func() {
		for n := 1; ; n++ {
			select {
			case <-stop:
				return
			default:
			}
			if a := c.post("/v1/multi", ops("set", n)); a.status != 200 {
				t.Errorf("a write during a backup: %d %s, want 200", a.status, a.body)
				return
			}
			select {
			case written <- struct{}{}:
			default:
			}
		}
	})
	for range 10 {
		<-written
		a := operator(t, e.urls[0]).get("/v1/snapshot").want(200)
		m, err := state.ReadSnapshot(bytes.NewReader(a.body))
		if err != nil {
			t.Fatal(err)
		}
		if got := a.header.Get("Zk-Zxid"); got != m.Zxid().String() ||
			!strings.Contains(a.header.Get("Content-Disposition"), got) {
			t.Errorf("the state is of %v, the headers say %v", m.Zxid(), a.header)
		}
		x, _, code := m.Tree().Get(path+"/a", nil)
		y, _, _ := m.Tree().Get(path+"/b", nil)
		if code != znode.OK || !bytes.Equal(x, y) {
			t.Errorf("the backup has %q and %q (%v), want the same of one transaction", x, y, code)
		}
	}
	close(stop)
	all.Wait()
	operator(t, e.urls[0]).do("HEAD", "/v1/snapshot").want(200)
	c.get("/v1/snapshot").problem(401, "NOAUTH")
}

// A client that asks for a second one at the same time has to wait.
func TestSnapshot_OneAtATime(t *testing.T) {
	e := fresh(t, 1)
	c := operator(t, e.urls[0])
	for i := range 12 { // more than the sockets' buffers take; it does not compress
		c.post(fmt.Sprintf("/v1/znodes/%d", i), noise(i, 1<<20-1)).want(201)
	}
	resp, err := http.DefaultClient.Do(c.request("GET", "/v1/snapshot", ""))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	a := c.get("/v1/snapshot").problem(429, "THROTTLEDOP")
	if a.header.Get("Retry-After") == "" {
		t.Errorf("headers %v, want Retry-After", a.header)
	}
	if n, err := io.Copy(io.Discard, resp.Body); err != nil || n < 12<<20 {
		t.Errorf("%d bytes, %v", n, err)
	}
	eventually(t, "there can be another", func() bool { return c.get("/v1/snapshot").status == 200 })
}

// noise is data that cannot be compressed: xorshift from a seed.
func noise(seed, n int) string {
	b := make([]byte, n)
	x := uint64(88172645463325252 + seed)
	for i := range b {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		b[i] = byte(x)
	}
	return string(b)
}
