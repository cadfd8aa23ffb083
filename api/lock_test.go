package api_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/internal/testkit/tier"
	"github.com/zk-lite/zk-lite/server"
	"github.com/zk-lite/zk-lite/server/changes"
)

// coordinator is a client with a session of its own. It has the longest timeout that there is: between its requests
// nothing keeps the session alive.
type coordinator struct {
	*client
	id string
}

func newCoordinator(t testing.TB, url string) *coordinator {
	t.Helper()
	c := newClient(t, url)
	a := c.post("/v1/sessions", `{"timeout": "1m"}`).want(201)
	proof := "Zk-Session: " + a.text("id") + "." + a.text("secret")
	t.Cleanup(func() {
		// Not with the test's context, which has ended by now.
		req, err := http.NewRequestWithContext(context.Background(), http.MethodDelete,
			url+"/v1/sessions/"+a.text("id"), nil)
		if err != nil {
			t.Error(err)
			return
		}
		req.Header.Set("Zk-Session", strings.TrimPrefix(proof, "Zk-Session: "))
		if resp, err := http.DefaultClient.Do(req); err == nil {
			resp.Body.Close()
		}
	})
	return &coordinator{c.with(proof), a.text("id")}
}

// queueURL is a lock or an election of the test's own.
func queueURL(t testing.TB, kind string) (target, path string) {
	path = "/queues/" + uniqueName(t)
	return "/v1/" + kind + path, path
}

// later sends a request and gives the answer when it comes.
func (c *client) later(method, target, body string) <-chan *answer {
	done := make(chan *answer, 1)
	go func() {
		defer close(done)
		done <- c.do(method, target, body)
	}()
	return done
}

func TestLock_QueuesInOrder(t *testing.T) {
	e := shared()
	target, path := queueURL(t, "locks")
	a, b, x := newCoordinator(t, e.urls[0]), newCoordinator(t, e.urls[1]), newCoordinator(t, e.urls[2])
	a.get(target).want(200).has("holder", nil).has("length", 0)
	g := a.post(target, "first").want(200)
	if !strings.HasPrefix(g.text("ticket"), "_c_") || g.text("path") != path+"/"+g.text("ticket") ||
		!strings.HasSuffix(g.text("ticket"), "-lock-0000000000") {
		t.Errorf("the grant is %s, want a protected ticket of number 0 and its path", g.body)
	}
	w := b.post(target+"?wait=10ms", "\xff").want(202).has("position", 1).has("ahead.0", g.text("ticket"))
	y := x.post(target+"?wait=1ms", "").want(202).has("position", 2).has("ahead.1", w.text("ticket"))
	l := a.get(target + "?consistency=linearizable").want(200)
	l.has("holder.ticket", g.text("ticket")).has("holder.session", a.id).has("holder.data", "first")
	l.has("holder.fencing_token", g.text("fencing_token")).has("length", 2).has("queue.0.ticket", w.text("ticket"))
	l.has("queue.0.encoding", "base64").has("queue.1.ticket", y.text("ticket")).text("holder.since")

	granted := b.later("POST", target+"?wait=20s&ticket="+w.text("ticket"), "")
	b.post(target+"?wait=0s&ticket="+w.text("ticket"), "").want(202)
	x.delete(target+"/"+g.text("ticket")).problem(403, "NOAUTH").has("parameter", "Zk-Session")
	a.delete(target + "/" + g.text("ticket")).want(204)
	h := (<-granted).want(200).has("ticket", w.text("ticket"))
	if h.text("fencing_token") <= g.text("fencing_token") && len(h.text("fencing_token")) == len(g.text("fencing_token")) {
		t.Errorf("fences %s, then %s", g.text("fencing_token"), h.text("fencing_token"))
	}
	a.delete(target+"/"+g.text("ticket")).problem(404, "NONODE")
	// The ticket is good at any server.
	last := x.at(e.urls[0]).later("POST", target+"?ticket="+y.text("ticket"), "")
	b.delete(target + "/" + w.text("ticket")).want(204)
	(<-last).want(200).has("ticket", y.text("ticket"))
	x.at(e.urls[0]).delete(target + "/" + y.text("ticket")).want(204)
	e.nodes[0].Server().View(func(v *server.View) {
		if !slices.Contains(v.Tree().Reapable(time.Now().UnixMilli(), 0, 1<<20), path) {
			t.Error("the lock's znode is no container that goes when it is empty")
		}
	})
}

