//go:build amd64 || arm64

package raftlog_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"github.com/hashicorp/raft"
	"golang.org/x/sys/unix"

	"github.com/zk-lite/zk-lite/consensus/raftlog"
)

// directVariable declares that the directory for temporary files accepts direct writes, as .ci/run ensures: a test that
// needs it then fails where it does not.
const directVariable = "ZK_LITE_DIRECT_TMPDIR"

// onDirectDisk skips the test if the directory for temporary files is in memory, say.
func onDirectDisk(t *testing.T, dir string) {
	t.Helper()
	var st unix.Statfs_t
	must(t, unix.Statfs(dir, &st))
	switch {
	case st.Type == unix.EXT4_SUPER_MAGIC || st.Type == unix.XFS_SUPER_MAGIC:
	case os.Getenv(directVariable) != "":
		t.Fatalf("%s is set, and %s is neither on ext4 nor on XFS (type %#x)", directVariable, dir, st.Type)
	default:
		t.Skipf("%s is neither on ext4 nor on XFS (type %#x): set TMPDIR", dir, st.Type)
	}
}

// bothWays runs a test with writes that park their goroutine, and with those that block its thread.
func bothWays(t *testing.T, test func(t *testing.T, park bool)) {
	for _, park := range []bool{true, false} {
		t.Run(fmt.Sprintf("park=%v", park), func(t *testing.T) { test(t, park) })
	}
}

// directPair is a file of size random bytes, open both ways.
func directPair(t *testing.T, size int, park bool) (raftlog.File, raftlog.DirectFile, []byte) {
	t.Helper()
	dir := t.TempDir()
	onDirectDisk(t, dir)
	fsys := raftlog.OS()
	name := filepath.Join(dir, "file")
	file, err := fsys.Create(name)
	must(t, err)
	content := blocks(size)
	fill(rand.New(rand.NewPCG(uint64(size), 1)), content)
	_, err = file.WriteAt(content, 0)
	must(t, err)
	must(t, file.Sync())
	direct, err := fsys.OpenDirect(name)
	must(t, err)
	direct.Park(park)
	t.Cleanup(func() { must(t, errors.Join(direct.Close(), file.Close())) })
	return file, direct, content
}

// blocks returns n bytes in memory as direct writes want it.
func blocks(n int) []byte {
	b := make([]byte, n+4096)
	skip := -int(uintptr(unsafe.Pointer(&b[0]))) & 4095
	return b[skip : skip+n : skip+n]
}

func fill(rng *rand.Rand, b []byte) {
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
}

// Bytes written past the page cache are read through it, also if it holds pages of that place already: then the
// kernel refuses to do it without blocking.
func TestDirect_RealFile_IsReadAsWritten(t *testing.T) { bothWays(t, testIsReadAsWritten) }

func testIsReadAsWritten(t *testing.T, park bool) {
	const size = 1 << 20
	file, direct, content := directPair(t, size, park)
	rng := rand.New(rand.NewPCG(2, 2))
	got := make([]byte, size)
	for i := range 100 {
		off := rng.IntN(size/4096) * 4096
		b := blocks(4096 * (1 + rng.IntN(min(20, (size-off)/4096))))
		fill(rng, b)
		must(t, direct.WriteDurable(b, int64(off)))
		copy(content[off:], b)
		if i%10 == 9 {
			direct.Park(i%20 == 9) // also in the middle
			direct.Park(park)
		}
		if i%3 == 0 {
			_, err := file.ReadAt(got, 0)
			must(t, err)
			if !bytes.Equal(got, content) {
				t.Fatalf("after write %d, of %d bytes at %d, something else is read", i, len(b), off)
			}
		}
	}
}

// Some files are written at once: the end of a write wakes no other's goroutine.
func TestDirect_ManyFilesAtOnce(t *testing.T) {
	for range 4 {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			file, direct, content := directPair(t, 64<<10, true)
			rng := rand.New(rand.NewPCG(3, 3))
			for range 50 {
				b := blocks(4096)
				fill(rng, b)
				off := rng.IntN(16) * 4096
				must(t, direct.WriteDurable(b, int64(off)))
				copy(content[off:], b)
			}
			got := make([]byte, len(content))
			_, err := file.ReadAt(got, 0)
			must(t, err)
			if !bytes.Equal(got, content) {
				t.Error("something else is read than was written")
			}
		})
	}
}

func TestDirect_ErrAlignment_NamesFile(t *testing.T) { bothWays(t, testErrAlignment) }

func testErrAlignment(t *testing.T, park bool) {
	file, direct, content := directPair(t, 8192, park)
	err := direct.WriteDurable(blocks(4096), 100)
	if !errors.Is(err, syscall.EINVAL) || !strings.Contains(err.Error(), "/file") {
		t.Errorf("a write at 100: %v, want EINVAL of the file", err)
	}
	got := make([]byte, len(content))
	_, err = file.ReadAt(got, 0)
	must(t, err)
	if !bytes.Equal(got, content) {
		t.Error("a refused write changed the file")
	}
}

// A file system that cannot write past its page cache, or is not known to, reports that: /proc refuses
// O_DIRECT, a file in memory is none of those that are known. The log then goes through the page cache,
// as all tests with faultfs show that do not ask for more.
func TestDirect_ErrUnsupported(t *testing.T) {
	fd, err := unix.MemfdCreate("segment", unix.MFD_CLOEXEC)
	must(t, err)
	f := os.NewFile(uintptr(fd), "segment")
	defer f.Close()
	must(t, f.Truncate(8192))
	for _, name := range []string{"/proc/self/comm", fmt.Sprintf("/proc/self/fd/%d", fd)} {
		if _, err := raftlog.OS().OpenDirect(name); !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("OpenDirect(%s): %v, want that it is not supported", name, err)
		}
	}
}

// A log written one way is read and continued the other way.
func TestDirect_SwitchedOnAndOff_KeepsLog(t *testing.T) {
	dir := t.TempDir()
	onDirectDisk(t, dir)
	for i := range uint64(6) {
		s := openDir(t, dir, raftlog.Options{SegmentSize: 16 << 10, NoDirect: i%2 == 1, CacheEntries: -1})
		checkLog(t, s, entries(1, i*50, 1))
		s.SetAsync(func([]*raft.Log) bool { return i%4 == 0 })
		must(t, s.StoreLogs(entries(i*50+1, i*50+49, 1)))
		must(t, s.StoreLog(entry(i*50+50, 1)))
		checkLog(t, s, entries(1, i*50+50, 1))
		must(t, s.Close())
	}
}
