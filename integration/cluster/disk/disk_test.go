//go:build privileged

package disk_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/integration/cluster"
	"github.com/zk-lite/zk-lite/integration/cluster/disk"
	"github.com/zk-lite/zk-lite/internal/testkit/wait"
)

const pageSize = 4096

// allowed is false where the machine's owner has forbidden mounts.
func allowed(t *testing.T) bool {
	t.Helper()
	if !cluster.Privileged() {
		t.Logf("%s is set: NOT RUN", cluster.UnprivilegedVariable)
	}
	return cluster.Privileged()
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func mustCut(t *testing.T, d *disk.Disk) {
	t.Helper()
	_, err := d.PowerCut()
	must(t, err)
}

func write(t *testing.T, path string, b []byte, sync bool) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o600)
	must(t, err)
	_, err = f.Write(b)
	must(t, err)
	if sync {
		must(t, f.Sync())
	}
	must(t, f.Close())
}

func syncDir(t *testing.T, path string) {
	t.Helper()
	f, err := os.Open(path)
	must(t, err)
	must(t, f.Sync())
	must(t, f.Close())
}

// TestDisk_Files_BehaveLikeThoseOfAnyDisk: a server's operations on files work.
func TestDisk_Files_BehaveLikeThoseOfAnyDisk(t *testing.T) {
	if !allowed(t) {
		return
	}
	d := disk.New(t, 1)
	a, b := filepath.Join(d.Dir(), "a"), filepath.Join(d.Dir(), "b")
	must(t, os.MkdirAll(filepath.Join(a, "deep"), 0o750))
	file := filepath.Join(a, "deep", "file")
	large := bytes.Repeat([]byte("0123456789"), 100_000)
	write(t, file, large, false)
	must(t, os.Rename(a, b))
	if _, err := os.Stat(file); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the old name: %v", err)
	}
	file = filepath.Join(b, "deep", "file")
	got, err := os.ReadFile(file)
	if err != nil || !bytes.Equal(got, large) {
		t.Fatalf("read %d bytes, %v", len(got), err)
	}
	must(t, os.Truncate(file, 5000))
	must(t, os.Truncate(file, 9000))
	got, err = os.ReadFile(file)
	if want := append(large[:5000:5000], make([]byte, 4000)...); err != nil || !bytes.Equal(got, want) {
		t.Fatalf("read %d bytes after truncations, %v", len(got), err)
	}
	write(t, filepath.Join(b, "replaced"), []byte("old"), false)
	must(t, os.Rename(file, filepath.Join(b, "replaced")))
	for i := range 300 {
		write(t, filepath.Join(b, fmt.Sprintf("a-rather-long-name-%d", i)), nil, false)
	}
	list, err := os.ReadDir(b)
	if err != nil || len(list) != 302 {
		t.Errorf("%d names, %v", len(list), err)
	}
	if err := os.Remove(b); !errors.Is(err, syscall.ENOTEMPTY) {
		t.Errorf("removing a full directory: %v", err)
	}
	must(t, os.RemoveAll(b))
	if list, err := os.ReadDir(d.Dir()); err != nil || len(list) != 0 {
		t.Errorf("%v, %v, want an empty directory", list, err)
	}
}

// TestDisk_PowerCut_KeepsWhatWasSynced and, sometimes, more.
func TestDisk_PowerCut_KeepsWhatWasSynced(t *testing.T) {
	if !allowed(t) {
		return
	}
	kept, lost := 0, 0
	for seed := range uint64(20) {
		d := disk.New(t, seed)
		synced := filepath.Join(d.Dir(), "synced")
		write(t, synced, bytes.Repeat([]byte("s"), 3*pageSize), true)
		syncDir(t, d.Dir())
		// One page of it is new, and one file is not synced at all.
		f, err := os.OpenFile(synced, os.O_WRONLY, 0)
		must(t, err)
		_, err = f.WriteAt(bytes.Repeat([]byte("n"), pageSize), pageSize)
		must(t, err)
		must(t, f.Close())
		write(t, filepath.Join(d.Dir(), "unsynced"), []byte("u"), true)
		mustCut(t, d)
		got, err := os.ReadFile(synced)
		must(t, err)
		if len(got) != 3*pageSize || got[0] != 's' || got[2*pageSize] != 's' {
			t.Fatalf("seed %d: %d bytes, %.10q, %.10q", seed, len(got), got, got[2*pageSize:])
		}
		if got[pageSize] == 'n' {
			kept++
		} else {
			lost++
		}
		if _, err := os.Stat(filepath.Join(d.Dir(), "unsynced")); err == nil {
			kept++
		} else {
			lost++
		}
	}
	if kept == 0 || lost == 0 {
		t.Errorf("of what was not synced %d was kept and %d lost; both should happen", kept, lost)
	}
}

