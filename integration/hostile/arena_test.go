//go:build privileged

package hostile_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/zk-lite/zk-lite/integration/cluster"
	"github.com/zk-lite/zk-lite/internal/wire"
	"github.com/zk-lite/zk-lite/znode"
)

const (
	serverMemory = 700 << 20 // of the control group of each server
	treeMemory   = "64MiB"   // limits.treeBytes

	ownerCredentials = "owner:secret"

	largeData    = 900_000 // bytes
	wideChildren = 10_000
	wideName     = 86  // bytes of each of their names
	guardedACL   = 900 // entries
)

// arena is an ensemble under attack, and the clients that must not notice.
type arena struct {
	t         *testing.T
	e         *cluster.Ensemble
	groups    []*cluster.MemoryGroup
	witnesses []*witness
	belongs   map[string]string // what others have: by path, data, ACL and Stat

	waves    int        // that have been sent
	cleaning sync.Mutex // held by one janitor at a time

	mu     sync.Mutex // protects the fields below
	errors int
}

// enter starts n servers with the znodes of both sides.
func enter(t *testing.T, n int, env ...string) *arena {
	t.Helper()
	a := &arena{t: t}
	for range n {
		a.groups = append(a.groups, cluster.NewMemoryGroup(t, serverMemory))
	}
	a.e = cluster.Start(t, n, cluster.Options{
		Config: map[string]string{"limits.treeBytes": treeMemory, "snapCount": "2000",
			"znode.container.checkIntervalMs": "3600000"}, // a used container stays
		Wrap: func(id int) []string { return a.groups[id-1].Wrap() },
		Env:  env, Quiet: true,
	})
	a.plant()
	return a
}

// must is a request that the kit itself makes.
func (a *arena) must(c *cluster.Conn, op wire.OpCode, q wire.Request) wire.Response {
	a.t.Helper()
	r, err := c.Do(op, q)
	if err != nil {
		a.t.Fatalf("%s: %v", op, err)
	}
	return r
}

func digest(credentials string) *wire.AuthRequest {
	return &wire.AuthRequest{Scheme: "digest", Auth: []byte(credentials)}
}

// attackers are the znodes that requests are about.
func attackers() []*wire.CreateRequest {
	guards := make([]znode.ACL, guardedACL)
	for i := range guards {
		guards[i] = znode.ACL{Perms: znode.PermAll, ID: znode.ID{Scheme: "digest", ID: fmt.Sprint("guard:", i)}}
	}
	guards[guardedACL-1].ID = znode.Anyone
	return []*wire.CreateRequest{
		{Path: small, Data: []byte("x"), ACL: znode.OpenACL},
		{Path: large, Data: bytes.Repeat([]byte("L"), largeData), ACL: znode.OpenACL},
		{Path: wide, ACL: znode.OpenACL},
		{Path: guarded, ACL: guards},
		{Path: room, ACL: znode.OpenACL},
		{Path: room + "/listed", ACL: znode.OpenACL},
	}
}

func (a *arena) plant() {
	a.t.Helper()
	c := a.e.Server(1).Connect(a.t, cluster.ConnectOptions{})
	create := func(path string, data []byte, acl []znode.ACL) {
		a.must(c, wire.OpCreate, &wire.CreateRequest{Path: path, Data: data, ACL: acl})
	}
	a.must(c, wire.OpCreate, &wire.CreateRequest{Path: "/hostile", ACL: znode.OpenACL})
	for _, x := range attackers() {
		a.must(c, wire.OpCreate, x)
	}
	var calls []*cluster.Call
	for i := range wideChildren {
		calls = append(calls, c.Send(wire.OpCreate, &wire.CreateRequest{
			Path: fmt.Sprintf("%s/%0*d", wide, wideName, i), ACL: znode.OpenACL}))
	}
	for _, call := range calls {
		if _, err := call.Wait(); err != nil {
			a.t.Fatal(err)
		}
	}
	a.must(c, wire.OpAuth, digest(ownerCredentials))
	own := []znode.ACL{{Perms: znode.PermAll, ID: znode.ID{Scheme: "auth"}}}
	create(others, []byte("ours"), own)
	create(others+"/data", bytes.Repeat([]byte("data"), 1000), own)
	a.must(c, wire.OpCreateContainer, &wire.CreateRequest{Path: others + "/container", ACL: own, Mode: znode.Container})
	create(others+"/container/child", nil, own)
	a.must(c, wire.OpDelete, &wire.DeleteRequest{Path: others + "/container/child", Version: znode.AnyVersion})
	create(others+"/acl", nil, append(own, znode.ACL{Perms: znode.PermRead, ID: znode.ID{Scheme: "ip", ID: "192.0.2.1"}}))
	for _, s := range a.e.Servers() {
		for _, kind := range []string{"session", "http"} {
			create(fmt.Sprintf("%s/%s-%d", others, kind, s.ID), []byte("0"), own)
		}
	}
	a.belongs = a.inventory(c)
	if err := c.Close(); err != nil {
		a.t.Fatal(err)
	}
}