func TestLock_WaitNot(t *testing.T) {
	e := shared()
	target, _ := queueURL(t, "locks")
	a, b := newCoordinator(t, e.urls[0]), newCoordinator(t, e.urls[1])
	g := a.post(target+"?wait=0s", "").want(200)
	b.post(target+"?wait=0s", "").want(409).contains(g.text("ticket")).contains("held by another")
	a.get(target+"?consistency=linearizable").has("length", 0).has("holder.ticket", g.text("ticket"))
	// A repeated try is the first one's, even if the lock is free by then.
	keyed := b.with("Idempotency-Key: " + target)
	keyed.post(target+"?wait=0s", "").want(409)
	a.delete(target + "/" + g.text("ticket")).want(204)
	keyed.post(target+"?wait=0s", "").want(409).contains("held by another")
}

// A client that waits lives: the request keeps a session alive that is shorter than the wait.
func TestLock_WaitKeepsTheSession(t *testing.T) {
	tier.Seconds(t)
	t.Parallel()
	e := shared()
	target, _ := queueURL(t, "locks")
	a := newCoordinator(t, e.urls[0])
	a.post(target, "").want(200)
	_, b := newClient(t, e.urls[1]).session(minTimeout.String())
	w := b.post(target+"?wait=9s", "").want(202).has("position", 1)
	b.post(target+"?wait=1ms&ticket="+w.text("ticket"), "").want(202)
	// And one that no longer waits does not.
	eventually(t, "the place goes with the session", func() bool {
		return a.get(target).field("length") == 0.0
	})
}

// A release wakes the next in the queue, and no other.
func TestLock_NoHerd(t *testing.T) {
	e := fresh(t, 1)
	var follows atomic.Int64
	_, url := serveReplaced(t, e.nodes[0], counting{e.nodes[0].Server(), &follows})
	const waiting = 8
	var all []*coordinator
	var tickets []string
	for range waiting {
		c := newCoordinator(t, url)
		tickets = append(tickets, c.post("/v1/locks/l?wait=1ms", "").text("ticket"))
		all = append(all, c)
	}
	follows.Store(0)
	var answers []<-chan *answer
	for i := 1; i < waiting; i++ {
		answers = append(answers, all[i].later("POST", "/v1/locks/l?ticket="+tickets[i], ""))
	}
	eventually(t, "all wait", func() bool { return follows.Load() == waiting-1 })
	for i := range waiting - 1 {
		all[i].delete("/v1/locks/l/" + tickets[i]).want(204)
		(<-answers[i]).want(200).has("ticket", tickets[i+1])
	}
	if n := follows.Load(); n != waiting-1 {
		t.Errorf("%d clients looked again although it was not their turn", n-waiting+1)
	}
}

// counting counts how often a request begins to wait.
type counting struct {
	*server.Server
	follows *atomic.Int64
}

func (c counting) Subscribe(f []changes.Filter, p changes.Position) (*changes.Stream, error) {
	c.follows.Add(1)
	return c.Server.Subscribe(f, p)
}

// Of what waits, only a fresh place without a key is given up with its client.
func TestLock_ClientGoesAway(t *testing.T) {
	e := shared()
	target, path := queueURL(t, "locks")
	a, b := newCoordinator(t, e.urls[0]), newCoordinator(t, e.urls[1])
	a.post(target, "").want(200)
	length := func() any { return a.get(target).field("length") }
	leave := func(target string, headers ...string) {
		t.Helper()
		before := length()
		ctx, cancel := context.WithCancel(t.Context())
		req := b.with(headers...).request("POST", target, "").WithContext(ctx)
		gone := make(chan struct{})
		go func() {
			defer close(gone)
			if resp, err := http.DefaultClient.Do(req); err == nil {
				resp.Body.Close()
				t.Errorf("%s: answered with %s", target, resp.Status)
			}
		}()
		if !strings.Contains(target, "ticket=") {
			eventually(t, "it is in the queue", func() bool { return length() != before })
		}
		cancel()
		<-gone
	}
	leave(target)
	eventually(t, "the place is given up", func() bool { return length() == 0.0 })
	leave(target, "Idempotency-Key: "+target)
	w := b.with("Idempotency-Key: "+target).post(target+"?wait=1ms", "").want(202)
	if w.header.Get("Idempotency-Replayed") != "true" {
		t.Error("the place was not the same")
	}
	leave(target + "?ticket=" + w.text("ticket"))
	b.post(target+"?wait=1ms&ticket="+w.text("ticket"), "").want(202).has("position", 1)
	a.get("/v1/znodes" + path + "?children").want(200)
	b.delete(target + "/" + w.text("ticket")).want(204)
}

// A repeated DELETE with its key is the first one's, and not 404.
func TestLock_Release_IsIdempotent(t *testing.T) {
	target, _ := queueURL(t, "locks")
	a := newCoordinator(t, shared().urls[0])
	g := a.post(target, "").want(200)
	keyed := a.with("Idempotency-Key: " + target)
	keyed.delete(target + "/" + g.text("ticket")).want(204)
	keyed.delete(target + "/" + g.text("ticket")).want(204)
}