// TestDisk_Lying_LosesWhatWasSynced behaves like a disk's cache without a battery.
func TestDisk_Lying_LosesWhatWasSynced(t *testing.T) {
	if !allowed(t) {
		return
	}
	d := disk.New(t, 1)
	path := filepath.Join(d.Dir(), "file")
	write(t, path, []byte("old"), true)
	syncDir(t, d.Dir())
	d.SetLying(true)
	write(t, path, []byte("new"), true)
	write(t, filepath.Join(d.Dir(), "other"), []byte("new"), true)
	syncDir(t, d.Dir())
	if got, err := os.ReadFile(path); string(got) != "new" {
		t.Errorf("before: %q, %v", got, err)
	}
	if l, _ := d.PowerCut(); l.Pages != 1 || l.Names != 1 {
		t.Errorf("lost %+v", l)
	}
	got, err := os.ReadFile(path)
	list, _ := os.ReadDir(d.Dir())
	if string(got) != "old" || len(list) != 1 {
		t.Errorf("after: %q, %v, %v", got, err, list)
	}
}

// TestDisk_FailedSync_LosesThePages although the next sync succeeds.
func TestDisk_FailedSync_LosesThePages(t *testing.T) {
	if !allowed(t) {
		return
	}
	d := disk.New(t, 1)
	path := filepath.Join(d.Dir(), "file")
	write(t, path, bytes.Repeat([]byte("o"), 3*pageSize), true)
	syncDir(t, d.Dir())
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	must(t, err)
	defer f.Close()
	d.SetLying(true) // so that no page is written back before its time
	_, err = f.WriteAt([]byte("n"), 0)
	must(t, err)
	d.SetLying(false)
	d.SetFault(func(op disk.Op, path string) syscall.Errno {
		if op == disk.OpSync && path == "file" {
			return syscall.EIO
		}
		return 0
	})
	if err := f.Sync(); !errors.Is(err, syscall.EIO) {
		t.Fatalf("sync: %v", err)
	}
	d.SetFault(nil)
	must(t, f.Sync())
	must(t, f.Close())
	mustCut(t, d)
	if got, err := os.ReadFile(path); err != nil || got[0] != 'o' {
		t.Errorf("%.3q, %v, want the old page", got, err)
	}
}

// TestDisk_Fault_MayWait: a disk that hangs blocks the caller, and no one else.
func TestDisk_Fault_MayWait(t *testing.T) {
	if !allowed(t) {
		return
	}
	d := disk.New(t, 1)
	hold := make(chan struct{})
	d.SetFault(func(op disk.Op, path string) syscall.Errno {
		if op == disk.OpSync && path == "slow" {
			<-hold
		}
		return 0
	})
	done := make(chan error, 1)
	go func() {
		f, err := os.Create(filepath.Join(d.Dir(), "slow"))
		if err == nil {
			err = errors.Join(f.Sync(), f.Close())
		}
		done <- err
	}()
	write(t, filepath.Join(d.Dir(), "quick"), []byte("q"), true)
	select {
	case err := <-done:
		t.Fatalf("the slow sync has ended: %v", err)
	default:
	}
	close(hold)
	select {
	case err := <-done:
		must(t, err)
	case <-time.After(wait.Patience):
		t.Fatal("the slow sync does not end")
	}
}

// TestDisk_Random_SyncedFilesSurvive writes, syncs and cuts at random, and compares with the last synced content.
func TestDisk_Random_SyncedFilesSurvive(t *testing.T) {
	if !allowed(t) {
		return
	}
	const seed, steps, files, pages = 7, 1500, 4, 6
	rng := rand.New(rand.NewPCG(seed, 1))
	d := disk.New(t, seed)
	// For each page of each file: its possible contents after a power cut.
	var may [files][pages]map[byte]bool
	path := func(f int) string { return filepath.Join(d.Dir(), fmt.Sprint(f)) }
	for f := range files {
		write(t, path(f), make([]byte, pages*pageSize), true)
		for p := range pages {
			may[f][p] = map[byte]bool{0: true}
		}
	}
	syncDir(t, d.Dir())
	for step := range steps {
		f, p, v := rng.IntN(files), rng.IntN(pages), byte(rng.IntN(256))
		h, err := os.OpenFile(path(f), os.O_RDWR, 0)
		must(t, err)
		switch rng.IntN(10) {
		case 0: // everything may go to what it may be
			must(t, h.Close())
			mustCut(t, d)
			for f := range files {
				got, err := os.ReadFile(path(f))
				must(t, err)
				for p := range pages {
					b := got[p*pageSize]
					if !bytes.Equal(got[p*pageSize:(p+1)*pageSize], bytes.Repeat([]byte{b}, pageSize)) {
						t.Fatalf("seed %d, step %d: file %d, page %d is mixed", seed, step, f, p)
					}
					if !may[f][p][b] {
						t.Fatalf("seed %d, step %d: file %d, page %d is %d, want one of %v",
							seed, step, f, p, b, may[f][p])
					}
					may[f][p] = map[byte]bool{b: true}
				}
			}
			continue
		case 1, 2:
			must(t, h.Sync())
			got := make([]byte, pages*pageSize)
			_, err := h.ReadAt(got, 0)
			must(t, err)
			for p := range pages {
				may[f][p] = map[byte]bool{got[p*pageSize]: true}
			}
		default:
			_, err := h.WriteAt(bytes.Repeat([]byte{v}, pageSize), int64(p)*pageSize)
			must(t, err)
			may[f][p][v] = true
		}
		must(t, h.Close())
	}
	if c := d.Counts(); c.LostPages == 0 || c.Cuts == 0 {
		t.Errorf("nothing was lost: %+v", c)
	}
}
