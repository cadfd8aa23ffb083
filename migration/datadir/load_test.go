package datadir_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/zk-lite/zk-lite/migration/datadir"
	"github.com/zk-lite/zk-lite/znode"
)

// What real servers of each version have written is what a client saw there (TestOrigin made the files).
func TestLoad_Origins(t *testing.T) {
	for _, dir := range origins(t) {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			before := files(t, dir)
			r, report := load(t, dir)
			diff(t, seen(r), lines(t, filepath.Join(dir, "seen.txt")))
			version := filepath.Base(dir)
			digests := version >= "3.6"
			if got := report.Digests; digests != (got.Equal > 0) || got.Spoilt != 0 {
				t.Errorf("digests %+v; want some that are equal: %v", got, digests)
			}
			if report.Znodes != r.Tree.Size().Znodes || report.Sessions != 2 || report.Ephemerals != 3 || report.Quotas != 1 {
				t.Errorf("report %+v; want 2 sessions, 3 ephemerals, 1 quota", report)
			}
			if new := version >= "3.5"; new && (report.Containers != 1 || report.TTLs != 1) {
				t.Errorf("%d containers, %d TTLs; want 1, 1", report.Containers, report.TTLs)
			}
			if report.Zxid != r.Zxid.String() || report.Time.IsZero() || len(report.Torn)+len(report.Skipped) > 0 {
				t.Errorf("report %+v; want the zxid %v, and nothing torn or skipped", report, r.Zxid)
			}
			for path, text := range files(t, dir) {
				if before[path] != text {
					t.Errorf("Load has changed %s", path)
				}
			}
		})
	}
}

// Each snapshot of a directory leads to the same state, whatever it holds already of the transactions after it; and so
// do the logs alone, which begin with the first transaction.
func TestLoad_AnySnapshot(t *testing.T) {
	for _, origin := range origins(t) {
		want, _ := load(t, origin)
		snapshots, err := filepath.Glob(filepath.Join(origin, "version-2", "snapshot.*"))
		if err != nil || len(snapshots) == 0 {
			t.Fatalf("no snapshots in %s: %v", origin, err)
		}
		for _, keep := range append(snapshots, "none") {
			dir := copyOf(t, origin)
			for _, s := range snapshots {
				if s != keep {
					remove(t, filepath.Join(dir, "version-2", filepath.Base(s)))
				}
			}
			got, report, err := datadir.Load(filepath.Join(dir, "version-2"), "")
			if err != nil {
				t.Errorf("with %s alone: %v", keep, err)
				continue
			}
			diff(t, seen(got), seen(want))
			if got.Digest() != want.Digest() || got.Zxid != want.Zxid {
				t.Errorf("with %s alone: zxid %v, digest %#x; want %v, %#x; report %+v", keep, got.Zxid, got.Digest(), want.Zxid,
					want.Digest(), report)
			}
		}
	}
}

