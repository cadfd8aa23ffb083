//go:build privileged

package failover_test

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"github.com/zk-lite/zk-lite/integration/cluster"
	"github.com/zk-lite/zk-lite/internal/wire"
	"github.com/zk-lite/zk-lite/znode"
)

const (
	smallMachine = 120 << 20
	largeData    = 100_000
	// fewest znodes have room in the tree of a small machine: 20 MB.
	fewest = 200
)

// hoarder is a client that creates large znodes.
type hoarder struct {
	t    *testing.T
	c    *cluster.Conn
	next int
	have []string
}

// create asks for n znodes at once, and returns how many of them there was room for.
func (h *hoarder) create(n int) (created int) {
	h.t.Helper()
	calls := make([]*cluster.Call, n)
	paths := make([]string, n)
	for i := range calls {
		paths[i] = fmt.Sprintf("/large-%05d", h.next)
		h.next++
		calls[i] = h.c.Send(wire.OpCreate, &wire.CreateRequest{
			Path: paths[i], Data: bytes.Repeat([]byte{byte(h.next)}, largeData), ACL: znode.OpenACL,
		})
	}
	for i, call := range calls {
		switch _, err := call.Wait(); {
		case err == nil:
			h.have = append(h.have, paths[i])
			created++
		case !errors.Is(err, znode.ErrSystem):
			h.t.Fatalf("create %s, with %d znodes: %v", paths[i], len(h.have), err)
		}
	}
	return created
}

// fill creates until the tree is full, and continues for a while. It returns the number created.
func (h *hoarder) fill(atOnce int) (created int) {
	h.t.Helper()
	for refused := 0; refused < 500; {
		n := h.create(atOnce)
		created += n
		if refused += atOnce - n; n > 0 && refused > 100 {
			refused = 100
		}
		if created > 10*smallMachine/largeData {
			h.t.Fatalf("%d znodes of %d bytes were created with a memory of %d", created, largeData, smallMachine)
		}
	}
	return created
}

func (h *hoarder) remove(n int) {
	h.t.Helper()
	for _, path := range h.have[:n] {
		if _, err := h.c.Do(wire.OpDelete, &wire.DeleteRequest{Path: path, Version: znode.AnyVersion}); err != nil {
			h.t.Fatalf("delete %s: %v", path, err)
		}
	}
	h.have = h.have[n:]
}

// check reads all znodes that were acknowledged.
func (h *hoarder) check() {
	h.t.Helper()
	for _, path := range h.have {
		r, err := h.c.Do(wire.OpGetData, &wire.GetDataRequest{Path: path})
		if err != nil {
			h.t.Fatalf("get %s: %v", path, err)
		}
		if got := r.(*wire.GetDataResponse); len(got.Data) != largeData {
			h.t.Fatalf("get %s: %d bytes", path, len(got.Data))
		}
	}
}

// TestMemory_TreeIsFull_NobodyDies: one client creates znodes of 100 kB until the servers refuse them, each in a
// control group of 120 MB. They were killed, one after 41 MB, with nothing in the log before. Now deletes and reads
// work, there is room again after deletes, and all servers start again in the same groups with a full tree.
func TestMemory_TreeIsFull_NobodyDies(t *testing.T) {
	if !cluster.Privileged() {
		t.Logf("%s is set: NOT RUN", cluster.UnprivilegedVariable)
		return
	}
	for _, test := range []struct{ servers, atOnce int }{{1, 1}, {1, 400}, {3, 50}} {
		t.Run(fmt.Sprintf("%d servers, %d at once", test.servers, test.atOnce), func(t *testing.T) {
			groups := make([]*cluster.MemoryGroup, test.servers)
			for i := range groups {
				groups[i] = cluster.NewMemoryGroup(t, smallMachine)
			}
			e := start(t, test.servers, cluster.Options{
				Config: map[string]string{"snapCount": "1000"}, // so that there are some
				Wrap:   func(id int) []string { return groups[id-1].Wrap() },
			})
			report := func(when string) {
				t.Helper()
				for i, s := range e.Servers() {
					if !s.Running() {
						t.Fatalf("%s: server %d was killed; the most memory was %s", when, s.ID, groups[i].Highest())
					}
					t.Logf("%s: server %d has %d MiB resident, the group had at most %s", when, s.ID,
						resident(t, s)>>20, groups[i].Highest())
				}
			}
			h := &hoarder{t: t}
			connect := func() {
				h.c = e.Server(1).Connect(t, cluster.ConnectOptions{Timeout: sessionTimeout})
			}
			connect()
			if n := h.fill(test.atOnce); n < fewest {
				t.Errorf("%d znodes of 100 kB had room", n)
			}
			t.Logf("%d znodes", len(h.have))
			report("full")
			if metric(t, e.Server(1), "refused_writes_total") == 0 {
				t.Error("no metric tells of the writes that were refused")
			}
			h.check()
			// What does not add to the tree is still done.
			if _, err := h.c.Do(wire.OpSetData, &wire.SetDataRequest{
				Path: h.have[0], Data: make([]byte, largeData), Version: znode.AnyVersion,
			}); err != nil {
				t.Errorf("a set of the same size: %v", err)
			}
			for range 3 {
				half := len(h.have) / 2
				h.remove(half)
				if n := h.fill(test.atOnce); n < half/2 {
					t.Errorf("%d znodes had room after %d were deleted", n, half)
				}
			}
			report("full again")
			for range 2 {
				e.KillAll()
				e.StartAll()
				e.WaitServing()
				connect()
				report("started again")
				h.check()
				if h.fill(test.atOnce) > len(h.have)/2 {
					t.Errorf("after a restart there is room for %d znodes", len(h.have))
				}
				h.remove(len(h.have) / 4)
				if h.create(1) == 0 {
					t.Error("there is no room after deletes")
				}
			}
			report("at the end")
			e.CheckReplicas()
		})
	}
}
