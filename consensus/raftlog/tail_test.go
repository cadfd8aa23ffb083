package raftlog_test

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/zk-lite/zk-lite/consensus/raftlog"
	"github.com/zk-lite/zk-lite/consensus/raftlog/faultfs"
)

const tailFileSize = 64 << 10

// fullTail is a tail of a durable file of tailFileSize bytes, and what is in it.
func fullTail(t *testing.T, f *faultfs.FS, rng *rand.Rand) (raftlog.File, []byte) {
	t.Helper()
	content := make([]byte, tailFileSize)
	for i := range content {
		content[i] = byte(rng.Uint32())
	}
	file, err := f.Create("/file")
	must(t, err)
	_, err = file.WriteAt(content, 0)
	must(t, err)
	must(t, file.Sync())
	must(t, f.SyncDir("/"))
	f.SetDirect(true)
	direct, err := f.OpenDirect("/file")
	must(t, err)
	return raftlog.NewTail(file, direct), content
}

// Goal: a tail reads like a file, wherever it was written and however syncs overlap with that, and
// what a sync took is there after a power cut. Method: random writes, mostly at the end, and reads
// beside an array; syncs all the time on other goroutines; then the power goes.
func TestTail_RandomWrites_ReadsLikeAFile(t *testing.T) {
	for seed := range uint64(15) {
		rng := rand.New(rand.NewPCG(seed, 3))
		f := faultfs.New(seed, 512)
		tail, content := fullTail(t, f, rng)
		known := make([]bool, len(content)) // bytes that were written
		stop := make(chan struct{})
		var syncs sync.WaitGroup
		for range 2 {
			syncs.Go(func() {
				for {
					select {
					case <-stop:
						return
					default:
					}
					if err := tail.Datasync(); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		end := rng.IntN(tailFileSize / 2)
		first := end
		for range 300 {
			off := end
			switch rng.IntN(20) {
			case 0:
				off = max(first, end-rng.IntN(20000)) // taken back, with all that follows
				clear(known[off:])
			case 1:
				off = min(end+rng.IntN(5000), tailFileSize)
			}
			n := min(rng.IntN(1+rng.IntN(3000)), tailFileSize-off)
			b := make([]byte, n)
			for i := range b {
				b[i] = byte(rng.Uint32())
				known[off+i] = true
			}
			_, err := tail.WriteAt(b, int64(off))
			must(t, err)
			copy(content[off:], b)
			end = off + n
			from := rng.IntN(tailFileSize)
			got := make([]byte, rng.IntN(tailFileSize-from))
			_, err = tail.ReadAt(got, int64(from))
			must(t, err)
			compareKnown(t, seed, got, content, known, from)
		}
		close(stop)
		syncs.Wait()
		must(t, tail.Datasync())
		f.PowerCut()
		f.PowerOn()
		compareKnown(t, seed, f.ReadFile("/file"), content, known, 0)
		if t.Failed() {
			return
		}
	}
}

func compareKnown(t *testing.T, seed uint64, got, content []byte, known []bool, from int) {
	t.Helper()
	for i, c := range got {
		if known[from+i] && c != content[from+i] {
			t.Fatalf("seed %d: byte %d is %#x, want %#x", seed, from+i, c, content[from+i])
		}
	}
}

// While the disk hangs, what is on its way and what came later are both read, and nobody waits.
func TestTail_HangingDisk_ReadsWhatIsOnItsWay(t *testing.T) {
	f := faultfs.New(1, 512)
	tail, content := fullTail(t, f, rand.New(rand.NewPCG(1, 1)))
	hangs, heal := make(chan struct{}), make(chan struct{})
	f.SetFault(func(op faultfs.Op, _ string) error {
		if op == faultfs.OpSync {
			close(hangs)
			<-heal
		}
		return nil
	})
	write := func(b []byte, off int64) {
		_, err := tail.WriteAt(b, off)
		must(t, err)
		copy(content[off:], b)
	}
	write(bytes.Repeat([]byte{1}, 10000), 5000)
	synced := make(chan error, 1)
	go func() { synced <- tail.Datasync() }()
	<-hangs
	write(bytes.Repeat([]byte{2}, 10000), 15000)
	got := make([]byte, 40000)
	_, err := tail.ReadAt(got, 0)
	must(t, err)
	if !bytes.Equal(got[:25000], content[:25000]) {
		t.Error("reads something else than what was written")
	}
	close(heal)
	must(t, <-synced)
}

// A write that fails may have left anything, so no later sync may succeed: not even one of bytes that
// have nothing to do with it.
func TestTail_FailedWrite_FailsEverySync(t *testing.T) {
	f := faultfs.New(1, 512)
	tail, _ := fullTail(t, f, rand.New(rand.NewPCG(1, 1)))
	var disk atomic.Bool
	f.SetFault(func(op faultfs.Op, _ string) error {
		if op == faultfs.OpSync && disk.Load() {
			return errDisk
		}
		return nil
	})
	disk.Store(true)
	b := bytes.Repeat([]byte{1}, 6000)
	_, err := tail.WriteAt(b, 100)
	must(t, err)
	if err := tail.Datasync(); !errors.Is(err, errDisk) {
		t.Fatalf("the sync returns %v, want the disk's error", err)
	}
	got := make([]byte, len(b))
	_, err = tail.ReadAt(got, 100)
	must(t, err)
	if !bytes.Equal(got, b) {
		t.Error("what could not be written is not read any more")
	}
	disk.Store(false)
	if _, err := tail.WriteAt(b, 50000); !errors.Is(err, errDisk) {
		t.Errorf("the next write returns %v, want the error of the sync", err)
	}
	if err := tail.Datasync(); !errors.Is(err, errDisk) {
		t.Errorf("the next sync returns %v, want the error of the first", err)
	}
}

// A disk that is far behind makes writers wait before the memory is full.
func TestTail_SlowDisk_BoundsMemory(t *testing.T) {
	f := faultfs.New(1, 4096)
	const size = 2*raftlog.MaxTail + 4<<20
	file, err := f.Create("/file")
	must(t, err)
	_, err = file.WriteAt(make([]byte, size), 0)
	must(t, err)
	must(t, file.Sync())
	f.SetDirect(true)
	direct, err := f.OpenDirect("/file")
	must(t, err)
	tail := raftlog.NewTail(file, direct)
	hangs, heal := make(chan struct{}, 100), make(chan struct{})
	var written atomic.Int64
	f.SetFault(func(op faultfs.Op, _ string) error {
		if op == faultfs.OpSync {
			hangs <- struct{}{}
			<-heal
		}
		return nil
	})
	done := make(chan error, 1)
	go func() {
		b := make([]byte, 1<<20)
		for off := int64(0); off < size; off += int64(len(b)) {
			if _, err := tail.WriteAt(b, off); err != nil {
				done <- err
				return
			}
			written.Add(int64(len(b)))
		}
		done <- tail.Datasync()
	}()
	<-hangs // nobody asked for a sync: it is a write that waits
	if n := written.Load(); n > raftlog.MaxTail+1<<20 {
		t.Errorf("%d bytes were taken while the disk hangs", n)
	}
	close(heal)
	must(t, <-done)
}
