//go:build interop

package api_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os/exec"
	"testing"
	"time"
)

// kazoo is a Python process in the queue of a lock or an election.
type kazoo struct {
	testing.TB
	in    io.WriteCloser
	words chan string
}

// startKazoo starts one, with Debian's python3-kazoo, at one of the ensemble's
// ZooKeeper ports.
func (e *ensemble) startKazoo(t testing.TB, i int, kind, path string) *kazoo {
	t.Helper()
	// Not with the test's context, which ends before the clean-up.
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	cmd := exec.CommandContext(ctx, "/usr/bin/python3", "../recipes/testdata/kazoo_queue.py",
		fmt.Sprintf("127.0.0.1:%d", e.settings[i].ClientPort), kind, path)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = t.Output()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	k := &kazoo{t, in, make(chan string, 8)}
	go func() {
		defer close(k.words)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			k.words <- lines.Text()
		}
	}()
	t.Cleanup(func() {
		defer cancel()
		in.Close()
		for range k.words { // Wait closes the pipe: read it to its end first
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("python: %v", err)
		}
	})
	return k
}

// expect waits for a word.
func (k *kazoo) expect(want string) {
	k.Helper()
	select {
	case got := <-k.words:
		if got != want {
			k.Fatalf("kazoo says %q, want %q", got, want)
		}
	case <-time.After(20 * time.Second):
		k.Fatalf("kazoo does not say %q", want)
	}
}

// silent checks that kazoo has said nothing.
func (k *kazoo) silent() {
	k.Helper()
	select {
	case got := <-k.words:
		k.Fatalf("kazoo says %q before its turn", got)
	default:
	}
}

func (k *kazoo) release() {
	k.Helper()
	if _, err := io.WriteString(k.in, "\n"); err != nil {
		k.Fatal(err)
	}
	k.expect("released")
}

// HTTP, kazoo, HTTP and kazoo again stand in one queue, each at another server, and
// have their turns one after the other.
func TestInterop_OneQueueWithKazoo(t *testing.T) {
	e := shared()
	for _, x := range []struct{ kind, holder, waiting string }{
		{"lock", "holder", "queue"}, {"election", "leader", "candidates"},
	} {
		target, path := queueURL(t, x.kind+"s")
		target, path = target+x.kind, path+x.kind
		a, b := newCoordinator(t, e.urls[0]), newCoordinator(t, e.urls[2])
		look := func(way string) any {
			return a.get(target + "?consistency=linearizable").is(200).field(way)
		}
		first := a.post(target, "").is(200)
		second := e.startKazoo(t, 1, x.kind, path)
		second.expect("queued")
		third := b.post(target+"?wait=1ms", "").is(202).has("place", 2)
		fourth := e.startKazoo(t, 0, x.kind, path)
		fourth.expect("queued")
		if n := look("length"); n != 3.0 {
			t.Fatalf("%v wait", n)
		}
		if got := look(x.waiting + ".1.ticket"); got != third.text("ticket") {
			t.Errorf("%v is third", got)
		}
		waiting := b.later("POST", target+"?ticket="+third.text("ticket"), "")
		second.silent()
		a.delete(target + "/" + first.text("ticket")).is(204)
		second.expect("held")
		fence := look(x.holder + ".fence").(string)
		check := func(fence, state string) {
			t.Helper()
			a.post("/v1/fences/check", fmt.Sprintf(`{"path": %q, "fence": %q}`, path, fence)).
				has("state", state)
		}
		check(fence, "current")
		check(first.text("fence"), "stale")
		select {
		case got := <-waiting:
			t.Fatalf("it was granted while kazoo holds: %s", got.body)
		default:
		}
		second.release()
		held := (<-waiting).is(200)
		check(fence, "stale")
		check(held.text("fence"), "current")
		fourth.silent()
		b.delete(target + "/" + held.text("ticket")).is(204)
		fourth.expect("held")
		fourth.release()
		eventually(t, "it is free", func() bool { return look(x.holder) == nil })
	}
}
