package cluster

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/integration/cluster/disk"
	"github.com/zk-lite/zk-lite/internal/testkit/network"
	"github.com/zk-lite/zk-lite/internal/testkit/wait"
)

// NewDisks mounts a disk for each of n servers, see Options.Disks. It needs root and
// /dev/fuse.
func NewDisks(t testing.TB, n int, seed uint64) []*disk.Disk {
	t.Helper()
	return newDisks(t, n, seed, disk.New)
}

// NewExt4Disks is NewDisks with an ext4 on each.
func NewExt4Disks(t testing.TB, n int, seed uint64) []*disk.Disk {
	t.Helper()
	return newDisks(t, n, seed, disk.NewExt4)
}

func newDisks(t testing.TB, n int, seed uint64, one func(testing.TB, uint64) *disk.Disk) []*disk.Disk {
	t.Helper()
	disks := make([]*disk.Disk, n)
	for i := range disks {
		disks[i] = one(t, seed*1000+uint64(i))
	}
	return disks
}

// PowerCut ends a server that has a Disk with SIGKILL and discards unsynced data from its disk,
// all or a part.
func (s *Server) PowerCut() disk.Loss {
	s.e.t.Helper()
	s.Disk.PowerOff()
	if s.Running() {
		s.Kill()
	}
	l, err := s.Disk.PowerCut()
	if err != nil {
		s.e.t.Fatalf("after a power cut of server %d: %v", s.ID, err)
	}
	return l
}

// PowerCut is that of the whole room: all servers at the same moment.
func (e *Ensemble) PowerCut() (all disk.Loss) {
	e.t.Helper()
	for _, s := range e.servers {
		s.Disk.PowerOff()
	}
	e.KillAll()
	for _, s := range e.servers {
		l := s.PowerCut()
		all.Pages += l.Pages
		all.Names += l.Names
	}
	return all
}

// FailLogSync has one sync of the server's log fail, once; it is a zk-lite, which must end
// then. The result ends the fault, and reports whether a sync has failed. A sync that only
// prepares a segment for later succeeds: without that segment the server would continue.
func (s *Server) FailLogSync() (end func() (failed bool)) {
	var mu sync.Mutex // protects the fields below
	before, over, failed := map[string]bool{}, false, false
	s.Disk.SetFault(func(op disk.Op, path string) syscall.Errno {
		inLog := filepath.Base(filepath.Dir(path)) == "raftlog" && filepath.Ext(path) == ".seg"
		if op != disk.OpSync || !inLog {
			return 0
		}
		mu.Lock()
		defer mu.Unlock()
		again := before[path]
		before[path] = true
		if over || failed || !again {
			return 0
		}
		failed = true
		return syscall.EIO
	})
	return func() bool {
		s.Disk.SetFault(nil)
		mu.Lock()
		defer mu.Unlock()
		over = true
		return failed
	}
}

// Flip changes a bit of every copy of a text in the memory of the running server, as broken memory does, and fails the
// test if there is none. It needs Linux, and root or the right to trace a child process.
func (s *Server) Flip(text string) {
	s.e.t.Helper()
	copies, err := flip(s.PID(), []byte(text))
	if err == nil && copies == 0 {
		err = fmt.Errorf("%q is nowhere in its memory", text)
	}
	if err != nil {
		s.e.t.Fatalf("flipping a bit of server %d: %v", s.ID, err)
	}
}

func flip(pid int, text []byte) (copies int, err error) {
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		return 0, err
	}
	memory, err := os.OpenFile(fmt.Sprintf("/proc/%d/mem", pid), os.O_RDWR, 0)
	if err != nil {
		return 0, err
	}
	defer memory.Close()
	lines := bufio.NewScanner(bytes.NewReader(maps))
	for lines.Scan() {
		var from, to uint64
		var rights string
		if _, err := fmt.Sscanf(lines.Text(), "%x-%x %s", &from, &to, &rights); err != nil {
			return copies, fmt.Errorf("a line of its maps, %q: %w", lines.Text(), err)
		}
		if rights != "rw-p" || strings.Contains(lines.Text(), "/") { // of a file
			continue
		}
		// A mapping that no longer exists, or was never used, cannot be read: it has no copy.
		content, _ := io.ReadAll(io.NewSectionReader(memory, int64(from), int64(to-from)))
		for at := 0; ; at++ {
			next := bytes.Index(content[at:], text)
			if next < 0 {
				break
			}
			at += next
			if _, err := memory.WriteAt([]byte{text[0] ^ 1}, int64(from)+int64(at)); err != nil {
				return copies, err
			}
			copies++
		}
	}
	return copies, nil
}

// MemoryGroup is a control group with this much memory. The kernel kills a process in it that needs more.
type MemoryGroup struct{ dir string }

// NewMemoryGroup makes a control group of version 1 or 2, which ends with the test. It needs root, and fails the
// test where the system has no such groups.
func NewMemoryGroup(t testing.TB, bytes int64) *MemoryGroup {
	t.Helper()
	root, limit := "/sys/fs/cgroup/memory", "memory.limit_in_bytes"
	if _, err := os.Stat(root); err != nil {
		root, limit = "/sys/fs/cgroup", "memory.max"
		// Where this is refused, the file with the limit is missing below.
		_ = os.WriteFile(filepath.Join(root, "cgroup.subtree_control"), []byte("+memory"), 0)
	}
	dir, err := os.MkdirTemp(root, "zk-lite-test-")
	if err != nil {
		t.Fatalf("making a control group: %v; set %s where that is not permitted", err, UnprivilegedVariable)
	}
	g := &MemoryGroup{dir}
	t.Cleanup(func() {
		// A process that has ended may be in its group for a moment still.
		wait.Succeeds(t, "the control group is empty", func() error { return os.Remove(dir) })
	})
	if err := os.WriteFile(filepath.Join(dir, limit), fmt.Append(nil, bytes), 0); err != nil {
		t.Fatalf("limiting the memory of a control group: %v; set %s where that is not permitted", err,
			UnprivilegedVariable)
	}
	_ = os.WriteFile(filepath.Join(dir, "memory.swap.max"), []byte("0"), 0) // version 2, and where there is swap
	return g
}

