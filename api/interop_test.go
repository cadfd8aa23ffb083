//go:build interop

package api_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/internal/testkit/wait"
)

// waiter is another client's process in the queue of a lock or an election. It prints "queued"
// and "held", waits for a line, and prints "released". Any program that does so can queue in a
// test here; Curator's is started like the others.
type waiter struct {
	testing.TB
	name  string
	in    io.WriteCloser
	words chan string
}

// kazoo starts one with Debian's python3-kazoo at one of the ensemble's ZooKeeper ports.
func (e *ensemble) kazoo(t testing.TB, i int, kind, path string) *waiter {
	return startWaiter(t, "kazoo", "/usr/bin/python3", "../recipes/testdata/kazoo_queue.py",
		e.clientAddress(i), kind, path)
}

// goZookeeper starts one with github.com/go-zookeeper/zk, which has locks only.
func (e *ensemble) goZookeeper(t testing.TB, program string, i int, path string) *waiter {
	return startWaiter(t, "go-zookeeper", program, "queue", e.clientAddress(i), path)
}

func (e *ensemble) clientAddress(i int) string {
	return fmt.Sprintf("127.0.0.1:%d", e.settings[i].ClientPort)
}

// buildGoZookeeper builds the module that has that client, so that this one has not.
func buildGoZookeeper(t testing.TB) (program string) {
	t.Helper()
	program = filepath.Join(t.TempDir(), "gozk")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-o", program, ".")
	cmd.Dir = "../integration/interop/gozk"
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=readonly")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("building gozk: %v\n%s", err, out)
	}
	return program
}

func startWaiter(t testing.TB, name, program string, args ...string) *waiter {
	t.Helper()
	// Not with the test's context, which ends before the clean-up.
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	cmd := exec.CommandContext(ctx, program, args...)
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
	k := &waiter{t, name, in, make(chan string, 8)}
	go func() {
		defer close(k.words)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			k.words <- lines.Text()
		}
	}()
	t.Cleanup(func() {
		defer cancel()
		if t.Failed() {
			cancel() // its turn may never come
		}
		in.Close()
		for range k.words { // Wait closes the pipe: read it to its end first
		}
		if err := cmd.Wait(); err != nil && ctx.Err() == nil {
			t.Errorf("%s: %v", name, err)
		}
	})
	return k
}

// expect waits for a word.
func (k *waiter) expect(want string) {
	k.Helper()
	select {
	case got := <-k.words:
		if got != want {
			k.Fatalf("%s says %q, want %q", k.name, got, want)
		}
	case <-time.After(wait.Patience):
		k.Fatalf("%s does not say %q", k.name, want)
	}
}

// silent checks that the client has printed nothing.
func (k *waiter) silent() {
	k.Helper()
	select {
	case got := <-k.words:
		k.Fatalf("%s says %q before its turn", k.name, got)
	default:
	}
}

func (k *waiter) release() {
	k.Helper()
	if _, err := io.WriteString(k.in, "\n"); err != nil {
		k.Fatal(err)
	}
	k.expect("released")
}

// One lock is queued for by kazoo, go-zookeeper and curl, each at another server, twice,
// and each has its turn in the order in which they came.
func TestInterop_OneLockForAll(t *testing.T) {
	e := shared()
	program := buildGoZookeeper(t)
	target, path := queueURL(t, "locks")
	owner := newCoordinator(t, e.urls[0])
	first := owner.post(target, "").want(200)
	type turn struct {
		who    string
		expect func()
		silent func()
		leave  func()
	}
	process := func(k *waiter) turn {
		k.expect("queued")
		return turn{k.name, func() { k.expect("held") }, k.silent, k.release}
	}
	curl := func(url string) turn {
		c := newCurl(t, url)
		c.queue(target)
		return turn{"curl", c.held, c.silent, c.release}
	}
	var line []turn
	for range 2 {
		line = append(line, process(e.kazoo(t, 1, "lock", path)))
		line = append(line, process(e.goZookeeper(t, program, 2, path)))
		line = append(line, curl(e.urls[0]))
	}
	if n := owner.get(target + "?consistency=linearizable").want(200).field("length"); n != float64(len(line)) {
		t.Fatalf("%v wait", n)
	}
	owner.delete(target + "/" + first.text("ticket")).want(204)
	last := first.text("fencing_token")
	for i, who := range line {
		who.expect()
		for _, next := range line[i+1:] {
			next.silent()
		}
		fence := owner.get(target + "?consistency=linearizable").want(200).text("holder.fencing_token")
		if len(fence) < len(last) || len(fence) == len(last) && fence <= last {
			t.Errorf("%s has the fence %s after %s", who.who, fence, last)
		}
		last = fence
		who.leave()
	}
	eventually(t, "it is free", func() bool {
		return owner.get(target+"?consistency=linearizable").want(200).field("holder") == nil
	})
}

