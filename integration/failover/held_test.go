//go:build slow || privileged

package failover_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/zk-lite/zk-lite/integration/cluster"
	"github.com/zk-lite/zk-lite/internal/testkit/process"
	"github.com/zk-lite/zk-lite/internal/testkit/wait"
)

// holder is a zk-lite process that runs a child.
type holder struct {
	*process.Process
	t    *testing.T
	name string
}

// hold starts zk-lite lock or elect, with a child that meets others in a directory.
func (p *place) hold(e *cluster.Ensemble, name string, args ...string) *holder {
	p.t.Helper()
	self, err := os.Executable()
	if err != nil {
		p.t.Fatal(err)
	}
	args = append(args, "--server", e.ConnectString(), "--timeout", "60s", "--", self)
	started, err := process.Start(process.Command{Args: append([]string{os.Getenv(cluster.BinaryVariable)}, args...),
		Env: []string{childVariable + "=" + p.dir, nameVariable + "=" + name},
		Log: filepath.Join(p.t.TempDir(), "log")})
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() {
		started.Kill()
		if p.t.Failed() {
			p.t.Logf("%s: exit code %d\n%s", name, started.ExitCode(), started.Log())
		}
	})
	return &holder{started, p.t, name}
}

// wait waits for the end and returns the exit code.
func (h *holder) wait() (code int) {
	h.t.Helper()
	if err := h.Wait(wait.Patience); errors.Is(err, process.ErrRunning) {
		h.t.Fatalf("%s: %v", h.name, err)
	}
	return h.ExitCode()
}

// queue is a lock or election as the HTTP API shows it.
type queue struct {
	Length int `json:"length"`
	Holder struct {
		FencingToken string `json:"fencing_token"`
		Session      string `json:"session"`
	} `json:"holder"`
	Leader struct {
		FencingToken string `json:"fencing_token"`
		Session      string `json:"session"`
	} `json:"leader"`
}

// look asks a running server for the holder and the queue, as the majority sees them.
func look(e *cluster.Ensemble, resource string) (q queue, err error) {
	running := e.Running()
	resp, err := http.Get("http://" + running[0].HTTPAddr() + "/v1/" + resource + "?consistency=linearizable")
	if err != nil {
		return q, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return q, fmt.Errorf("%s: %s", resource, resp.Status)
	}
	return q, json.NewDecoder(resp.Body).Decode(&q)
}

// mustShow waits until the servers show a queue of that length, and the first with a token.
func mustShow(t *testing.T, e *cluster.Ensemble, resource string, length int, token string) {
	t.Helper()
	wait.Succeeds(t, resource+" is held with "+token, func() error {
		q, err := look(e, resource)
		if held := q.Holder.FencingToken + q.Leader.FencingToken; err == nil && (held != token || q.Length != length) {
			err = fmt.Errorf("the token is %s, %d wait", held, q.Length)
		}
		return err
	})
}

// checkOrder checks that all have run once, one after the other, with increasing tokens.
func (p *place) checkOrder(names int) {
	p.t.Helper()
	list := p.events()
	if len(list) != 2*names {
		p.t.Fatalf("%d have run and there are the events %v", names, list)
	}
	last, seen := int64(-1), map[string]bool{}
	for i := 0; i < len(list); i += 2 {
		start, end := list[i], list[i+1]
		token, err := strconv.ParseInt(start.token, 10, 64)
		if err != nil || start.what != "start" || end != (event{"done", start.name, start.token}) ||
			seen[start.name] || token <= last {
			p.t.Fatalf("event %d: %v", i, list)
		}
		last, seen[start.name] = token, true
	}
}

// TestFailover_LockAndElectHoldOn: three processes want a lock and three run for election while
// one leader after the other is killed. The holder keeps it, with the same token and the same
// child; the next one's turn comes when that child ends.
func TestFailover_LockAndElectHoldOn(t *testing.T) {
	t.Parallel()
	e := start(t, 3, cluster.Options{})
	places := map[string]*place{"locks/held": {t, t.TempDir()}, "elections/held2": {t, t.TempDir()}}
	var all []*holder
	for _, name := range []string{"a", "b", "c"} {
		all = append(all,
			places["locks/held"].hold(e, name, "lock", "/held", "--session-timeout", "30s"),
			places["elections/held2"].hold(e, name, "elect", "/held2", "--session-timeout", "30s"))
	}
	for resource, p := range places {
		mustShow(t, e, resource, 2, p.await(0).token)
	}
	for range 3 { // each of the clients has lost its server then
		leader := e.Leader()
		leader.Kill()
		e.WaitServing()
		for resource, p := range places {
			if list := p.events(); len(list) != 1 {
				t.Fatalf("%s: the child has ended, or others run: %v", resource, list)
			}
			mustShow(t, e, resource, 2, p.events()[0].token)
		}
		leader.Start()
		e.WaitServing()
	}
	leader := e.Leader()
	for n := range 3 {
		for _, p := range places {
			p.release(p.await(2 * n).name)
		}
		if n == 0 { // while the next one gets what they hold
			leader.Kill()
		}
	}
	for _, h := range all {
		if code := h.wait(); code != 0 {
			t.Errorf("%s ended with %d", h.name, code)
		}
	}
	for _, p := range places {
		p.checkOrder(3)
	}
	leader.Start()
	e.WaitServing()
	e.CheckReplicas()
}

// TestFailover_LockAndElectEndWithTheSession: all servers are gone for longer than the session.
// The children are stopped meanwhile, before any server could grant their locks to others.
func TestFailover_LockAndElectEndWithTheSession(t *testing.T) {
	t.Parallel()
	e := start(t, 3, cluster.Options{})
	lock, election := &place{t, t.TempDir()}, &place{t, t.TempDir()}
	first := lock.hold(e, "a", "lock", "/lost", "--session-timeout", "4s")
	elect := election.hold(e, "a", "elect", "/lost2", "--session-timeout", "4s")
	was, had := lock.await(0), election.await(0)
	e.KillAll()
	// No server runs until both have been stopped: that comes first, whatever the clocks
	// of this machine do.
	if end := lock.await(1); end != (event{"stopped", "a", was.token}) {
		t.Fatalf("events %v, want the lock's end second", lock.events())
	}
	if end := election.await(1); end != (event{"stopped", "a", had.token}) {
		t.Fatalf("events %v, want the leader's end second", election.events())
	}
	const exitLost = 5
	if code := first.wait(); code != exitLost {
		t.Errorf("lock ended with %d: %s", code, first.Log())
	}
	e.StartAll()
	second := lock.hold(e, "b", "lock", "/lost", "--session-timeout", "4s")
	if now := lock.await(2); now.what != "start" || now.name != "b" || !later(was, now) {
		t.Fatalf("events %v, want a start of b with a later token", lock.events())
	}
	lock.release("b")
	if code := second.wait(); code != 0 {
		t.Errorf("the second lock ended with %d", code)
	}
	// The candidate campaigns again by itself, when its first session has ended.
	if now := election.await(2); now.what != "start" || now.name != "a" || !later(had, now) {
		t.Fatalf("events %v, want a start of a with a later token", election.events())
	}
	election.release("a")
	if code := elect.wait(); code != 0 {
		t.Errorf("elect ended with %d", code)
	}
}

// later reports whether the second token is the higher one.
func later(a, b event) bool {
	x, err1 := strconv.ParseInt(a.token, 10, 64)
	y, err2 := strconv.ParseInt(b.token, 10, 64)
	return err1 == nil && err2 == nil && x < y
}
