package fence_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/zk-lite/zk-lite/migration/datadir"
	"github.com/zk-lite/zk-lite/migration/fence"
	"github.com/zk-lite/zk-lite/znode"
)

// host is a stopped server with the files that a real one has left behind.
func host(t *testing.T) (fence.Host, *datadir.Past) {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("../datadir/testdata/origin/3.9.5")); err != nil {
		t.Fatal(err)
	}
	must(t, os.WriteFile(filepath.Join(dir, "myid"), []byte("2\n"), 0o600))
	p, err := datadir.Since(dir, "", 1<<40, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	return fence.Host{DataDir: dir}, p
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// listing is all files of a directory with their sizes.
func listing(t *testing.T, dir string) map[string]int64 {
	t.Helper()
	all := map[string]int64{}
	must(t, filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
		if err == nil && !info.IsDir() {
			all[strings.TrimPrefix(path, dir)] = info.Size()
		}
		return err
	}))
	return all
}

// TestFence: a server that was fenced has neither myid nor version-2, its receipt says what its files hold, the same
// each time, and Unfence brings all back.
func TestFence(t *testing.T) {
	h, p := host(t)
	before := listing(t, h.DataDir)
	at := fence.Point{After: fence.Zxid(p.Zxid), Digest: fence.Digest(p.Digest), Voters: []int64{1, 2, 3}}
	r, err := h.Fence(at)
	must(t, err)
	if r.Server != 2 || r.Zxid != at.After || r.End != at.Digest || !r.Compared || len(r.Tail) != 0 ||
		r.Check() != nil {
		t.Errorf("the receipt is %+v, check %v; want server 2's at its end", r, r.Check())
	}
	for _, name := range []string{"myid", "version-2"} {
		if info, err := os.Stat(filepath.Join(h.DataDir, name)); err == nil && (info.IsDir() || name == "myid") {
			t.Errorf("%s is still there", name)
		}
	}
	again, err := h.Fence(at)
	if err != nil || !reflect.DeepEqual(r, again) {
		t.Errorf("again: %+v, %v; want %+v", again, err, r)
	}
	earlier := fence.Point{After: at.After - 4, Digest: 1}
	var differs *fence.DifferenceError
	if _, err := h.Fence(earlier); !errors.As(err, &differs) {
		t.Errorf("for a state with another digest: %v, want a DifferenceError", err)
	}
	if _, err := os.Stat(filepath.Join(h.DataDir, "version-2.fenced")); err != nil {
		t.Errorf("a server that was fenced before is no longer: %v", err)
	}
	must(t, h.Unfence())
	must(t, h.Unfence())
	if after := listing(t, h.DataDir); !reflect.DeepEqual(before, after) {
		t.Errorf("unfenced: %v, want %v", after, before)
	}
}

// TestFence_Refuses: a server whose znodes were others, or whose files are damaged, or in use, is as it was before.
func TestFence_Refuses(t *testing.T) {
	h, p := host(t)
	good := fence.Point{After: fence.Zxid(p.Zxid), Digest: fence.Digest(p.Digest)}
	before := listing(t, h.DataDir)
	check := func(what string, err error, want string) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", what, err, want)
		}
		if after := listing(t, h.DataDir); !reflect.DeepEqual(before, after) {
			t.Errorf("%s: then there is %v, want %v", what, after, before)
		}
	}
	_, err := h.Fence(fence.Point{After: good.After, Digest: good.Digest + 1})
	check("another digest", err, "do not have the digest")
	all, err := filepath.Glob(filepath.Join(h.DataDir, "version-2", "snapshot.*"))
	must(t, err)
	for _, path := range all[:len(all)-1] {
		must(t, os.Remove(path))
		delete(before, strings.TrimPrefix(path, h.DataDir))
	}
	_, err = h.Fence(fence.Point{After: 1, Digest: 1})
	check("a state before all snapshots", err, "make a plan now")

	logs, err := filepath.Glob(filepath.Join(h.DataDir, "version-2", "log.*"))
	must(t, err)
	f, err := os.Open(logs[0])
	must(t, err)
	_, err = h.Fence(good)
	if err != nil {
		t.Errorf("a file that this process alone has open: %v, want none", err)
	}
	must(t, h.Unfence())
	must(t, f.Close())
	_, err = fence.Host{DataDir: filepath.Join(h.DataDir, "version-2")}.Fence(good)
	check("version-2 itself", err, "name the directory that zoo.cfg has as dataDir")
	for _, path := range logs {
		must(t, os.Remove(path))
		delete(before, strings.TrimPrefix(path, h.DataDir))
	}
	newest, err := datadir.Since(h.DataDir, "", 1<<40, 0, 0)
	must(t, err)
	_, err = h.Fence(fence.Point{After: fence.Zxid(newest.Zxid), Digest: fence.Digest(newest.Digest)})
	for _, want := range []string{h.DataDir + " has no log.*", "another dataLogDir, name that (--log-dir)",
		"If not, this server has written nothing", "do without its receipt", "make a new plan"} {
		check("the snapshots without the logs", err, want)
	}
	other := t.TempDir() // given, and without logs, too
	must(t, os.Mkdir(filepath.Join(other, "version-2"), 0o700))
	_, err = fence.Host{DataDir: h.DataDir, LogDir: other}.Fence(
		fence.Point{After: fence.Zxid(newest.Zxid), Digest: fence.Digest(newest.Digest)})
	check("another directory without logs", err, other+" has no log.*")
}

