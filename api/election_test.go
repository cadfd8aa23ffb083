package api_test

import (
	"bufio"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/zk-lite/zk-lite/internal/testkit/tier"
)

// leaderStream reads the events leader of an election.
type leaderStream struct {
	testing.TB
	resp   *http.Response
	events chan leaderSeen
}

// leaderSeen is one event.
type leaderSeen struct {
	name   string
	Leader *struct{ Ticket, Data, Session string }
}

func observeElection(c *client, target string) *leaderStream {
	c.Helper()
	req := c.request("GET", target, "")
	req.Header.Set("Accept", "text/event-stream")
	resp, err := http.DefaultClient.Do(req) //nolint:bodyclose // leaderStream.close does
	if err != nil {
		c.Fatal(err)
	}
	if resp.StatusCode != http.StatusOK {
		c.Fatalf("%s: %s, want 200", target, resp.Status)
	}
	if err := validate(req, resp, nil); err != nil {
		c.Error(err)
	}
	s := &leaderStream{c.TB, resp, make(chan leaderSeen, 64)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer close(s.events)
		var e leaderSeen
		for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
			if name, ok := strings.CutPrefix(lines.Text(), "event: "); ok {
				e = leaderSeen{name: name}
			}
			data, ok := strings.CutPrefix(lines.Text(), "data: ")
			if !ok || e.name == "progress" {
				continue
			}
			if err := json.Unmarshal([]byte(data), &e); err != nil {
				s.Errorf("%q: %v", data, err)
			}
			s.events <- e
		}
	}()
	c.Cleanup(func() { resp.Body.Close(); <-done })
	return s
}

// next waits for the next event, which must be about this leader.
func (s *leaderStream) next(data string) {
	s.Helper()
	var e leaderSeen
	eventually(s, "an event about "+data, func() bool {
		select {
		case e = <-s.events:
			return true
		default:
			return false
		}
	})
	switch {
	case e.name != "leader":
		s.Fatalf("event %q", e.name)
	case e.Leader == nil && data != "":
		s.Fatalf("nobody leads, want %q", data)
	case e.Leader != nil && e.Leader.Data != data:
		s.Fatalf("%q leads, want %q", e.Leader.Data, data)
	}
}

func TestElection_LeadersFollowEachOther(t *testing.T) {
	e := shared()
	target, path := queueURL(t, "elections")
	a, b := newCoordinator(t, e.urls[0]), newCoordinator(t, e.urls[1])
	early := observeElection(newClient(t, e.urls[2]), target)
	early.next("")
	a.get(target).want(200).has("leader", nil).has("length", 0)
	l := a.post(target, "a").want(200)
	if !strings.HasSuffix(l.text("ticket"), "-latch-0000000000") {
		t.Errorf("the first ticket is %s, want number 0", l.body)
	}
	early.next("a")
	w := b.post(target+"?wait=1ms", "b").want(202).has("position", 1)
	g := b.get(target).want(200).has("leader.data", "a").has("leader.session", a.id)
	g.has("candidates.0.data", "b").has("length", 1)
	late := observeElection(newClient(t, e.urls[0]), target)
	late.next("a")
	a.put("/v1/znodes"+l.text("path"), "a, better").want(200)
	early.next("a, better")
	late.next("a, better")
	elected := b.later("POST", target+"?ticket="+w.text("ticket"), "")
	b.get(target + "/" + l.text("ticket")).want(404).contains("shows it with the others")
	b.delete(target+"/"+l.text("ticket")).problem(403, "NOAUTH")
	a.delete(target + "/" + l.text("ticket")).want(204)
	a.delete(target+"/"+l.text("ticket")).problem(404, "NONODE")
	f := (<-elected).want(200).text("fencing_token")
	early.next("b")
	late.next("b")
	a.post("/v1/fencing-tokens/check", `{"path": "`+path+`", "fencing_token": "`+l.text("fencing_token")+`"}`).has("state", "stale")
	a.post("/v1/fencing-tokens/check", `{"path": "`+path+`", "fencing_token": "`+f+`"}`).has("state", "current")
	b.delete("/v1/sessions/" + b.id).want(204)
	early.next("")
	late.next("")
	a.post(target, "again").want(200)
	early.next("again")
}

func TestElection_Parameters(t *testing.T) {
	target, _ := queueURL(t, "elections")
	a, b := newCoordinator(t, shared().urls[0]), newCoordinator(t, shared().urls[1])
	g := a.post(target, "").want(200)
	b.post(target+"?wait=0s", "").want(409).contains(g.text("ticket"))
	b.post(target+"?ticket=x", "").want(400).has("parameter", "ticket")
	b.post(target+"?ticket=lock-0000000000", "").want(400).has("parameter", "ticket")
	b.post(target+"?ticket=_c_x-latch-0000000099", "").problem(404, "NONODE")
	b.post(target+"?ticket="+g.text("ticket"), "").problem(403, "NOAUTH")
	b.post("/v1/elections/", "").want(400).contains("an election").has("parameter", "path")
	b.post(target, strings.Repeat("x", 1<<20)).want(413)
	newClient(t, b.url).post(target, "").want(400).has("parameter", "Zk-Session")
}

func TestElection_StreamEndsWithItsServer(t *testing.T) {
	tier.Seconds(t)
	e := fresh(t, 3)
	s := observeElection(newClient(t, e.urls[0]), "/v1/elections/x")
	s.next("")
	d, url := serve(t, e.nodes[1])
	other := observeElection(newClient(t, url), "/v1/elections/x")
	other.next("")
	operator(t, e.urls[0]).post("/v1/cluster/drain", "").want(200)
	if got := <-s.events; got.name != "reconnect" {
		t.Errorf("the drained server's stream has the event %v, want reconnect", got)
	}
	if err := d.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	if got := <-other.events; got.name != "reconnect" {
		t.Errorf("the stopped server's stream has the event %v, want reconnect", got)
	}
}
