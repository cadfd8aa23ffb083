package consensus

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/internal/testkit/tier"
	"github.com/zk-lite/zk-lite/internal/testkit/wait"
	"github.com/zk-lite/zk-lite/znode"
)

// A snapshot that cannot be written is reported until one can; the time of the newest is known after a restart.
func TestSnapshots_FaultAndTime(t *testing.T) {
	tier.Seconds(t)
	t.Parallel()
	e := newTestEnsemble(t, 1, func(c *Config) { c.SnapshotCommands = 20 })
	x := e.nodes[0]
	dir := filepath.Join(x.dir, "snapshots")
	move := func(from, to string) {
		t.Helper()
		if err := os.Rename(from, to); err != nil {
			t.Fatal(err)
		}
	}
	move(dir, dir+"-away")
	if err := os.WriteFile(dir, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	e.must(0, "/a")
	e.fill(0, "/a", 50)
	wait.Until(t, "the fault is reported", func() bool { return x.Status().SnapshotFault != "" })
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	move(dir+"-away", dir)
	e.must(0, "/b")
	e.fill(0, "/b", 50)
	wait.Until(t, "a snapshot is written", func() bool {
		return x.Status().SnapshotFault == "" && x.Node.snapshots.last.Load() > 0
	})
	last := x.Node.snapshots.last.Load()
	e.stop(0)
	e.mustStart(0)
	if now := e.nodes[0].Node.snapshots.last.Load(); now < last {
		t.Errorf("the newest snapshot is of %d, and was of %d", now, last)
	}
}

// A multi is one command to snapCount. A bulk load in multis left a log of any length to be replayed.
func TestSnapshots_BulkLoad_IsWorthOne(t *testing.T) {
	tier.Seconds(t)
	t.Parallel()
	e := newTestEnsemble(t, 1, nil)
	multi := &state.Command{Op: state.OpMulti}
	e.must(0, "/a")
	data := bytes.Repeat([]byte("0123456789abcdef"), 1<<10)
	for range 32 {
		multi.Ops = append(multi.Ops, state.Command{Op: state.OpSetData, Path: "/a", Data: data, Version: znode.AnyVersion})
	}
	load := func() {
		t.Helper()
		if o := e.await("a multi", e.propose(0, multi)); o.Code != znode.OK {
			t.Fatalf("a multi: %v, want OK", o.Code)
		}
	}
	size := int64(len(multi.Ops) * len(data))
	for range snapshotBytes/size - 1 {
		load()
	}
	if last := e.nodes[0].Node.snapshots.last.Load(); last != 0 {
		t.Fatal("a snapshot was written before the log had snapshotBytes")
	}
	load()
	load()
	wait.Until(t, "a snapshot is written", func() bool { return e.nodes[0].Node.snapshots.last.Load() > 0 })
	if e.nodes[0].Node.snapshots.size.Load() == 0 {
		t.Error("the size of the snapshot is not known")
	}
}

// slowWriter takes as long for each write.
type slowWriter time.Duration

func (w slowWriter) Write(b []byte) (int, error) {
	<-time.After(time.Duration(w))
	return len(b), nil
}

// A snapshot pauses for three times as long as it works, not much where it was the disk that took so long, not when the
// next one is due, and ends with the server.
func TestSnapshots_Pauses(t *testing.T) {
	for each, want := range map[time.Duration]time.Duration{
		time.Millisecond / 2:  10*time.Millisecond/2 + 5*3*time.Millisecond, // every second one is followed by a pause
		10 * time.Millisecond: 10 * 40 * time.Millisecond,
		time.Second:           10 * 1100 * time.Millisecond,
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, stop := context.WithCancel(t.Context())
			n := &Node{ctx: ctx, snapshots: &snapshots{wanted: make(chan struct{}, 1)}}
			u := &throttled{Writer: slowWriter(each), n: n, began: time.Now()}
			begin := time.Now()
			for range 10 {
				if n, err := u.Write(make([]byte, 100)); n != 100 || err != nil {
					t.Fatalf("%d bytes, %v", n, err)
				}
			}
			if took := time.Since(begin); took != want {
				t.Errorf("ten writes of %v each took %v, want %v", each, took, want)
			}
			n.snapshots.wanted <- struct{}{}
			begin = time.Now()
			for range 10 {
				_, _ = u.Write(nil)
			}
			if took := time.Since(begin); took != 10*each {
				t.Errorf("when the next snapshot was due ten writes of %v each took %v", each, took)
			}
			<-n.snapshots.wanted
			stop()
			u.began = time.Now().Add(-time.Second)
			if _, err := u.Write(nil); !errors.Is(err, context.Canceled) {
				t.Errorf("a write when the server has stopped: %v", err)
			}
		})
	}
}

// The larger the state, the more log is worth a snapshot; snapCount counts commands as ever.
func TestSnapshotPays(t *testing.T) {
	const none, mib = 0, int64(1) << 20
	f := &fsm{n: &Node{cfg: Config{SnapshotCommands: 1000}, snapshots: &snapshots{}}}
	for _, c := range []struct {
		commands, bytes, memory, last int64
		pays                          bool
	}{
		{999, none, none, none, false},
		{1000, none, none, none, true},
		{1000, none, 64 * mib, none, false}, // counted for each 64 MiB
		{2000, none, 64 * mib, none, true},
		{1, 32*mib - 1, none, none, false},
		{1, 32 * mib, none, none, true},
		{1, 32 * mib, 100 * mib, 10 * mib, true},
		{1, 32 * mib, 100 * mib, 90 * mib, false}, // of data that cannot be compressed
		{1, 90 * mib, 100 * mib, 90 * mib, true},
		{1, 255 * mib, 1024 * mib, 90 * mib, false},
		{1, 256 * mib, 1024 * mib, 90 * mib, true},
	} {
		f.commands, f.bytes = c.commands, c.bytes
		f.n.snapshots.size.Store(c.last)
		if got := f.snapshotPays(c.memory); got != c.pays {
			t.Errorf("%+v: %v, want %v", c, got, c.pays)
		}
	}
}
