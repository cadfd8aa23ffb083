package disk

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// imageSize is sparse: unwritten parts take no memory.
const imageSize = 2 << 30

// ext4 is a file system of the kernel's on a Disk, of which it sees one file as a block
// device.
type ext4 struct {
	image string        // on the Disk
	loop  string        // the block device
	dir   string        // where it is mounted
	off   chan struct{} // closed when the power goes
}

// flushTime is how long the disk takes to bring its cache to the medium, so that a power cut
// finds something in it.
const flushTime = 2 * time.Millisecond

// NewExt4 mounts an empty ext4 on a new Disk. So the files of a server are the kernel's, which
// can write them past its page cache, and a power cut affects what the kernel has asked of its
// disk. Faults see no files but "image". It needs e2fsprogs, and permission to make a loop
// device.
func NewExt4(t testing.TB, seed uint64) *Disk {
	t.Helper()
	d := New(t, seed)
	x := &ext4{image: filepath.Join(d.dir, "image"), dir: t.TempDir()}
	err := os.WriteFile(x.image, nil, 0o600)
	if err == nil {
		err = os.Truncate(x.image, imageSize)
	}
	if err == nil {
		_, err = run("mkfs.ext4", "-q", "-F", x.image)
	}
	if err == nil {
		err = x.attach()
	}
	if err != nil {
		t.Fatalf("an ext4 of the test's own: %v", err)
	}
	t.Cleanup(func() {
		if err := x.detach(); err != nil {
			t.Errorf("unmounting an ext4: %v", err)
		}
	})
	d.ext4 = x
	d.Settle()
	x.powerOn(d)
	return d
}

// powerOn permits flushes to take their time, until the power fails: then everything fails.
func (x *ext4) powerOn(d *Disk) {
	off := make(chan struct{})
	x.off = off
	d.SetFault(func(op Op, _ string) syscall.Errno {
		if op == OpSync {
			select {
			case <-off:
			case <-time.After(flushTime):
			}
		}
		select {
		case <-off:
			return syscall.EIO
		default:
			return 0
		}
	})
}

// powerOff makes everything fail, including operations that have begun.
func (x *ext4) powerOff() {
	select {
	case <-x.off:
	default:
		close(x.off)
	}
}

func (x *ext4) attach() (err error) {
	if x.loop, err = run("losetup", "--find", "--show", x.image); err != nil {
		return err
	}
	if err = syscall.Mount(x.loop, x.dir, "ext4", 0, ""); err != nil {
		_, detached := run("losetup", "-d", x.loop)
		return errors.Join(fmt.Errorf("mounting %s as ext4: %w", x.loop, err), detached)
	}
	return nil
}

func (x *ext4) detach() error {
	err := syscall.Unmount(x.dir, 0)
	_, detached := run("losetup", "-d", x.loop)
	return errors.Join(err, detached)
}

// cut discards what is not on the disk, once it has no power: nothing that is still in the
// kernel reaches it. Then the file system is mounted again, and replays its journal.
func (x *ext4) cut(d *Disk) (Loss, error) {
	d.PowerOff()
	err := x.detach()
	l := d.cut()
	x.powerOn(d)
	return l, errors.Join(err, x.attach())
}

// run runs a program and returns the line that it prints.
func run(name string, args ...string) (string, error) {
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out)), nil
}
