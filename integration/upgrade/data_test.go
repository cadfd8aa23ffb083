//go:build upgrade

package upgrade_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/integration/cluster"
	"github.com/zk-lite/zk-lite/internal/testkit/wait"
	"github.com/zk-lite/zk-lite/znode"
)

var write = flag.Bool("write", false, "write the data directories of the last release anew, with its build")

// The znodes of a release's data directories: those below rootKept must be unchanged, those below rootEnds belong to a
// session whose client does not reconnect.
const rootKept, rootEnds = "/kept", "/ends"

// dataOptions are those of ensembles with a release's data directories. Logs and snapshots are small.
var dataOptions = cluster.Options{NotStarted: true, Hosts: true, Config: map[string]string{"snapCount": "100"}}

// TestData: the data directories that the last release has written (testdata/NAME.tar.gz) are served by this build,
// with everything in them, and by the next, which finalizes its level.
func TestData(t *testing.T) {
	r := last(t)
	archive := filepath.Join("testdata", r.name+".tar.gz")
	if *write {
		writeData(t, archive)
	}
	e := cluster.Start(t, 3, dataOptions)
	all := t.TempDir()
	run(t, "", "tar", "-xzf", archive, "-C", all)
	text, err := os.ReadFile(filepath.Join(all, "kept.json"))
	var want []string
	if err == nil {
		err = json.Unmarshal(text, &want)
	}
	if err != nil || len(want) < 10 {
		t.Fatalf("%v: %d znodes", err, len(want))
	}
	for _, s := range e.Servers() {
		if err := errors.Join(os.RemoveAll(s.DataDir), os.CopyFS(s.DataDir, os.DirFS(filepath.Join(all, fmt.Sprint(s.ID))))); err != nil {
			t.Fatal(err)
		}
	}
	e.StartAll()
	e.WaitServing()
	checkData(t, e, want)
	u := &upgrade{t: t, e: e}
	for _, s := range e.Servers() {
		s.Stop()
		s.Binary = next(t).binary
		s.Start()
		e.WaitServing()
	}
	u.ask(e.Server(1), http.MethodPut, levelPath, fmt.Sprintf(`{"level": %d}`, current.level+1), http.StatusOK,
		fmt.Sprintf(`"level":%d`, current.level+1))
	u.useNext()
	checkData(t, e, want)
	checkLongACLs(t, e)
}

// checkData compares the tree with what there was, and writes.
func checkData(t *testing.T, e *cluster.Ensemble, want []string) {
	t.Helper()
	wait.Succeeds(t, "the end of a session without a client", func() error {
		if left := below(e.Server(1).Dump(t), rootEnds+"/"); len(left) > 0 {
			return fmt.Errorf("there is still %v", left)
		}
		return nil
	})
	e.CheckReplicas()
	have := below(e.Server(1).Dump(t), rootKept)
	for i := range max(len(have), len(want)) {
		if i >= len(have) || i >= len(want) || have[i] != want[i] {
			t.Fatalf("%d znodes, want %d; the first other one is %d: %q, want %q", len(have), len(want), i,
				have[min(i, len(have)-1)], want[min(i, len(want)-1)])
		}
	}
	c := connect(t, e)
	defer c.Close()
	if path, _, err := c.Create(t.Context(), "/new-", nil, client.PersistentSequential); err != nil {
		t.Errorf("a write, %s: %v", path, err)
	}
}

// below are the znodes at and below a path, as text.
func below(all []cluster.Znode, prefix string) (found []string) {
	for _, z := range all {
		if strings.HasPrefix(z.Path, prefix) {
			found = append(found, z.String())
		}
	}
	slices.Sort(found)
	return found
}