func TestLock_SessionEnds(t *testing.T) {
	e := shared()
	target, _ := queueURL(t, "locks")
	a, b, x := newCoordinator(t, e.urls[0]), newCoordinator(t, e.urls[1]), newCoordinator(t, e.urls[0])
	a.post(target, "").want(200)
	w := b.later("POST", target, "")
	eventually(t, "b waits", func() bool { return a.get(target).field("length") == 1.0 })
	y := x.later("POST", target, "")
	eventually(t, "x waits", func() bool { return a.get(target).field("length") == 2.0 })
	b.delete("/v1/sessions/" + b.id).want(204)
	(<-w).problem(410, "SESSIONEXPIRED")
	a.delete("/v1/sessions/" + a.id).want(204)
	(<-y).want(200)
}

func TestLock_PlaceLost(t *testing.T) {
	target, _ := queueURL(t, "locks")
	a, b := newCoordinator(t, shared().urls[0]), newCoordinator(t, shared().urls[1])
	a.post(target, "").want(200)
	w := b.post(target+"?wait=1ms", "").want(202)
	waiting := b.later("POST", target+"?ticket="+w.text("ticket"), "")
	a.at(shared().urls[1]).delete("/v1/znodes" + w.text("path")).want(204)
	// Before it waits, it is not there; while it waits, it is lost.
	if got := <-waiting; got.status != 410 && got.status != 404 {
		t.Errorf("the wait for a deleted ticket ends with %d %s, want 410 or 404", got.status, got.body)
	}
}

func TestLock_Parameters(t *testing.T) {
	target, _ := queueURL(t, "locks")
	c, a := newClient(t, shared().urls[0]), newCoordinator(t, shared().urls[0])
	c.post(target, "").problem(400, "BADARGUMENTS").has("parameter", "Zk-Session")
	c.delete(target+"/_c_x-lock-0000000001").problem(400, "BADARGUMENTS").
		has("parameter", "Zk-Session")
	for _, x := range []struct{ method, target, param, says string }{
		{"POST", target + "?wait=3", "wait", "unit"},
		{"POST", target + "?wait=1h", "wait", "5m0s"},
		{"POST", target + "?ticket=x", "ticket", "-lock-0000000004"},
		{"POST", target + "?ticket=a%2Flock-0000000001", "ticket", "not a ticket"},
		{"POST", target + "?ticket=lock-0000000001&acl=world:anyone:r", "acl", "the znode exists"},
		{"POST", target + "?acl=x", "acl", "scheme:id:perms"},
		{"POST", "/v1/locks/", "path", "root"},
		{"GET", "/v1/locks", "path", "root"},
		{"GET", "/v1/locks/a//b", "path", "empty name"},
		{"DELETE", target + "/x", "ticket", "not a ticket"},
		{"DELETE", target + "/..%2Flock-0000000001", "ticket", "not a ticket"},
		{"POST", target + "?herd=1", "herd", "wait, ticket, acl"},
	} {
		a.do(x.method, x.target).want(400).contains(x.says).has("parameter", x.param)
	}
	a.do("PUT", target).want(405).contains("DELETE, GET, HEAD, OPTIONS, POST")
	a.do("DELETE", "/v1/locks").want(404)
	a.do("DELETE", target+"/_c_x-lock-0000000001").problem(404, "NONODE")
	a.post(target+"?ticket=_c_x-lock-0000000001", "").problem(404, "NONODE")
	r := root(t, c)
	a.post(r+"/e?mode=ephemeral", "").want(201)
	a.post("/v1/locks"+strings.TrimPrefix(r, "/v1/znodes")+"/e/lock", "").
		problem(409, "NOCHILDRENFOREPHEMERALS")
}

func TestLock_Forbidden(t *testing.T) {
	target, path := queueURL(t, "locks")
	a, b := newCoordinator(t, shared().urls[0]), newCoordinator(t, shared().urls[0])
	owner := a.with(basic("alice:x"))
	owner.post("/v1/znodes"+path+"?parents=true&acl=auth::cdrwa", "").want(201)
	b.get(target).problem(401, "NOAUTH")
	b.post(target, "").problem(401, "NOAUTH")
	owner.post(target+"?acl=auth::cdrwa", "").want(200)
}

