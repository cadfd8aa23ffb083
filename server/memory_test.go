package server

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/server/backup"
	"github.com/zk-lite/zk-lite/znode"
)

// full is a server that has /a, with 10,000 bytes, and /a/b, and no room for more.
func full(t *testing.T) (*kit, *client) {
	k := newKit(t, nil)
	c := k.connect()
	c.create("/a", strings.Repeat("x", 10_000))
	c.create("/a/b", "")
	k.log.drain()
	c.expect("before", "create /a: OK", "create /a/b: OK")
	k.log.setLimit(k.srv.Memory().Bytes)
	return k, c
}

// applying applies proposals in the background.
func applying(t *testing.T, k *kit) *Server {
	var all sync.WaitGroup
	k.log.run(&all)
	t.Cleanup(all.Wait)
	t.Cleanup(k.log.stop)
	return k.srv
}

// One client filled the memory of a server in a control group of 120 MB with 41 MB of data. The kernel killed the
// server, whose log held no warning.
func TestRegression_NoRoom_GrowthIsRefusedInItsPlace(t *testing.T) {
	k, c := full(t)
	c.create("/c", "1")
	c.expect("nothing is pending", "create /c: SYSTEMERROR")

	c.set("/a", strings.Repeat("y", 10_000)) // as large as before
	c.create("/c", "1")
	c.get("/a/b", false)
	c.set("/a", "small")
	c.expect("a write is pending")
	k.log.drain()
	c.expect("in order", "set /a: OK", "create /c: SYSTEMERROR", "get /a/b: ", "set /a: OK")
	if m := k.srv.Memory(); m.Refused != 2 || m.Bytes >= m.Limit {
		t.Errorf("memory %+v, want 2 refused and less than the limit in use", m)
	}
	c.create("/c", "1")
	k.log.drain()
	c.expect("there is room again", "create /c: OK")
}

// Pending requests count, or a client that does not wait for replies could exceed the limit.
func TestServer_NoRoom_PendingCounts(t *testing.T) {
	k, c := full(t)
	k.log.setLimit(k.srv.Memory().Bytes + 2000)
	var want []string
	for range 20 {
		c.create("/many-", strings.Repeat("x", 1000))
	}
	k.log.drain()
	if k.srv.Memory().Bytes > k.srv.Memory().Limit {
		t.Errorf("memory %+v, want at most the limit in use", k.srv.Memory())
	}
	created := 0
	for _, line := range c.outbox() {
		if strings.HasSuffix(line, ": OK") {
			created++
		}
		want = append(want, line)
	}
	if created != 1 || len(want) != 20 {
		t.Errorf("%d created, lines %q; want 1 created of 20", created, want)
	}
}

// users returns an ACL of n entries.
func users(n int) (list []znode.ACL) {
	for i := range n {
		list = append(list, znode.ACL{Perms: znode.PermAll, ID: znode.ID{Scheme: "digest", ID: fmt.Sprint("u:", i)}})
	}
	return list
}

// What changes nothing gets the answer that it always gets, and what makes room, or lets a client in, is done.
func TestServer_NoRoom_OnlyGrowthIsRefused(t *testing.T) {
	k, _ := full(t)
	run := applying(t, k)
	data := []byte(strings.Repeat("x", 20_000))
	for name, x := range map[string]struct {
		c    state.Command
		want znode.Error
	}{
		"exists":      {state.Command{Op: state.OpCreate, Path: "/a", Data: data, ACL: znode.OpenACL}, znode.ErrNodeExists},
		"no parent":   {state.Command{Op: state.OpCreate, Path: "/x/y", ACL: znode.OpenACL}, znode.ErrNoNode},
		"sequential":  {state.Command{Op: state.OpCreate, Path: "/a", Mode: 2, ACL: znode.OpenACL}, znode.ErrSystem},
		"larger":      {state.Command{Op: state.OpSetData, Path: "/a", Data: data, Version: -1}, znode.ErrSystem},
		"ACL":         {state.Command{Op: state.OpSetACL, Path: "/a", ACL: users(2), Version: -1}, znode.ErrSystem},
		"sync":        {state.Command{Op: state.OpSync}, znode.OK},
		"new session": {*k.srv.NewSession(0), znode.OK},
		"multi": {state.Command{Op: state.OpMulti, Ops: []state.Command{
			{Op: state.OpCreate, Path: "/m", ACL: znode.OpenACL}, {Op: state.OpCreate, Path: "/m/n", ACL: znode.OpenACL},
		}}, znode.ErrSystem},
		"exchange": {state.Command{Op: state.OpMulti, Ops: []state.Command{
			{Op: state.OpDelete, Path: "/a/b", Version: -1}, {Op: state.OpCreate, Path: "/a/c", ACL: znode.OpenACL},
		}}, znode.OK},
		"restore": {state.Command{Op: state.OpRestore, Data: data}, znode.ErrSystem},
	} {
		if r, err := run.Do(t.Context(), &x.c); err != nil || r.Code != x.want {
			t.Errorf("%s: %s, %v; want %s", name, r.Code.Name(), err, x.want.Name())
		}
	}
	// A delete makes room.
	for _, path := range []string{"/a/c", "/a"} {
		if r, err := run.Do(t.Context(), &state.Command{Op: state.OpDelete, Path: path, Version: -1}); err != nil ||
			r.Code != znode.OK {
			t.Errorf("delete %s: %s, %v", path, r.Code.Name(), err)
		}
	}
	if r, err := run.Do(t.Context(), &state.Command{Op: state.OpCreate, Path: "/a", ACL: znode.OpenACL}); err != nil ||
		r.Code != znode.OK {
		t.Errorf("create: %s, %v", r.Code.Name(), err)
	}
}