// curl is a shell's client: a session, and the program curl that waits for a lock.
type curl struct {
	*coordinator
	target, ticket string
	granted        chan string // the status of the answer
}

func newCurl(t testing.TB, url string) *curl {
	return &curl{coordinator: newCoordinator(t, url), granted: make(chan string, 1)}
}

// run runs curl, and returns what it prints.
func (c *curl) run(ctx context.Context, args ...string) (string, error) {
	args = append([]string{"-sS", "-H", c.headers[0]}, args...)
	out, err := exec.CommandContext(ctx, "curl", args...).Output()
	return string(out), err
}

// queue takes a position and waits for the turn.
func (c *curl) queue(target string) {
	c.Helper()
	c.target = target
	out, err := c.run(c.Context(), "-X", "POST", c.url+target+"?wait=1ms")
	var position struct {
		Ticket   string
		Position int
	}
	if err == nil {
		err = json.Unmarshal([]byte(out), &position)
	}
	if err != nil || position.Position == 0 {
		c.Fatalf("curl queues: %v in %q", err, out)
	}
	c.ticket = position.Ticket
	go func() {
		status, err := c.run(c.Context(), "-o", "/dev/null", "-w", "%{http_code}", "-X", "POST",
			c.url+target+"?wait=2m&ticket="+position.Ticket)
		if err != nil {
			status = err.Error()
		}
		c.granted <- status
	}()
}

func (c *curl) held() {
	c.Helper()
	select {
	case status := <-c.granted:
		if status != "200" {
			c.Fatalf("curl waits, and gets %s", status)
		}
	case <-time.After(wait.Patience):
		c.Fatal("curl does not get the lock")
	}
}

func (c *curl) silent() {
	c.Helper()
	select {
	case status := <-c.granted:
		c.Fatalf("curl gets %s before its turn", status)
	default:
	}
}

func (c *curl) release() {
	c.Helper()
	status, err := c.run(c.Context(), "-o", "/dev/null", "-w", "%{http_code}", "-X", "DELETE",
		c.url+c.target+"/"+c.ticket)
	if err != nil || status != "204" {
		c.Fatalf("curl releases: %s %v", status, err)
	}
}

// HTTP, kazoo, HTTP and kazoo again wait in one queue, each at another server, and get their turns in order.
func TestInterop_OneQueueWithKazoo(t *testing.T) {
	e := shared()
	for _, x := range []struct{ kind, holder, waiting string }{
		{"lock", "holder", "queue"}, {"election", "leader", "candidates"},
	} {
		target, path := queueURL(t, x.kind+"s")
		target, path = target+x.kind, path+x.kind
		a, b := newCoordinator(t, e.urls[0]), newCoordinator(t, e.urls[2])
		look := func(way string) any {
			return a.get(target + "?consistency=linearizable").want(200).field(way)
		}
		first := a.post(target, "").want(200)
		second := e.kazoo(t, 1, x.kind, path)
		second.expect("queued")
		third := b.post(target+"?wait=1ms", "").want(202).has("position", 2)
		fourth := e.kazoo(t, 0, x.kind, path)
		fourth.expect("queued")
		if n := look("length"); n != 3.0 {
			t.Fatalf("%v wait", n)
		}
		if got := look(x.waiting + ".1.ticket"); got != third.text("ticket") {
			t.Errorf("%v is third", got)
		}
		waiting := b.later("POST", target+"?ticket="+third.text("ticket"), "")
		second.silent()
		a.delete(target + "/" + first.text("ticket")).want(204)
		second.expect("held")
		fence := look(x.holder + ".fencing_token").(string)
		check := func(fence, state string) {
			t.Helper()
			a.post("/v1/fencing-tokens/check", fmt.Sprintf(`{"path": %q, "fencing_token": %q}`, path, fence)).
				has("state", state)
		}
		check(fence, "current")
		check(first.text("fencing_token"), "stale")
		select {
		case got := <-waiting:
			t.Fatalf("it was granted while kazoo holds: %s", got.body)
		default:
		}
		second.release()
		held := (<-waiting).want(200)
		check(fence, "stale")
		check(held.text("fencing_token"), "current")
		fourth.silent()
		b.delete(target + "/" + held.text("ticket")).want(204)
		fourth.expect("held")
		fourth.release()
		eventually(t, "it is free", func() bool { return look(x.holder) == nil })
	}
}
