//go:build interop

package recipes_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os/exec"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/recipes"
)

// kazoo is a Python process in the queue of a lock or an election.
type kazoo struct {
	k     *kit
	in    io.WriteCloser
	words <-chan string
}

// startKazoo starts one, with Debian's python3-kazoo.
func (k *kit) startKazoo(kind, path string) *kazoo {
	k.Helper()
	// Not with the test's context, which ends before the clean-up.
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	cmd := exec.CommandContext(ctx, "/usr/bin/python3", "testdata/kazoo_queue.py", shared.Address, kind, path)
	in, err := cmd.StdinPipe()
	k.must(err)
	out, err := cmd.StdoutPipe()
	k.must(err)
	cmd.Stderr = k.Output()
	k.must(cmd.Start())
	words := make(chan string, 8)
	go func() {
		defer close(words)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			words <- lines.Text()
		}
	}()
	k.Cleanup(func() {
		defer cancel()
		in.Close()
		for range words { // Wait closes the pipe: read it to its end first
		}
		if err := cmd.Wait(); err != nil {
			k.Errorf("python: %v", err)
		}
	})
	return &kazoo{k, in, words}
}

func (z *kazoo) expect(want string) {
	z.k.Helper()
	if got := receive(z.k, want, z.words); got != want {
		z.k.Fatalf("kazoo says %q, want %q", got, want)
	}
}

// expectBoth waits for words that may come in any order.
func (z *kazoo) expectBoth(a, b string) {
	z.k.Helper()
	if receive(z.k, a, z.words) == a {
		z.expect(b)
	} else {
		z.expect(a)
	}
}

func (z *kazoo) release() {
	z.k.Helper()
	_, err := io.WriteString(z.in, "\n")
	z.k.must(err)
	z.expect("released")
}

// Go, kazoo and Go again wait in one queue, and have the lock one after the other.
func TestInterop_Mutex_WithKazooLock(t *testing.T) {
	k := newKit(t)
	m := recipes.NewMutex(k.connect(), k.path("m"))
	first := k.lock(m)
	z := k.startKazoo("lock", k.path("m"))
	z.expect("queued")
	last := k.queue(recipes.NewMutex(k.connect(), k.path("m")), 3)
	list, err := m.Participants(k.ctx)
	k.must(err)
	if string(list[1].Data) != "kazoo" {
		t.Errorf("the second in the queue is %q, want kazoo", list[1].Data)
	}
	k.must(first.Release(k.ctx))
	z.expect("held")
	if len(last) != 0 {
		t.Fatal("Go has the lock together with kazoo, want kazoo alone")
	}
	z.release()
	got := receive(k, "the last grant", last)
	k.must(got.err)
	k.must(got.v.Release(k.ctx))
}

// The same with kazoo first.
func TestInterop_Mutex_KazooHolds(t *testing.T) {
	k := newKit(t)
	z := k.startKazoo("lock", k.path("m"))
	z.expectBoth("queued", "held")
	m := recipes.NewMutex(k.connect(), k.path("m"))
	_, err := m.TryLock(k.ctx)
	k.wantErr(err, recipes.ErrNotAcquired)
	waiting := k.queue(m, 2)
	z.release()
	got := receive(k, "the grant", waiting)
	k.must(got.err)
	k.must(got.v.Release(k.ctx))
}

// Candidates in Go and kazoo lead one after the other, and Go's observers see both.
func TestInterop_Election_WithKazooElection(t *testing.T) {
	k := newKit(t)
	e, c := k.candidate(k.connect(), "go", 1)
	first := k.term(c)
	z := k.startKazoo("election", k.path("e"))
	z.expect("queued")
	_, last := k.candidate(k.connect(), "go", 3)
	k.must(first.Resign(k.ctx))
	z.expect("held")
	leader, err := e.Leader(k.ctx)
	k.must(err)
	if string(leader.Data) != "kazoo" || len(last) != 0 {
		t.Errorf("the leader is %q, and %d others lead; want kazoo alone", leader.Data, len(last))
	}
	z.release()
	k.must(k.term(last).Resign(k.ctx))
}

// A lock delay does not disturb kazoo, which does not wait for it.
func TestInterop_LockDelay_WithKazooLock(t *testing.T) {
	k := newKit(t)
	c := k.connect()
	k.lock(recipes.NewMutex(c, k.path("m"), recipes.WithLockDelay(time.Hour)))
	z := k.startKazoo("lock", k.path("m"))
	z.expect("queued")
	k.must(c.Close())
	z.expect("held")
	z.release()
	_, err := recipes.NewMutex(k.connect(), k.path("m")).TryLock(k.ctx)
	if _, ok := errors.AsType[*recipes.DelayError](err); !ok {
		t.Errorf("Go after kazoo: %v, want the delay of the first holder", err)
	}
}
