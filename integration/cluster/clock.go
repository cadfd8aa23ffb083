package cluster

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// clockVariable names the file that a server built by BuildWithClock reads its offset
// from.
const clockVariable = "ZK_LITE_TEST_CLOCK"

// clockSource is added to the standard library's package time of such a server. The
// file is mapped, so that a look costs nothing and a change shows at once.
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

// BuildWithClock builds zk-lite with a wall clock that Clock.Jump moves, and returns
// its path. No kernel gives a process a wall clock of its own, and a Go program asks
// no library that could be replaced; so package time adds an offset, in a build of its
// own. Nothing else of it differs.
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

// Env is what a server that has this clock needs in its environment.
func (c *Clock) Env() string { return clockVariable + "=" + c.path }

// Jump sets the clock to so much, in whole seconds, after the machine's.
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