// Wrap is the prefix of a command that runs in the group.
func (g *MemoryGroup) Wrap() []string {
	return []string{"sh", "-c", `echo $$ > "$0"/cgroup.procs && exec "$@"`, g.dir}
}

// Highest is the largest memory use, in bytes, as the kernel reports it; empty where it does not.
func (g *MemoryGroup) Highest() string {
	for _, name := range []string{"memory.max_usage_in_bytes", "memory.peak"} {
		if b, err := os.ReadFile(filepath.Join(g.dir, name)); err == nil {
			return strings.TrimSpace(string(b))
		}
	}
	return ""
}

// UnprivilegedVariable is an environment variable which, when it is not empty, declares that
// this machine permits neither network namespaces nor mounts, so that tests that need them may
// be left out. Without it, a machine that does not permit them fails the test.
const UnprivilegedVariable = "ZK_LITE_UNPRIVILEGED"

// Privileged reports whether tests that need network namespaces or mounts are to run;
// see UnprivilegedVariable.
func Privileged() bool { return os.Getenv(UnprivilegedVariable) == "" }

// NewNetwork makes the namespaces of n servers, which end with the test. It fails the test where the
// system does not permit that.
func NewNetwork(t testing.TB, n int, seed uint64) *network.Network {
	t.Helper()
	w, err := network.New(n, seed)
	if err != nil {
		t.Fatalf("%v; where that cannot be had, set %s=1", err, UnprivilegedVariable)
	}
	t.Cleanup(w.Close)
	return w
}

// clockVariable names the file that a server built by BuildWithClock reads its offset
// from.
const clockVariable = "ZK_LITE_TEST_CLOCK"

// clockSource is added to the standard library's package time of such a server. The file is
// mapped, so that reading it costs nothing and a change takes effect at once.
const clockSource = `package time

import (
	"sync/atomic"
	"syscall"
	"unsafe"
)

var testOffset = mapTestOffset()

func mapTestOffset() *int64 {
	path, _ := syscall.Getenv("` + clockVariable + `")
	if path == "" {
		return new(int64)
	}
	fd, err := syscall.Open(path, syscall.O_RDONLY, 0)
	if err != nil {
		panic("time: " + path + ": " + err.Error())
	}
	b, err := syscall.Mmap(fd, 0, 8, syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		panic("time: " + path + ": " + err.Error())
	}
	return (*int64)(unsafe.Pointer(&b[0]))
}

func testSeconds() int64 { return atomic.LoadInt64(testOffset) }
`

// BuildWithClock builds zk-lite with a wall clock that Clock.Jump moves, and returns its path.
// No kernel gives a process a wall clock of its own, and a Go program uses no library that
// could be replaced; so package time adds an offset, in a build of its own. Nothing else
// differs.
func BuildWithClock(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatalf("asking for GOROOT: %v", err)
	}
	original := filepath.Join(strings.TrimSpace(string(root)), "src", "time", "time.go")
	text, err := os.ReadFile(original)
	if err != nil {
		t.Fatal(err)
	}
	const now = "func Now() Time {\n\tsec, nsec, mono := runtimeNow()\n"
	changed := strings.Replace(string(text), now, now+"\tsec += testSeconds()\n", 1)
	if changed == string(text) {
		t.Fatalf("time.Now of this Go is not as it was: %s has no %q", original, now)
	}
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o640); err != nil {
			t.Fatal(err)
		}
		return path
	}
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {
		original: write("time.go.txt", changed),
		filepath.Join(filepath.Dir(original), "testclock.go"): write("testclock.go.txt", clockSource)}})
	if err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(dir, "zk-lite")
	if err := Build(binary, "-overlay", write("overlay.json", string(overlay))); err != nil {
		t.Fatal(err)
	}
	return binary
}

// Clock is the wall clock of one server.
type Clock struct{ path string }

// NewClock makes the clock of a server.
func NewClock(t testing.TB, id int) *Clock {
	t.Helper()
	c := &Clock{path: filepath.Join(t.TempDir(), fmt.Sprintf("clock-%d", id))}
	c.Jump(t, 0)
	return c
}

// Env is the environment variable of a server that has this clock.
func (c *Clock) Env() string { return clockVariable + "=" + c.path }

// Jump sets the clock this far after the machine's, in whole seconds.
func (c *Clock) Jump(t testing.TB, offset time.Duration) {
	t.Helper()
	var b [8]byte
	binary.NativeEndian.PutUint64(b[:], uint64(int64(offset/time.Second)))
	f, err := os.OpenFile(c.path, os.O_CREATE|os.O_WRONLY, 0o640)
	if err == nil {
		// Written in place: the server has the file mapped.
		_, err = f.WriteAt(b[:], 0)
		f.Close()
	}
	if err != nil {
		t.Fatalf("setting the clock: %v", err)
	}
}
