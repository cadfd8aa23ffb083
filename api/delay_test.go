package api_test

import (
	"fmt"
	"testing"
	"time"

	zkclient "github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/internal/testkit/wait"
	"github.com/zk-lite/zk-lite/recipes"
)

// httpDelay is the lock delay of the tests.
const httpDelay = 800 * time.Millisecond

// After a holder that was lost, not after a release, others wait for its lock delay, at whatever server they ask, and
// answers show how much of it is left.
func TestLockDelay_HTTP(t *testing.T) {
	for _, kind := range []struct{ name, holder, waiters string }{
		{"locks", "holder", "queue"}, {"elections", "leader", "candidates"},
	} {
		t.Run(kind.name, func(t *testing.T) {
			target, path := queueURL(t, kind.name)
			urls := shared().urls
			alice, bob := newCoordinator(t, urls[0]), newCoordinator(t, urls[1])
			ticket := alice.post(target+"?lock_delay=1h", "").want(200).text("ticket")
			alice.delete(target + "/" + ticket).want(204)
			ticket = alice.post(target+"?lock_delay=1h", "").want(200).text("ticket")
			alice.post(target+"?lock_delay=1h&ticket="+ticket, "").want(200).has("ticket", ticket)
			alice.get(target).want(200).has("lock_delay.ticket", ticket).has("lock_delay.delay", "1h0m0s").
				has("lock_delay.remaining", nil).has(kind.holder+".ticket", ticket)
			bob.post(target+"?wait=0s", "").want(409).has("title", "held by another")
			alice.delete("/v1/sessions/" + alice.id).want(204)
			bob.post(target+"?wait=0s", "").want(409).has("title", "lock delay").contains(ticket)
			waiting := bob.post(target+"?wait=10ms", "").want(202).has("position", 1.0).has("ahead.0", ticket)
			waiting.text("lock_delay")
			seen := bob.get(target+"?consistency=linearizable").want(200).has(kind.holder, nil).has("length", 1.0).
				has(kind.waiters+".0.ticket", waiting.text("ticket"))
			if left, err := time.ParseDuration(seen.text("lock_delay.remaining")); err != nil || left > time.Hour {
				t.Errorf("remaining: %v, %v, want an hour at most", left, err)
			}
			token := seen.text(kind.waiters + ".0.fencing_token")
			check := `{"path": "` + path + `", "fencing_token": "` + token + `"}`
			bob.post("/v1/fencing-tokens/check", check).want(200).has("state", "waiting")
			bob.delete("/v1/znodes" + path + "/lock-delay").want(204)
			granted := bob.at(urls[2]).post(target+"?wait=30s&ticket="+waiting.text("ticket"), "").want(200)
			granted.has("fencing_token", token)
			bob.post("/v1/fencing-tokens/check", check).want(200).has("state", "current")
			bob.get(target).want(200).has("lock_delay", nil).has(kind.holder+".ticket", granted.text("ticket"))
			bob.delete(target + "/" + granted.text("ticket")).want(204)

			carol := newCoordinator(t, urls[0])
			carol.post(target+"?lock_delay=800ms", "").want(200)
			since := time.Now()
			carol.delete("/v1/sessions/" + carol.id).want(204)
			granted = bob.post(target+"?wait=30s", "").want(200)
			if took := time.Since(since); took < httpDelay {
				t.Errorf("granted after %v, want %v at least", took, httpDelay)
			}
			bob.delete(target + "/" + granted.text("ticket")).want(204)
		})
	}
}

// A stream of an election has no leader during the delay.
func TestLockDelay_Observed(t *testing.T) {
	target, path := queueURL(t, "elections")
	alice, bob := newCoordinator(t, shared().urls[0]), newCoordinator(t, shared().urls[1])
	alice.post(target+"?lock_delay=1h", "alice").want(200)
	observer := observeElection(newClient(t, shared().urls[0]), target) // which has what alice was told
	observer.next("alice")
	next := bob.later("POST", target+"?wait=30s", "bob")
	wait.Until(t, "bob waits", func() bool { return len(bob.get(target).field("candidates").([]any)) == 1 })
	alice.delete("/v1/sessions/" + alice.id).want(204)
	observer.next("")
	bob.delete("/v1/znodes" + path + "/lock-delay").want(204) // now that it was seen
	ticket := (<-next).want(200).text("ticket")
	observer.next("bob")
	bob.delete(target + "/" + ticket).want(204)
}

// Waiters over HTTP and those of the Go recipes respect each other's delay.
func TestLockDelay_WithRecipes(t *testing.T) {
	target, path := queueURL(t, "locks")
	alice, bob := newCoordinator(t, shared().urls[0]), newCoordinator(t, shared().urls[1])
	connect := func() *zkclient.Client {
		c, err := zkclient.Connect(t.Context(), fmt.Sprintf("127.0.0.1:%d", shared().settings[0].ClientPort))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() }) // the test may have closed it
		return c
	}
	alice.post(target+"?lock_delay=800ms", "").want(200)
	c := connect()
	since := time.Now()
	alice.delete("/v1/sessions/" + alice.id).want(204)
	if _, err := recipes.NewMutex(c, path, recipes.WithLockDelay(httpDelay)).Lock(t.Context()); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(since); took < httpDelay {
		t.Errorf("the recipe has the lock after %v, want %v at least", took, httpDelay)
	}
	since = time.Now()
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	ticket := bob.post(target+"?wait=30s", "").want(200).text("ticket")
	if took := time.Since(since); took < httpDelay {
		t.Errorf("the lock is granted over HTTP after %v, want %v at least", took, httpDelay)
	}
	bob.delete(target + "/" + ticket).want(204)
}

// What is no mark is reported.
func TestLockDelay_NoMark(t *testing.T) {
	target, path := queueURL(t, "locks")
	c := newCoordinator(t, shared().urls[0])
	c.post("/v1/znodes"+path+"/lock-delay?parents=true", "garbage").want(201)
	c.post(target, "").want(409).has("title", "no lock delay").has("path", path+"/lock-delay")
	c.post(target+"?lock_delay=2h", "").problem(400, "BADARGUMENTS").has("parameter", "lock_delay")
}
