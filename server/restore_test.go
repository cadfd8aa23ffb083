package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/internal/testkit/tier"
	"github.com/zk-lite/zk-lite/server/backup"
	"github.com/zk-lite/zk-lite/znode"
)

// noise is data that hardly compresses: xorshift from a seed.
func noise(seed, n int) string {
	b := make([]byte, n)
	x := uint64(88172645463325252 + seed)
	for i := range b {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		b[i] = byte(x)
	}
	return string(b)
}

// backupOf returns a backup of a server with these znodes, each of size bytes.
func backupOf(t *testing.T, size int, paths ...string) []byte {
	t.Helper()
	k := newKit(t, nil)
	c := k.connect()
	for i, path := range paths {
		c.create(path, noise(i, size))
	}
	k.log.drain()
	frozen, _ := k.srv.Snapshot()
	defer frozen.Release()
	var b bytes.Buffer
	if err := frozen.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// running returns a kit whose log applies proposals in the background.
func running(t *testing.T) *kit {
	k := newKit(t, nil)
	var all sync.WaitGroup
	k.log.run(&all)
	t.Cleanup(all.Wait)
	t.Cleanup(k.log.stop)
	return k
}

// await waits for a proposal, or until ended is true. It reports whether there is a proposal.
func (l *fakeLog) await(ended func() bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.waiting) == 0 && !ended() {
		l.added.Wait()
	}
	return len(l.waiting) > 0
}

// awaitEnd waits for the end alone.
func (l *fakeLog) awaitEnd(ended func() bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for !ended() {
		l.added.Wait()
	}
}

func (k *kit) restore(file []byte, o backup.RestoreOptions) (backup.Restored, error) {
	return k.srv.Restore(context.Background(), bytes.NewReader(file), o)
}

func TestServer_Restore_Outcomes(t *testing.T) {
	k := running(t)
	file := backupOf(t, 40_000, "/a", "/a/b", "/a/c", "/d", "/e", "/f", "/g", "/h", "/i", "/j", "/k", "/l")
	if len(file) <= state.MaxBackupPart {
		t.Fatalf("%d bytes are one part only", len(file))
	}
	got, err := k.restore(file, backup.RestoreOptions{DryRun: true})
	if err != nil || got.Created != 12 || k.srv.Status().Role == "" {
		t.Errorf("dry: %+v, %v", got, err)
	}
	if got, err = k.restore(file, backup.RestoreOptions{}); err != nil || got.Created != 12 || got.Backup < 12 || got.Zxid <= got.Backup {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err = k.restore(file, backup.RestoreOptions{}); !errors.Is(err, backup.ErrTreeNotEmpty) {
		t.Errorf("a tree with znodes: %v", err)
	}
	if _, err = k.restore(file, backup.RestoreOptions{Key: "x"}); !errors.Is(err, backup.ErrTreeNotEmpty) {
		t.Errorf("found out by the machine: %v", err)
	}
	if got, err = k.restore(backupOf(t, 1, "/a"), backup.RestoreOptions{Replace: true, Key: "k"}); err != nil || got.Deleted != 11 || got.Changed != 1 {
		t.Errorf("%+v, %v", got, err)
	}
	again, err := k.restore(backupOf(t, 1, "/a"), backup.RestoreOptions{Replace: true, Key: "k"})
	if err == nil && again.Repeated { // the same key, but the file has other times
		t.Errorf("result %+v, want an error, or not a repeated restore", again)
	}
	if !errors.Is(err, backup.ErrKeyMismatch) {
		t.Errorf("another file with the key: %v", err)
	}
	before, digest := k.srv.Digest()
	for n, bad := range map[string][]byte{
		"not a snapshot": []byte("hello, world"), "EOF": nil, "unexpected EOF": file[:len(file)/2],
	} {
		if _, err := k.restore(bad, backup.RestoreOptions{Replace: true}); !errors.Is(err, backup.ErrNotBackup) || !strings.Contains(err.Error(), n) {
			t.Errorf("%s: %v", n, err)
		}
	}
	broken := fmt.Errorf("the line is cut")
	if _, err := k.srv.Restore(t.Context(), &brokenReader{bytes.NewReader(file[:100]), broken}, backup.RestoreOptions{Replace: true}); !errors.Is(err, broken) || errors.Is(err, backup.ErrNotBackup) {
		t.Errorf("a broken line: %v", err)
	}
	if zxid, now := k.srv.Digest(); zxid != before || now != digest {
		t.Error("one of them has changed something")
	}
}

type brokenReader struct {
	in  *bytes.Reader
	err error
}

func (r *brokenReader) Read(p []byte) (int, error) {
	if r.in.Len() == 0 {
		return 0, r.err
	}
	return r.in.Read(p)
}

// TestServer_Restore_Torn interrupts an upload between its parts. The error must state the outcome.
func TestServer_Restore_Torn(t *testing.T) {
	tier.Seconds(t)
	file := backupOf(t, 200_000, "/a", "/b", "/c", "/d", "/e")
	commit := (len(file) + state.MaxBackupPart - 1) / state.MaxBackupPart // its step
	other := &state.Command{Op: state.OpRestore, Data: []byte("x"), Restore: state.RestoreCommand{Upload: 77}}
	for _, c := range []struct {
		name   string
		before func(k *kit, step int, cancel func()) // runs before a step is applied
		o      backup.RestoreOptions
		want   error
		done   bool
	}{
		{"by the upload of another server", func(k *kit, step int, _ func()) {
			if step == 0 {
				k.log.from(2, other)
			}
		}, backup.RestoreOptions{}, backup.ErrInProgress, false},
		{"by its end", func(_ *kit, step int, cancel func()) {
			if step == 2 {
				cancel()
			}
		}, backup.RestoreOptions{}, context.Canceled, false},
		{"by a write before the commit", func(k *kit, step int, _ func()) {
			if step == commit {
				k.log.from(2, &state.Command{Op: state.OpCreate, Path: "/x", ACL: znode.OpenACL})
			}
		}, backup.RestoreOptions{}, backup.ErrTreeNotEmpty, false},
		{"by the end after the commit", func(_ *kit, step int, cancel func()) {
			if step == commit {
				cancel()
			}
		}, backup.RestoreOptions{}, &backup.UnknownError{}, true},
		{"not at all", func(*kit, int, func()) {}, backup.RestoreOptions{}, nil, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			k := newKit(t, nil)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var err error
			var ended atomic.Bool
			go func() {
				_, err = k.srv.Restore(ctx, bytes.NewReader(file), c.o)
				ended.Store(true)
				k.log.mu.Lock()
				k.log.added.Broadcast()
				k.log.mu.Unlock()
			}()
			for step := 0; k.log.await(ended.Load); step++ {
				if !ended.Load() {
					c.before(k, step, cancel)
				}
				if ctx.Err() != nil && step == commit && !ended.Load() {
					k.log.awaitEnd(ended.Load) // the caller gives up before the log continues
				}
				k.log.step(1)
			}
			var unknown *backup.UnknownError
			if errors.As(c.want, &unknown) {
				if !errors.As(err, &unknown) {
					t.Errorf("%v, want that it is unknown", err)
				}
			} else if !errors.Is(err, c.want) {
				t.Errorf("%v, want %v", err, c.want)
			}
			if _, code := k.log.machine.Tree().Exists("/e", nil); (code == znode.OK) != c.done {
				t.Errorf("/e: %v", code.Name())
			}
		})
	}
}