// TestFence_Interrupted: what a crash leaves behind, at any step of fencing and unfencing, is completed both ways.
func TestFence_Interrupted(t *testing.T) {
	barrier := func() []byte {
		h, p := host(t)
		_, err := h.Fence(fence.Point{After: fence.Zxid(p.Zxid), Digest: fence.Digest(p.Digest)})
		must(t, err)
		b, err := os.ReadFile(filepath.Join(h.DataDir, "version-2"))
		must(t, err)
		return b
	}()
	steps := []func(dir string) error{
		func(dir string) error { return os.Rename(dir+"/myid", dir+"/myid.fenced") },
		func(dir string) error { return os.Rename(dir+"/version-2", dir+"/version-2.fenced") },
		func(dir string) error { return os.WriteFile(dir+"/version-2.tmp", barrier[:10], 0o600) },
		func(dir string) error { return os.Rename(dir+"/version-2.tmp", dir+"/version-2") },
		func(dir string) error { return os.WriteFile(dir+"/version-2", barrier, 0o600) },
	}
	for n := range len(steps) + 1 {
		if n == 4 {
			continue // half a barrier never has the name
		}
		h, p := host(t)
		at := fence.Point{After: fence.Zxid(p.Zxid), Digest: fence.Digest(p.Digest)}
		before := listing(t, h.DataDir)
		for _, step := range steps[:n] {
			must(t, step(h.DataDir))
		}
		r, err := h.Fence(at)
		if err != nil || r.Server != 2 || r.End != at.Digest {
			t.Fatalf("after %d steps: %+v, %v; want the receipt of server 2", n, r, err)
		}
		must(t, h.Unfence())
		for _, step := range steps[:n] {
			must(t, step(h.DataDir))
		}
		must(t, h.Unfence())
		after := listing(t, h.DataDir)
		delete(after, "/version-2.tmp")
		if !reflect.DeepEqual(before, after) {
			t.Errorf("unfenced after %d steps: %v, want %v", n, after, before)
		}
	}
}

// TestReceipt_JSON: a receipt survives its text, and nothing in it can be changed unnoticed.
func TestReceipt_JSON(t *testing.T) {
	h, p := host(t)
	r, err := h.Fence(fence.Point{After: fence.Zxid(p.Zxid), Digest: fence.Digest(p.Digest), Voters: []int64{1, 2, 3}})
	must(t, err)
	text, err := json.Marshal(r)
	must(t, err)
	got := new(fence.Receipt)
	must(t, json.Unmarshal(text, got))
	if !reflect.DeepEqual(r, got) || got.Check() != nil {
		t.Errorf("got %+v, %v, want %+v", got, got.Check(), r)
	}
	for _, edit := range []func(r *fence.Receipt){
		func(r *fence.Receipt) { r.Server++ }, func(r *fence.Receipt) { r.Epoch++ },
		func(r *fence.Receipt) { r.Zxid-- },
		func(r *fence.Receipt) { r.Tail = [][]byte{{1}} }, func(r *fence.Receipt) { r.Voters = []int64{2} },
		func(r *fence.Receipt) { r.Format++ }, func(r *fence.Receipt) { r.Compared = false },
		func(r *fence.Receipt) { r.End++ },
	} {
		c := *r
		if edit(&c); !errors.Is(c.Check(), fence.ErrDamaged) {
			t.Errorf("%+v: %v, want ErrDamaged", c, c.Check())
		}
	}
	var z fence.Zxid
	if err := z.UnmarshalText([]byte("-0x1")); err == nil {
		t.Error("a negative zxid is read")
	}
	_ = znode.Zxid(z)
}

// TestFence_LogDir: a server with a dataLogDir of its own is fenced in both directories.
func TestFence_LogDir(t *testing.T) {
	h, p := host(t)
	h.LogDir = t.TempDir()
	must(t, os.Mkdir(filepath.Join(h.LogDir, "version-2"), 0o700))
	logs, err := filepath.Glob(filepath.Join(h.DataDir, "version-2", "log.*"))
	must(t, err)
	for _, path := range logs {
		must(t, os.Rename(path, filepath.Join(h.LogDir, "version-2", filepath.Base(path))))
	}
	data, log := listing(t, h.DataDir), listing(t, h.LogDir)
	r, err := h.Fence(fence.Point{After: fence.Zxid(p.Zxid), Digest: fence.Digest(p.Digest)})
	if err != nil || r.End != fence.Digest(p.Digest) {
		t.Fatalf("%+v, %v; want the receipt", r, err)
	}
	for _, dir := range []string{h.DataDir, h.LogDir} {
		if info, err := os.Stat(filepath.Join(dir, "version-2")); err != nil || info.IsDir() {
			t.Errorf("%s/version-2 is a directory (%v), want a plain file", dir, err)
		}
	}
	must(t, h.Unfence())
	if d, l := listing(t, h.DataDir), listing(t, h.LogDir); !reflect.DeepEqual(d, data) || !reflect.DeepEqual(l, log) {
		t.Errorf("unfenced: %v and %v, want %v and %v", d, l, data, log)
	}
}