// inventory is all that others have, but for what the witnesses write.
func (a *arena) inventory(c *cluster.Conn) map[string]string {
	a.t.Helper()
	all := map[string]string{}
	for _, path := range []string{others, others + "/data", others + "/container", others + "/acl"} {
		r, err := c.Do(wire.OpGetData, &wire.GetDataRequest{Path: path})
		if err != nil {
			all[path] = err.Error()
			continue
		}
		got := r.(*wire.GetDataResponse)
		acl, err := c.Do(wire.OpGetACL, &wire.GetACLRequest{Path: path})
		all[path] = fmt.Sprintf("%q %+v %+v %v", got.Data, got.Stat, acl, err)
	}
	return all
}

// errorf reports a fault; of many faults, the first.
func (a *arena) errorf(format string, args ...any) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.errors++; a.errors <= 8 {
		a.t.Errorf(format, args...)
	}
}

// dead are the servers that have ended by themselves.
func (a *arena) dead() (ids []int) {
	for _, s := range a.e.Servers() {
		if !s.Running() {
			ids = append(ids, s.ID)
		}
	}
	return ids
}

// memory is the most that each server had resident.
func (a *arena) memory() (all []string) {
	for i, s := range a.e.Servers() {
		peak := "?"
		if text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.PID())); err == nil {
			for line := range strings.Lines(string(text)) {
				if f := strings.Fields(line); len(f) == 3 && f[0] == "VmHWM:" {
					peak = f[1] + " kB"
				}
			}
		}
		all = append(all, fmt.Sprintf("%s (group %s)", peak, a.groups[i].Highest()))
	}
	return all
}

// clean removes the znodes of the attacker, whatever their ACLs. If another request removes one meanwhile, it begins
// again.
func (a *arena) clean(c *cluster.Conn) error {
	a.cleaning.Lock()
	defer a.cleaning.Unlock()
	if _, err := c.Do(wire.OpAuth, digest(cluster.SuperCredentials)); err != nil {
		return err
	}
	for _, parent := range []string{"/", room} {
		for range 10 {
			err := empty(c, parent)
			if err == nil {
				break
			}
			if !errors.Is(err, znode.ErrNoNode) {
				return fmt.Errorf("cleaning %s: %w", parent, err)
			}
		}
	}
	for _, x := range append(attackers(), &wire.CreateRequest{Path: "/", ACL: znode.OpenACL}) {
		if err := restore(c, x); err != nil && !errors.Is(err, znode.ErrNoNode) {
			return fmt.Errorf("restoring %s: %w", x.Path, err)
		}
	}
	return nil
}

// restore resets a znode of the attacker.
func restore(c *cluster.Conn, x *wire.CreateRequest) error {
	r, err := c.Do(wire.OpExists, &wire.ExistsRequest{Path: x.Path})
	if errors.Is(err, znode.ErrNoNode) {
		if _, err = c.Do(wire.OpCreate, x); errors.Is(err, znode.ErrNodeExists) {
			err = nil
		}
		return err
	}
	if err == nil && int(r.(*wire.ExistsResponse).Stat.DataLength) != len(x.Data) {
		_, err = c.Do(wire.OpSetData, &wire.SetDataRequest{Path: x.Path, Data: x.Data, Version: znode.AnyVersion})
	}
	if err == nil && r.(*wire.ExistsResponse).Stat.Aversion != 0 {
		_, err = c.Do(wire.OpSetACL, &wire.SetACLRequest{Path: x.Path, ACL: x.ACL, Version: znode.AnyVersion})
	}
	return err
}

// empty deletes the children of a znode, some at a time, but for those that the arena needs.
func empty(c *cluster.Conn, parent string) error {
	const most, bytes = 2000, 500_000 // of the paths of one transaction
	keep := []string{"/hostile", others, "/zookeeper", room + "/listed"}
	r, err := c.Do(wire.OpGetChildren, &wire.GetChildrenRequest{Path: parent})
	if err != nil {
		return err
	}
	m, size := &wire.MultiRequest{}, 0
	names := r.(*wire.GetChildrenResponse).Children
	for i, name := range names {
		if path := strings.TrimSuffix(parent, "/") + "/" + name; !slices.Contains(keep, path) {
			m.Ops = append(m.Ops, wire.MultiOp{Type: wire.OpDelete, Request: &wire.DeleteRequest{Path: path, Version: znode.AnyVersion}})
			size += len(path)
		}
		if size > bytes || len(m.Ops) == most || i == len(names)-1 {
			if _, err := c.Do(wire.OpMulti, m); err != nil {
				return err
			}
			m, size = &wire.MultiRequest{}, 0
		}
	}
	return nil
}