// TestServer_Restore_ResultLost: when the state comes by a snapshot, the results of
// parts do not matter, and the commit's is brought by the key.
func TestServer_Restore_ResultLost(t *testing.T) {
	file := backupOf(t, 10, "/a")
	for _, key := range []string{"", "k"} {
		k := newKit(t, nil)
		result := make(chan error, 1)
		go func() {
			got, err := k.srv.Restore(t.Context(), bytes.NewReader(file), backup.RestoreOptions{Key: key})
			if err == nil && (got.Created != 1 || !got.Repeated) {
				err = fmt.Errorf("%+v", got)
			}
			result <- err
		}()
		wait := func() { k.log.await(func() bool { return false }) }
		wait()
		k.log.step(1) // the only part
		wait()
		commit := k.log.take(1)
		lost := commit[0].waiter
		commit[0].waiter = nobody{}
		k.log.apply(1, commit)
		k.srv.Handler().BeginApply()
		lost.Lost()
		k.srv.Handler().EndApply()
		if key != "" {
			wait()
			k.log.step(1)
		}
		var unknown *backup.UnknownError
		if err := <-result; (key == "") != errors.As(err, &unknown) || key != "" && err != nil {
			t.Errorf("key %q: %v", key, err)
		}
	}
}

// The server decoded a backup of a few kilobytes that holds gigabytes of zeros before it checked whether there was room
// for it, even in a dry run.
func TestRegression_Restore_DecodesNoMoreThanThereIsRoomFor(t *testing.T) {
	k := running(t)
	k.log.setLimit(k.srv.Memory().Bytes + 1<<20)
	var file bytes.Buffer
	machine := state.New()
	x := &znode.Txn{Zxid: 1, TimeMillis: 1}
	if _, _, code := machine.Tree().Create(x, &znode.CreateRequest{
		Path: "/zeros", Data: make([]byte, 200<<20), ACL: znode.OpenACL,
	}); code != znode.OK {
		t.Fatalf("create: %s, want OK", code.Name())
	}
	s := machine.Snapshot()
	defer s.Release()
	if err := s.Write(&file); err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	for _, o := range []backup.RestoreOptions{{DryRun: true}, {Replace: true}} {
		runtime.ReadMemStats(&before)
		_, err := k.restore(file.Bytes(), o)
		runtime.ReadMemStats(&after)
		if grown := after.TotalAlloc - before.TotalAlloc; !errors.Is(err, backup.ErrNoRoom) || grown > 150<<20 {
			t.Errorf("%+v: got %v after allocating %d MiB of memory for %d bytes, want ErrNoRoom", o, err, grown>>20, file.Len())
		}
	}
}