// Many clients add to a counter that only the lock protects.
func TestLock_Excludes(t *testing.T) {
	e := shared()
	target, path := queueURL(t, "locks")
	const clients, rounds = 6, 5
	newClient(t, e.urls[0]).put("/v1/znodes"+path+".sum?create=true&parents=true", "0").want(201)
	var all sync.WaitGroup
	for i := range clients {
		c := newCoordinator(t, e.urls[i%3])
		all.Go(func() {
			for range rounds {
				g := c.post(target, "")
				for g.status == 202 {
					g = c.post(target+"?ticket="+g.text("ticket"), "")
				}
				sum := c.get("/v1/znodes" + path + ".sum?consistency=linearizable")
				var n int
				if err := json.Unmarshal([]byte(sum.json["data"].(string)), &n); err != nil {
					t.Error(err)
				}
				text, _ := json.Marshal(n + 1)
				if a := c.put("/v1/znodes"+path+".sum", string(text)); a.status != 200 {
					t.Errorf("the holder's write: %d %s, want 200", a.status, a.body)
				}
				if a := c.delete(target + "/" + g.json["ticket"].(string)); a.status != 204 {
					t.Errorf("the release: %d %s, want 204", a.status, a.body)
				}
			}
		})
	}
	all.Wait()
	newClient(t, e.urls[1]).get("/v1/znodes"+path+".sum?consistency=linearizable").has("data", "30")
}

func TestFencingToken_Check(t *testing.T) {
	e := shared()
	target, path := queueURL(t, "locks")
	a, b := newCoordinator(t, e.urls[0]), newCoordinator(t, e.urls[1])
	c := newClient(t, e.urls[2])
	const resource = "/v1/fencing-tokens/check"
	check := func(token string) *answer {
		t.Helper()
		return c.post(resource, `{"path": "`+path+`", "fencing_token": "`+token+`"}`).want(200)
	}
	check("1").has("state", "free").has("current", false)
	g := a.post(target, "").want(200)
	if got := check(g.text("fencing_token")).has("state", "current").has("current", true); got.header.
		Get("Zk-Consistency") != "linearizable" {
		t.Error("an old state may have been asked")
	}
	w := b.post(target+"?wait=1ms", "").want(202)
	n, err := strconv.ParseInt(b.get("/v1/znodes"+w.text("path")).text("stat.czxid"), 0, 64)
	if err != nil {
		t.Fatal(err)
	}
	z := strconv.FormatInt(n, 10)
	check(z).has("state", "waiting").has("newest", g.text("fencing_token"))
	check("9223372036854775807").has("state", "unknown").has("current", false)
	c.get(target + "/" + g.text("ticket")).want(404).contains("shows it with the others")
	a.delete(target + "/" + g.text("ticket")).want(204)
	check(g.text("fencing_token")).has("state", "stale").has("current", false).has("newest", z)
	check(z).has("state", "current")
	b.delete(target + "/" + w.text("ticket")).want(204)
	check(z).has("state", "free").has("current", false)
	c.post(resource, `{"path": "x", "fencing_token": "1"}`).want(400).has("parameter", "path")
	for _, token := range []string{"", "0x20000000a", "-1", "+1", "01", "1.0", "9223372036854775808"} {
		c.post(resource, `{"path": "/x", "fencing_token": "`+token+`"}`).want(400).
			has("parameter", "fencing_token").contains("decimal digits")
	}
	c.post(resource, `{"path": "/x", "fencing_token": 1}`).want(400).has("parameter", "fencing_token").contains("a string")
	c.post(resource, `{"path": "/x", "fencing_token": "1", "y": 1}`).want(400).has("parameter", "body")
	c.post(resource, strings.Repeat(" ", 5000)).want(413)
}

// What refuses a ticket is its owner, not an ACL.
func TestRegression_AnothersTicket_NoWordOfACL(t *testing.T) {
	target, _ := queueURL(t, "locks")
	a, b := newCoordinator(t, shared().urls[0]), newCoordinator(t, shared().urls[0])
	g := a.post(target, "").want(200)
	got := b.delete(target+"/"+g.text("ticket")).problem(403, "NOAUTH")
	if strings.Contains(string(got.body), "the ACL") {
		t.Errorf("the problem speaks of an ACL: %s", got.body)
	}
	a.delete(target + "/" + g.text("ticket")).want(204)
}

func TestLock_BodyTooLarge(t *testing.T) {
	target, _ := queueURL(t, "locks")
	a := newCoordinator(t, shared().urls[0])
	req := a.request("POST", target, strings.Repeat("x", 1<<20))
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	body, _ := io.ReadAll(resp.Body)
	resp.Body.Close()
	if resp.StatusCode != http.StatusRequestEntityTooLarge {
		t.Errorf("the answer is %s %s, want 413", resp.Status, body)
	}
	if err := validate(req, resp, body); err != nil {
		t.Error(err)
	}
	a.get(target).has("holder", nil)
}
