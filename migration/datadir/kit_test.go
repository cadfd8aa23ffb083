package datadir_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/zk-lite/zk-lite/migration/datadir"
	"github.com/zk-lite/zk-lite/migration/replica"
	"github.com/zk-lite/zk-lite/znode"
)

// line is what a client sees of a znode, on one line of a file: path, data, Stat and ACL.
func line(path string, data []byte, s *znode.Stat, acl []znode.ACL) string {
	text := "null"
	if data != nil {
		text = fmt.Sprintf("%q", data)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%q %s", path, text)
	fmt.Fprintf(&b, " czxid=%v mzxid=%v pzxid=%v ctime=%d mtime=%d", s.Czxid, s.Mzxid, s.Pzxid, s.Ctime, s.Mtime)
	fmt.Fprintf(&b, " version=%d cversion=%d aversion=%d owner=%v children=%d", s.Version, s.Cversion, s.Aversion,
		s.EphemeralOwner, s.NumChildren)
	for _, a := range acl {
		fmt.Fprintf(&b, " %d:%q:%q", a.Perms, a.ID.Scheme, a.ID.ID)
	}
	return b.String()
}

// sessionLine is a session on one line of a file.
func sessionLine(id znode.SessionID, millis int64) string {
	return fmt.Sprintf("session %v %d", id, millis)
}

// system reports whether a server decides by itself what is in a znode: the configuration, and which znodes its version
// has below /zookeeper, the Stat of which depends on it.
func system(path string) bool { return path == znode.ConfigPath || path == znode.SystemPath }

// seen returns the lines of a state, as a client would see them.
func seen(r *replica.Replica) []string {
	var lines []string
	super := []znode.ID{znode.SuperIDs}
	var visit func(path string)
	visit = func(path string) {
		data, stat, _ := r.Tree.Get(path, super)
		acl, _, _ := r.Tree.ACLOf(path, super)
		names, _, _ := r.Tree.Children(path, super)
		if !system(path) {
			lines = append(lines, line(path, data, &stat, acl))
		}
		for _, name := range names {
			visit(znode.Join(path, name))
		}
	}
	visit(znode.RootPath)
	for _, s := range r.Sessions.Clone() {
		lines = append(lines, sessionLine(s.ID, s.Timeout.Milliseconds()))
	}
	slices.Sort(lines)
	return lines
}

// diff fails the test for each line that only one of the lists has.
func diff(t *testing.T, got, want []string) {
	t.Helper()
	for _, l := range want {
		if _, there := slices.BinarySearch(got, l); !there {
			t.Errorf("missing %s", l)
		}
	}
	for _, l := range got {
		if _, there := slices.BinarySearch(want, l); !there {
			t.Errorf("got %s, which is not in the original", l)
		}
	}
}

// origins are the directories that real servers have written, by version: see TestOrigin.
func origins(t testing.TB) []string {
	t.Helper()
	dirs, err := filepath.Glob(filepath.Join("testdata", "origin", "*"))
	if err != nil || len(dirs) == 0 {
		t.Fatalf("no directories in testdata/origin: %v", err)
	}
	return dirs
}

// copyOf copies a directory, so that the test may change it.
func copyOf(t testing.TB, dir string) string {
	t.Helper()
	to := t.TempDir()
	if err := os.CopyFS(to, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	return to
}

// files returns the files of a directory, with what they hold.
func files(t testing.TB, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	if err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		all[path] = string(b)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return all
}

// load loads a directory, and fails the test if it cannot.
func load(t testing.TB, dir string) (*replica.Replica, *datadir.Report) {
	t.Helper()
	r, report, err := datadir.Load(dir, "")
	if err != nil {
		t.Fatalf("Load(%s) = %v", dir, err)
	}
	return r, report
}

// lines reads a file of lines.
func lines(t testing.TB, path string) []string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(b)), "\n")
}

// content reads a file.
func content(t testing.TB, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func write(t testing.TB, path string, b []byte) {
	t.Helper()
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

func remove(t testing.TB, path string) {
	t.Helper()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
}

func removeAll(t testing.TB, path string) {
	t.Helper()
	if err := os.RemoveAll(path); err != nil {
		t.Fatal(err)
	}
}

func truncate(t testing.TB, path string, size int64) {
	t.Helper()
	if err := os.Truncate(path, size); err != nil {
		t.Fatal(err)
	}
}

// snapshots are the paths of a directory's snapshots, the newest last.
func snapshots(t testing.TB, dir string) []string {
	t.Helper()
	list, err := filepath.Glob(filepath.Join(dir, "version-2", "snapshot.*"))
	if err != nil || len(list) == 0 {
		t.Fatalf("no snapshot in %s: %v", dir, err)
	}
	return list // zxids of one length, or one is 0
}

func newestSnapshot(t testing.TB, dir string) string {
	t.Helper()
	list := snapshots(t, dir)
	return list[len(list)-1]
}

func removeSnapshots(t testing.TB, dir string) {
	t.Helper()
	for _, path := range snapshots(t, dir) {
		remove(t, path)
	}
}

// entries are the entries of a log.
func entries(t testing.TB, path string) (all []datadir.Entry) {
	t.Helper()
	l, err := datadir.OpenLog(path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for {
		e, err := l.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, e)
	}
}

// written is a state's stream.
func written(t testing.TB, r *replica.Replica) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := r.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
