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

const directFileSize = 64 << 10

// fullDirectWriter is a direct writer to a durable file of directFileSize bytes, and the file's content.
func fullDirectWriter(t *testing.T, f *faultfs.FS, rng *rand.Rand) (raftlog.File, []byte) {
	t.Helper()
	content := make([]byte, directFileSize)
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
	return raftlog.NewDirectWriter(file, direct), content
}

// Goal: a direct writer reads like a file, wherever it was written and however syncs overlap with that, and
// what a sync took is there after a power cut. Method: random writes, mostly at the end, and reads
// beside an array; syncs all the time on other goroutines; then the power goes.
func TestDirectWriter_RandomWrites_ReadsLikeAFile(t *testing.T) {
	for seed := range uint64(15) {
		rng := rand.New(rand.NewPCG(seed, 3))
		f := faultfs.New(seed, 512)
		w, content := fullDirectWriter(t, f, rng)
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
					if err := w.Datasync(); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		end := rng.IntN(directFileSize / 2)
		first := end
		for range 300 {
			off := end
			switch rng.IntN(20) {
			case 0:
				off = max(first, end-rng.IntN(20000)) // taken back, with all that follows
				clear(known[off:])
			case 1:
				off = min(end+rng.IntN(5000), directFileSize)
			}
			n := min(rng.IntN(1+rng.IntN(3000)), directFileSize-off)
			b := make([]byte, n)
			for i := range b {
				b[i] = byte(rng.Uint32())
				known[off+i] = true
			}
			_, err := w.WriteAt(b, int64(off))
			must(t, err)
			copy(content[off:], b)
			end = off + n
			from := rng.IntN(directFileSize)
			got := make([]byte, rng.IntN(directFileSize-from))
			_, err = w.ReadAt(got, int64(from))
			must(t, err)
			compareKnown(t, seed, got, content, known, from)
		}
		close(stop)
		syncs.Wait()
		must(t, w.Datasync())
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

// While the disk hangs, the bytes on their way and those that came later are both read, without waiting.
func TestDirectWriter_HangingDisk_ReadsWhatIsOnItsWay(t *testing.T) {
	f := faultfs.New(1, 512)
	w, content := fullDirectWriter(t, f, rand.New(rand.NewPCG(1, 1)))
	hangs, heal := make(chan struct{}), make(chan struct{})
	f.SetFault(func(op faultfs.Op, _ string) error {
		if op == faultfs.OpSync {
			close(hangs)
			<-heal
		}
		return nil
	})
	write := func(b []byte, off int64) {
		_, err := w.WriteAt(b, off)
		must(t, err)
		copy(content[off:], b)
	}
	write(bytes.Repeat([]byte{1}, 10000), 5000)
	synced := make(chan error, 1)
	go func() { synced <- w.Datasync() }()
	<-hangs
	write(bytes.Repeat([]byte{2}, 10000), 15000)
	got := make([]byte, 40000)
	_, err := w.ReadAt(got, 0)
	must(t, err)
	if !bytes.Equal(got[:25000], content[:25000]) {
		t.Error("reads something else than what was written")
	}
	close(heal)
	must(t, <-synced)
}

// A write that fails may have left anything, so no later sync may succeed: not even one of bytes that
// have nothing to do with it.
func TestDirectWriter_FailedWrite_FailsEverySync(t *testing.T) {
	f := faultfs.New(1, 512)
	w, _ := fullDirectWriter(t, f, rand.New(rand.NewPCG(1, 1)))
	var disk atomic.Bool
	f.SetFault(func(op faultfs.Op, _ string) error {
		if op == faultfs.OpSync && disk.Load() {
			return errDisk
		}
		return nil
	})
	disk.Store(true)
	b := bytes.Repeat([]byte{1}, 6000)
	_, err := w.WriteAt(b, 100)
	must(t, err)
	if err := w.Datasync(); !errors.Is(err, errDisk) {
		t.Fatalf("the sync returns %v, want the disk's error", err)
	}
	got := make([]byte, len(b))
	_, err = w.ReadAt(got, 100)
	must(t, err)
	if !bytes.Equal(got, b) {
		t.Error("what could not be written is not read any more")
	}
	disk.Store(false)
	if _, err := w.WriteAt(b, 50000); !errors.Is(err, errDisk) {
		t.Errorf("the next write returns %v, want the error of the sync", err)
	}
	if err := w.Datasync(); !errors.Is(err, errDisk) {
		t.Errorf("the next sync returns %v, want the error of the first", err)
	}
}

// A very slow disk makes writers wait before the memory is full.
func TestDirectWriter_SlowDisk_BoundsMemory(t *testing.T) {
	f := faultfs.New(1, 4096)
	const size = 2*raftlog.MaxUnwritten + 4<<20
	file, err := f.Create("/file")
	must(t, err)
	_, err = file.WriteAt(make([]byte, size), 0)
	must(t, err)
	must(t, file.Sync())
	f.SetDirect(true)
	direct, err := f.OpenDirect("/file")
	must(t, err)
	w := raftlog.NewDirectWriter(file, direct)
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
			if _, err := w.WriteAt(b, off); err != nil {
				done <- err
				return
			}
			written.Add(int64(len(b)))
		}
		done <- w.Datasync()
	}()
	<-hangs // without a sync: a write waits
	if n := written.Load(); n > raftlog.MaxUnwritten+1<<20 {
		t.Errorf("%d bytes were taken while the disk hangs", n)
	}
	close(heal)
	must(t, <-done)
}
