package slowdisk

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/zk-lite/zk-lite/internal/testkit/wait"
)

// childVariable makes this test binary the process whose syncs are slow: the name of its file.
const childVariable = "SLOWDISK_TEST_CHILD"

func TestMain(m *testing.M) {
	if path := os.Getenv(childVariable); path != "" {
		child(path)
		return
	}
	os.Exit(m.Run())
}

// child obeys each line of its input, and prints how long that took or why it failed.
func child(path string) {
	f, err := os.Create(path)
	if err != nil {
		panic(err)
	}
	fd, buf := int(f.Fd()), [][]byte{make([]byte, 4096)}
	calls := map[string]func() error{
		"fsync":     func() error { return unix.Fsync(fd) },
		"fdatasync": func() error { return unix.Fdatasync(fd) },
		"dsync":     func() error { _, err := unix.Pwritev2(fd, buf, 0, unix.RWF_DSYNC); return err },
		"pwrite":    func() error { _, err := unix.Pwrite(fd, buf[0], 0); return err },
		"write":     func() error { _, err := unix.Pwritev2(fd, buf, 0, 0); return err },
		"range":     func() error { return unix.SyncFileRange(fd, 0, 4096, unix.SYNC_FILE_RANGE_WRITE) },
		"open": func() error {
			f, err := os.OpenFile(path, os.O_RDWR|os.O_SYNC, 0)
			if err == nil {
				err = f.Close()
			}
			return err
		},
		"setup": func() error {
			if _, _, code := unix.Syscall(unix.SYS_IO_SETUP, 1, 0, 0); code != 0 {
				return code
			}
			return nil
		},
		"environment": func() error { return fmt.Errorf("%q", os.Getenv(variable)) },
	}
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		begun := time.Now()
		if err := calls[lines.Text()](); err != nil {
			fmt.Println(err)
		} else {
			fmt.Println(time.Since(begun))
		}
	}
}

// process is a child with its input and output.
type process struct {
	t     *testing.T
	cmd   *exec.Cmd
	in    interface{ Write([]byte) (int, error) }
	lines *bufio.Scanner
}

func startChild(t *testing.T, d *Disk) *process {
	t.Helper()
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), childVariable+"="+filepath.Join(t.TempDir(), "file"))
	c.Stderr = os.Stderr
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Start(c); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		_ = c.Wait() // killed by some tests
	})
	return &process{t, c, in, bufio.NewScanner(out)}
}

func (p *process) say(call string) {
	p.t.Helper()
	if _, err := p.in.Write([]byte(call + "\n")); err != nil {
		p.t.Fatal(err)
	}
}

func (p *process) hear() string {
	p.t.Helper()
	if !p.lines.Scan() {
		p.t.Fatalf("the child has ended: %v", p.lines.Err())
	}
	return p.lines.Text()
}

// do is what the child printed about a call.
func (p *process) do(call string) string {
	p.t.Helper()
	p.say(call)
	return p.hear()
}

// TestDisk_Delays_EverySync: by which call ever, and nothing else.
func TestDisk_Delays_EverySync(t *testing.T) {
	const delay = 20 * time.Millisecond
	d := New(Profile{Delay: delay}, 1)
	p := startChild(t, d)
	from := time.Now()
	for i, call := range []string{"fsync", "fdatasync", "dsync", "range"} {
		took, err := time.ParseDuration(p.do(call))
		if err != nil || took < delay {
			t.Errorf("%s took %v, %v; want %v at least", call, took, err, delay)
		}
		if n := d.Syncs(); n != int64(i+1) {
			t.Errorf("%d syncs after %s, want %d", n, call, i+1)
		}
	}
	if _, err := time.ParseDuration(p.do("write")); err != nil || d.Syncs() != 4 {
		t.Errorf("a write that is no sync: %v, %d syncs", err, d.Syncs())
	}
	for call, want := range map[string]string{"open": "invalid argument", "setup": "not implemented", "environment": `""`} {
		if got := p.do(call); !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %s", call, got, want)
		}
	}
	all := d.Between(from, time.Now())
	if len(all) != 4 || all[0].Delay != delay || !slices.IsSortedFunc(all, func(a, b Sync) int { return a.Begun.Compare(b.Begun) }) {
		t.Errorf("%v, want four syncs in order, the first delayed by %v", all, delay)
	}
	if all := d.Between(from, all[1].Begun); len(all) != 1 {
		t.Errorf("before the second: %v", all)
	}
	d.Set(Profile{})
	p.do("fsync")
	if all := d.Between(from, time.Now()); len(all) != 5 || all[4].Delay != 0 {
		t.Errorf("after Set: %v", all)
	}
}