func connect(t *testing.T, e *cluster.Ensemble, more ...client.Option) *client.Client {
	t.Helper()
	c, err := client.Connect(t.Context(), e.ConnectString(), more...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// writeData has the last release write data directories: a snapshot, entries after it, keys, znodes of all kinds,
// and a session that is not closed.
func writeData(t *testing.T, archive string) {
	t.Helper()
	archive, err := filepath.Abs(archive)
	if err != nil {
		t.Fatal(err)
	}
	r := previous(t)
	e := cluster.Start(t, 3, dataOptions)
	for _, s := range e.Servers() {
		s.Binary = r.binary
	}
	e.StartAll()
	e.WaitServing()
	c := connect(t, e)
	createLongACL(t, e, longACLs[0])
	populate(t, c)
	createLongACL(t, e, longACLs[1])
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	lost, err := client.Connect(context.Background(), e.ConnectString(), client.WithSessionTimeout(time.Second))
	if err == nil {
		_, _, err = lost.Create(t.Context(), rootEnds+"/ephemeral", nil, client.Ephemeral)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer lost.Close()
	all := t.TempDir()
	kept, err := json.MarshalIndent(below(e.Server(1).Dump(t), rootKept), "", " ")
	if err == nil {
		err = os.WriteFile(filepath.Join(all, "kept.json"), kept, 0o644)
	}
	for _, s := range e.Servers() {
		wait.Succeeds(t, "a history on the disk", func() error {
			_, err := os.Stat(filepath.Join(s.DataDir, "history"))
			return err
		})
		s.Kill() // so that the session is not closed
		if len(s.Snapshots()) == 0 {
			t.Errorf("server %d has no snapshot", s.ID)
		}
		err = errors.Join(err, os.CopyFS(filepath.Join(all, fmt.Sprint(s.ID)), os.DirFS(s.DataDir)))
	}
	if err != nil {
		t.Fatal(err)
	}
	run(t, all, "sh", "-c", `tar --sparse --owner=0 --group=0 --numeric-owner -c * | gzip -9n > "$0"`, archive)
}

// longACLs are znodes with more entries in their ACLs than znode.MaxACL: release 1.0 had no bound. One is in the
// snapshot, the other in the log after it.
var longACLs = []string{rootKept + "-in-the-snapshot", rootKept + "-in-the-log"}

// checkLongACLs: a longer list than allowed stays as it is, but may not grow.
func checkLongACLs(t *testing.T, e *cluster.Ensemble) {
	t.Helper()
	c := withIdentities(t, e)
	defer c.Close()
	for _, path := range longACLs {
		list, _, err := c.GetACL(t.Context(), path)
		if err != nil || len(list) <= znode.MaxACL {
			t.Fatalf("%s: %d entries, %v", path, len(list), err)
		}
		if _, err := c.SetACL(t.Context(), path, list, client.AnyVersion); err != nil {
			t.Errorf("%s cannot be given the ACL that it has: %v", path, err)
		}
		more := append(list, znode.ACL{Perms: znode.PermRead, ID: znode.Anyone})
		if _, err := c.SetACL(t.Context(), path, more, client.AnyVersion); !errors.Is(err, znode.ErrInvalidACL) {
			t.Errorf("%s may be given a longer ACL: %v", path, err)
		}
	}
}

// createLongACL makes 1,085 entries of 31.
func createLongACL(t *testing.T, e *cluster.Ensemble, path string) {
	t.Helper()
	c := withIdentities(t, e)
	defer c.Close()
	var list []znode.ACL
	for perms := range znode.PermAll {
		list = append(list, znode.ACL{Perms: perms + 1, ID: znode.AuthIDs})
	}
	if _, _, err := c.Create(t.Context(), path, nil, client.Persistent, list...); err != nil {
		t.Fatal(err)
	}
}

// withIdentities connects a client with 35 identities.
func withIdentities(t *testing.T, e *cluster.Ensemble) *client.Client {
	t.Helper()
	c := connect(t, e)
	for i := range 35 {
		if err := c.AddAuth(t.Context(), "digest", fmt.Appendf(nil, "%d:secret", i)); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// populate creates znodes of all kinds, with more writes than a snapshot takes.
func populate(t *testing.T, c *client.Client) {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	create := func(path string, mode znode.Mode, acl ...znode.ACL) (made string) {
		t.Helper()
		made, _, err := c.Create(t.Context(), path, []byte("data of "+path), mode, acl...)
		must(err)
		return made
	}
	create(rootKept, client.Persistent)
	create(rootEnds, client.Persistent)
	create(rootKept+"/container", client.Container)
	create(rootKept+"/container/child", client.Persistent)
	create(rootKept+"/read-only", client.Persistent, znode.ACL{Perms: znode.PermRead, ID: znode.ID{Scheme: "world", ID: "anyone"}})
	_, _, err := c.CreateTTL(t.Context(), rootKept+"/ttl", nil, client.PersistentTTL, 30*365*24*time.Hour)
	must(err)
	create(rootKept+"/ephemeral", client.Ephemeral)
	for i := range 150 {
		made := create(rootKept+"/s-", client.PersistentSequential)
		if i%3 == 0 {
			must(c.Delete(t.Context(), made, client.AnyVersion))
		}
	}
	_, err = c.Set(t.Context(), rootKept, []byte("again"), client.AnyVersion)
	must(err)
}