// A snapshot that is damaged is skipped and named, and the one before it is used; without any, nothing is.
func TestLoad_SkipsDamagedSnapshots(t *testing.T) {
	for _, origin := range origins(t) {
		dir := copyOf(t, origin)
		newest := newestSnapshot(t, dir)
		b := []byte(content(t, newest))
		b[len(b)/2] ^= 1
		write(t, newest, b)
		r, report, err := datadir.Load(dir, "")
		older, _ := filepath.Glob(filepath.Join(dir, "version-2", "snapshot.*"))
		if len(older) == 1 {
			if err == nil || !strings.Contains(err.Error(), newest) {
				t.Errorf("%s: with its only snapshot damaged Load = %v; want an error that names it", origin, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", origin, err)
			continue
		}
		if len(report.Skipped) != 1 || report.Skipped[0].File != newest || report.Skipped[0].Why == "" {
			t.Errorf("%s: skipped %+v; want %s and why", origin, report.Skipped, newest)
		}
		diff(t, seen(r), lines(t, filepath.Join(origin, "seen.txt")))
	}
}

func TestLoad_Refuses(t *testing.T) {
	origin := filepath.Join("testdata", "origin", "3.9.5")
	v2 := func(dir string) string { return filepath.Join(dir, "version-2") }
	logs := func(dir string) []string {
		list, _ := filepath.Glob(filepath.Join(v2(dir), "log.*"))
		return list
	}
	for _, c := range []struct {
		name   string
		change func(dir string)
		want   string // in the error
	}{
		{"nothing", func(dir string) { removeAll(t, v2(dir)) }, "no ZooKeeper data in"},
		{"an older log is missing", func(dir string) {
			remove(t, logs(dir)[0])
			remove(t, newestSnapshot(t, dir))
		}, "comes after 0x0: those from 0x1 to "},
		{"no snapshot, and not from the beginning", func(dir string) {
			remove(t, logs(dir)[0])
			removeSnapshots(t, dir)
		}, "zookeeper.snapshot.trust.empty"},
		{"an older log is empty", func(dir string) {
			truncate(t, logs(dir)[0], 0)
			remove(t, newestSnapshot(t, dir))
		}, "the log is empty"},
		{"two directories in one", func(dir string) {
			write(t, filepath.Join(v2(dir), "log.5"), nil)
		}, ""},
		{"acceptedEpoch", func(dir string) {
			write(t, filepath.Join(v2(dir), "acceptedEpoch"), []byte("one"))
		}, "acceptedEpoch is damaged at byte 0"},
	} {
		dir := copyOf(t, origin)
		c.change(dir)
		_, _, err := datadir.Load(dir, "")
		if c.want == "" {
			_, _, err = datadir.Load(dir, t.TempDir())
			c.want = "give both directories as zoo.cfg has them"
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: Load = %v; want an error with %q", c.name, err, c.want)
		}
	}
	if _, _, err := datadir.Load(filepath.Join(t.TempDir(), "missing"), ""); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("Load of a missing directory = %v, want %v", err, os.ErrNotExist)
	}
	if _, _, err := datadir.Load(t.TempDir(), ""); !errors.Is(err, datadir.ErrEmpty) {
		t.Errorf("Load of an empty directory = %v, want %v", err, datadir.ErrEmpty)
	}
}

// Leftovers and an empty last log are ignored, as is what is no data; the logs may be in another directory.
func TestLoad_Ignores(t *testing.T) {
	origin := filepath.Join("testdata", "origin", "3.9.5")
	dir, logDir := copyOf(t, origin), t.TempDir()
	v2 := filepath.Join(dir, "version-2")
	logs, _ := filepath.Glob(filepath.Join(v2, "log.*"))
	for _, l := range logs {
		if err := os.MkdirAll(filepath.Join(logDir, "version-2"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(l, filepath.Join(logDir, "version-2", filepath.Base(l))); err != nil {
			t.Fatal(err)
		}
	}
	link := filepath.Join(t.TempDir(), "link")
	absolute, err := filepath.Abs(origin)
	if err == nil {
		err = os.Symlink(absolute, link)
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := datadir.Load(origin, link); err != nil {
		t.Errorf("with a link to dataDir as dataLogDir Load = %v", err)
	}
	write(t, filepath.Join(logDir, "version-2", "log.ffff"), nil)
	write(t, filepath.Join(logDir, "version-2", "log.1.fixed"), []byte("x"))
	write(t, filepath.Join(v2, "snapshot.ffff.tmp"), []byte("x"))
	write(t, filepath.Join(v2, "currentEpoch"), []byte("7\n"))
	r, report, err := datadir.Load(dir, logDir)
	if err != nil {
		t.Fatalf("Load = %v", err)
	}
	diff(t, seen(r), lines(t, filepath.Join(origin, "seen.txt")))
	want := []string{filepath.Join(v2, "snapshot.ffff.tmp"), filepath.Join(logDir, "version-2", "log.1.fixed")}
	if !slices.Equal(report.Ignored, want) || len(report.Torn) != 0 || *report.CurrentEpoch != 7 || report.AcceptedEpoch != nil {
		t.Errorf("ignored %q, torn %v, epochs %v %v; want %q, none, 7, none", report.Ignored, report.Torn,
			report.CurrentEpoch, report.AcceptedEpoch, want)
	}
}

// The last log may end inside an entry: its transaction was acknowledged to no one. With an entry behind it that is
// damage.
func TestLoad_TornTail(t *testing.T) {
	origin := filepath.Join("testdata", "origin", "3.9.5")
	whole, _ := load(t, origin)
	logs, _ := filepath.Glob(filepath.Join(origin, "version-2", "log.*"))
	last := logs[len(logs)-1]
	at := entries(t, last)
	end := at[len(at)-1]
	// Of a checksum the first four bytes are zero, as padding is.
	for cut := end.Offset + 5; cut < end.Offset+int64(len(end.Raw))+13; cut++ {
		dir := copyOf(t, origin)
		truncate(t, filepath.Join(dir, "version-2", filepath.Base(last)), cut)
		r, report, err := datadir.Load(dir, "")
		if err != nil {
			t.Fatalf("cut at byte %d: Load = %v", cut, err)
		}
		if r.Zxid != whole.Zxid-1 || len(report.Torn) != 1 || report.Torn[0].Offset != end.Offset {
			t.Errorf("cut at byte %d: zxid %v, torn %+v; want %v, and one at %d", cut, r.Zxid, report.Torn, whole.Zxid-1,
				end.Offset)
		}
	}
	// The same in the older log leaves a gap, which the error names, and where the older log ends.
	dir := copyOf(t, origin)
	remove(t, newestSnapshot(t, dir))
	at = entries(t, logs[0])
	truncate(t, filepath.Join(dir, "version-2", filepath.Base(logs[0])), at[len(at)-1].Offset+9)
	_, _, err := datadir.Load(dir, "")
	lost := at[len(at)-1]
	gap := fmt.Sprintf("comes after %v: those from %v to %v are missing", lost.Zxid-1, lost.Zxid, lost.Zxid)
	where := fmt.Sprintf("ends inside an entry at byte %d", lost.Offset)
	if err == nil || !strings.Contains(err.Error(), gap) || !strings.Contains(err.Error(), where) {
		t.Errorf("with the older log torn Load = %v; want an error with %q and %q", err, gap, where)
	}
}

// Ephemerals without a session are deleted and listed, as a server deletes them at its start.
func TestLoad_Ownerless(t *testing.T) {
	r, _ := load(t, filepath.Join("testdata", "origin", "3.9.5"))
	var owner znode.SessionID
	r.Tree.EphemeralOwners(func(id znode.SessionID, _ int) { owner = id })
	want := r.Tree.Ephemerals(owner, "")
	slices.Sort(want)
	r.Sessions.Remove(owner)
	dir := t.TempDir()
	if _, err := datadir.WriteSnapshot(dir, r); err != nil {
		t.Fatal(err)
	}
	got, report := load(t, dir)
	if !slices.Equal(report.Ownerless, want) || got.Tree.EphemeralCount(owner) != 0 {
		t.Errorf("ownerless %q, %d left; want %q, none", report.Ownerless, got.Tree.EphemeralCount(owner), want)
	}
}