// A request that is repeated with its key gets its first result, whatever has happened since.
func TestServer_NoRoom_RepeatedKeyGetsItsResult(t *testing.T) {
	k, _ := full(t)
	limit := k.srv.Memory().Limit
	k.log.setLimit(0)
	run := applying(t, k)
	c := state.Command{
		Op: state.OpCreate, Path: "/keyed", Data: make([]byte, 1000), ACL: znode.OpenACL,
		Flags: state.FlagKeyed, Key: "k",
	}
	for i, want := range []state.KeyOutcome{state.KeyFresh, state.KeyRepeated} {
		again := c
		if r, err := run.Do(t.Context(), &again); err != nil || r.Code != znode.OK || r.Key != want {
			t.Errorf("time %d: %s, %v, %v", i, r.Code.Name(), r.Key, err)
		}
		k.log.setLimit(limit)
	}
}

// Every server holds the present tree and the backup's for a moment.
func TestServer_NoRoom_RestoreNeedsBoth(t *testing.T) {
	file := backupOf(t, 10_000, "/b")
	k, _ := full(t)
	run := applying(t, k)
	try := func(o backup.RestoreOptions) error {
		_, err := run.Restore(t.Context(), bytes.NewReader(file), o)
		return err
	}
	for _, room := range []int64{0, 10_500} { // for neither; for the parts, but not for the tree
		k.log.setLimit(k.srv.Memory().Bytes + room)
		if err := try(backup.RestoreOptions{Replace: true}); !errors.Is(err, backup.ErrNoRoom) {
			t.Errorf("room for %d bytes: %v", room, err)
		}
	}
	if err := try(backup.RestoreOptions{DryRun: true}); err != nil {
		t.Error(err)
	}
	k.log.setLimit(k.srv.Memory().Bytes + 30_000)
	if err := try(backup.RestoreOptions{Replace: true}); err != nil {
		t.Error(err)
	}
}

// One anonymous request of 64 KB with 440 identities made 1.6 million entries, on all servers and again at every start,
// because it was in the log. It is refused before it is there, in its place among the client's requests.
func TestRegression_LongACL_IsRefused(t *testing.T) {
	k := newKit(t, nil)
	var ids []znode.ID
	for i := range 440 {
		ids = append(ids, znode.ID{Scheme: "digest", ID: fmt.Sprint(":", i)})
	}
	auths := func(n int) (list []znode.ACL) {
		for i := range n {
			list = append(list, znode.ACL{Perms: znode.Perms(i), ID: znode.AuthIDs})
		}
		return list
	}
	k.log.from(1, &state.Command{Op: state.OpCreate, Path: "/old", ACL: users(2 * znode.MaxACL)}) // as v1.0 took it
	run := applying(t, k)
	var many []state.Command
	for i := range 2000 {
		many = append(many, state.Command{Op: state.OpCreate, Path: "/nowhere/x", ACL: auths(1)[:1],
			Version: znode.Version(i)})
	}
	create := state.Command{Op: state.OpCreate, Path: "/a", Identities: ids}
	with := func(c state.Command, list []znode.ACL) state.Command { c.ACL = list; return c }
	old := state.Command{Op: state.OpSetACL, Path: "/old", Version: -1, Identities: []znode.ID{znode.SuperIDs}}
	for _, x := range []struct {
		what string
		c    state.Command
		want znode.Error
	}{
		{"auth times identities", with(create, auths(3)), znode.ErrInvalidACL},
		{"one auth", with(create, auths(2)), znode.OK},
		{"entries", with(create, users(znode.MaxACL+1)), znode.ErrInvalidACL},
		{"in a multi", state.Command{Op: state.OpMulti, Ops: []state.Command{with(create, auths(3))}, Identities: ids},
			znode.ErrInvalidACL},
		{"many in a multi", state.Command{Op: state.OpMulti, Ops: many, Identities: ids}, znode.ErrInvalidACL},
		{"set", state.Command{Op: state.OpSetACL, Path: "/a", ACL: users(znode.MaxACL + 1), Version: -1},
			znode.ErrInvalidACL},
		{"an old one, longer", with(old, users(2*znode.MaxACL+1)), znode.ErrInvalidACL},
		{"an old one, as long", with(old, users(2*znode.MaxACL)), znode.OK},
	} {
		if r, err := run.Do(t.Context(), &x.c); err != nil || r.Code != x.want {
			t.Errorf("%s: got %s, %v; want %s", x.what, r.Code.Name(), err, x.want.Name())
		}
	}
	if got := k.srv.Memory().LongACL; got != 6 {
		t.Errorf("got %d refused ACLs counted, want 6", got)
	}
}