// TestDisk_Hang_UntilReleased, and a process that hangs can be killed.
func TestDisk_Hang_UntilReleased(t *testing.T) {
	d := New(Profile{}, 1)
	p, dying := startChild(t, d), startChild(t, d)
	d.Hang()
	d.Hang()
	p.say("fsync")
	dying.say("fdatasync")
	wait.Until(t, "both syncs have begun", func() bool { return d.Syncs() == 2 })
	begun := time.Now()
	if err := dying.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	state, err := dying.cmd.Process.Wait()
	if err != nil || state.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Errorf("%v, %v, want an end by SIGKILL", state, err)
	}
	hung := time.Since(begun)
	d.Release()
	d.Release()
	if took, err := time.ParseDuration(p.hear()); err != nil || took < hung {
		t.Errorf("the sync took %v, %v; the disk hung for %v at least", took, err, hung)
	}
}

// TestDisk_Fill_NoRoom: until there is room again.
func TestDisk_Fill_NoRoom(t *testing.T) {
	d := New(Profile{}, 1)
	d.Fillable = true
	p := startChild(t, d)
	works := func(call string, want bool) {
		t.Helper()
		if got := p.do(call); strings.Contains(got, "no space left") == want {
			t.Errorf("%s: %s, want no space left: %v", call, got, want)
		}
	}
	works("pwrite", true)
	d.Fill()
	works("pwrite", false)
	works("dsync", true)
	works("fsync", true)
	works("write", true)
	d.Empty()
	works("pwrite", true)
	if n := d.Syncs(); n != 2 {
		t.Errorf("%d syncs, want 2", n)
	}
}

// TestDisk_Start_WhatDoesNotExist: the error is the command's.
func TestDisk_Start_WhatDoesNotExist(t *testing.T) {
	if err := New(Profile{}, 1).Start(exec.Command("no-such-program")); err == nil {
		t.Error("no error")
	}
}

// TestDisk_Between_AfterManySyncs: only the newest, in their order.
func TestDisk_Between_AfterManySyncs(t *testing.T) {
	d := New(Profile{Delay: time.Second}, 1)
	for range maxRecent + 10 {
		d.begin()
	}
	all := d.Between(time.Time{}, time.Now().Add(time.Hour))
	if len(all) != maxRecent || d.Syncs() != maxRecent+10 ||
		!slices.IsSortedFunc(all, func(a, b Sync) int { return a.Begun.Compare(b.Begun) }) {
		t.Errorf("%d of %d syncs", len(all), d.Syncs())
	}
}

func TestProfile_ParseAndDraw(t *testing.T) {
	for text, want := range map[string]Profile{"5ms": {Delay: 5 * time.Millisecond}, "0s": {},
		"200µs/tail": {Delay: 200 * time.Microsecond, Tail: true}} {
		p, err := Parse(text)
		if err != nil || p != want || p.String() != text {
			t.Errorf("%s: %v, %v, want %v", text, p, err, want)
		}
	}
	for _, wrong := range []string{"", "5", "-5ms", "tail", "5ms/long"} {
		if p, err := Parse(wrong); err == nil {
			t.Errorf("%q: %v, want an error", wrong, p)
		}
	}
	rng, long := rand.New(rand.NewPCG(1, 1)), 0
	p := Profile{Delay: time.Millisecond, Tail: true}
	for range 100_000 {
		switch p.Draw(rng) {
		case p.Delay:
		case 100 * p.Delay:
			long++
		default:
			t.Fatal("another delay")
		}
	}
	if long < 800 || long > 1200 {
		t.Errorf("%d of 100,000 took long", long)
	}
}
