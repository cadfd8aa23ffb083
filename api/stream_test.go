package api_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/app/config"
	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/internal/testkit/tier"
	"github.com/zk-lite/zk-lite/server"
)

// stream reads server-sent events.
type stream struct {
	testing.TB
	resp *http.Response
	in   *bufio.Reader
	id   string         // the last one's
	read map[string]int // events by their names
}

type event struct {
	id, name, data string
	json           map[string]any
}

// schemas of the events' data.
var eventSchemas = map[string]string{
	"created": "Change", "deleted": "Change", "changed": "Change", "children": "Change",
	"znode": "TreeZnode", "listed": "TreeEnd", "progress": "Progress", "transaction": "Transaction", "ended": "Ended", "reconnect": "Reconnect", "gone": "Problem",
}

func (c *client) stream(target string) *stream {
	c.Helper()
	for {
		s, err := c.open(target)
		switch {
		case err == nil:
			return s
		case !strings.Contains(err.Error(), "503"):
			c.Fatal(err)
		}
		select {
		case <-time.After(50 * time.Millisecond): // as requested
		case <-c.Context().Done():
			c.Fatal(err)
		}
	}
}

func (c *client) open(target string) (*stream, error) {
	req := c.with("Accept: text/event-stream").request("GET", target, "")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		defer resp.Body.Close()
		b, _ := io.ReadAll(resp.Body)
		return nil, fmt.Errorf("%s: %s: %s", target, resp.Status, b)
	}
	if err := validate(req, resp, nil); err != nil {
		c.Error(err)
	}
	s := &stream{TB: c.TB, resp: resp, in: bufio.NewReader(resp.Body), read: map[string]int{}}
	c.Cleanup(s.close)
	return s, nil
}

func (s *stream) close() { s.resp.Body.Close() }

// next reads an event; io.EOF is the stream's end.
func (s *stream) next() (event, error) {
	var e event
	for {
		line, err := s.in.ReadString('\n')
		if err != nil {
			return e, err
		}
		line = strings.TrimSuffix(line, "\n")
		name, value, _ := strings.Cut(line, ": ")
		switch {
		case line == "" && e.name == "":
			e = event{} // a hint alone
		case line == "":
			s.id = e.id
			if err := json.Unmarshal([]byte(e.data), &e.json); err != nil {
				return e, err
			}
			return e, s.check(&e)
		case name == "id":
			e.id = value
		case name == "event":
			e.name = value
		case name == "data":
			e.data = value
		case name == "retry":
		default:
			s.Errorf("a line %q in the stream", line)
		}
	}
}

// maxChecked limits how many events of a name a stream checks against the document: the check takes longer than all the
// rest.
const maxChecked = 20

func (s *stream) check(e *event) error {
	if s.read[e.name]++; s.read[e.name] > maxChecked {
		return nil
	}
	c, err := theContract()
	if err != nil {
		return err
	}
	return c.matches(eventSchemas[e.name], []byte(e.data))
}

// changes reads that many events, progress marks not counted.
func (s *stream) changes(n int) (lines []string) {
	s.Helper()
	for len(lines) < n {
		e, err := s.next()
		if err != nil {
			s.Fatalf("after %q: %v", lines, err)
		}
		if e.name != "progress" {
			lines = append(lines, fmt.Sprint(e.name, " ", e.json["path"]))
		}
	}
	return lines
}

func TestWatch_Stream_Kinds(t *testing.T) {
	c := newClient(t, shared().urls[0])
	r := root(t, c)
	p := strings.TrimPrefix(r, "/v1/znodes")
	want := map[string]string{
		"data":       "changed P/a, deleted P/a",
		"":           "changed P/a, deleted P/a",
		"exists":     "created P/a, changed P/a, deleted P/a",
		"children":   "children P/a, children P/a, deleted P/a",
		"persistent": "created P/a, changed P/a, children P/a, children P/a, deleted P/a",
		"recursive":  "created P/a, changed P/a, created P/a/b, deleted P/a/b, deleted P/a",
	}
	streams := map[string]*stream{}
	for kind := range want {
		q := "?kind=" + kind
		if kind == "" {
			q = ""
		}
		s := c.stream("/v1/watches" + p + "/a" + q)
		if e, err := s.next(); err != nil || e.name != "progress" {
			t.Fatalf("first: %v, %v", e, err)
		}
		streams[kind] = s
	}
	c.post(r+"/a", "").want(201)
	c.put(r+"/a", "x").want(200)
	c.post(r+"/a/b", "").want(201)
	c.delete(r + "/a/b").want(204)
	c.delete(r + "/a").want(204)
	for kind, lines := range want {
		list := strings.Split(strings.ReplaceAll(lines, "P", p), ", ")
		if got := streams[kind].changes(len(list)); !slices.Equal(got, list) {
			t.Errorf("%s: %q, want %q", kind, got, list)
		}
	}
}

func TestWatch_Poll(t *testing.T) {
	t.Parallel()
	c := newClient(t, fresh(t, 1).urls[0]) // whose changes since 0x0 are all kept
	r := root(t, c)
	w := "/v1/watches" + strings.TrimPrefix(r, "/v1/znodes")
	at := c.get(r).want(200).header.Get("Zk-Zxid")
	a := c.get(w + "?wait=0s&since=" + at).want(200)
	if len(a.field("events").([]any)) != 0 {
		t.Errorf("want no events: %s", a.body)
	}
	polled := make(chan *answer)
	go func() { polled <- c.get(w + "?wait=10s&since=" + a.text("zxid")) }()
	zxid := c.put(r, "x").want(200).text("stat.mzxid")
	b := (<-polled).want(200).has("events.0.type", "changed").has("events.0.zxid", zxid)
	if b.text("zxid") < zxid {
		t.Errorf("go on from %s", b.text("zxid"))
	}
	c.get(w + "?wait=1ms&since=" + b.text("zxid")).want(200)
	c.get(w+"?wait=0s&since=0x0&kind=exists").want(200).has("events.0.type", "created")
	c.with("Last-Event-ID: " + b.text("zxid")).get(w + "?wait=0s&since=0x0").want(200)
	// A position that no server has reached is of another ensemble, or of data that was lost: what
	// happens up to there would never be told.
	never := "0x7000000000000000.2"
	c.get(w+"?wait=0s&since="+never).want(410).has("parameter", "since").contains("has never reached")
	c.with("Last-Event-ID: "+never, "Accept: text/event-stream").get(w).want(410).has("parameter", "Last-Event-ID")
	for target, param := range map[string]string{
		"?wait=6m": "wait", "?wait=5": "wait", "?kind=all": "kind", "?since=5": "since",
		"?since=0x5.0": "since", "?since=0x5.x": "since", "?since=0x.1": "since", "?since=0x0.1": "since",
	} {
		c.get(w+target).want(400).has("parameter", param)
	}
	c.with("Accept: text/event-stream").get(w + "?wait=1s").want(400)
	c.with("Last-Event-ID: x").get(w).want(400).has("parameter", "Last-Event-ID")
}

// A stream does not report znodes that its client may not read.
func TestWatch_HidesWhatMayNotBeRead(t *testing.T) {
	c := newClient(t, shared().urls[0])
	r := root(t, c)
	w := "/v1/watches" + strings.TrimPrefix(r, "/v1/znodes") + "?kind=recursive&wait=0s&since=" +
		c.get(r).header.Get("Zk-Zxid")
	alice := c.with(basic("alice:a"))
	alice.post(r+"/a?acl=auth::cdrwa", "").want(201)
	if got := c.get(w).want(200).field("events").([]any); len(got) != 0 {
		t.Errorf("told: %v", got)
	}
	alice.get(w).want(200).has("events.0.type", "created")
}

// A stream that is cut at any event, by its client or by the end of its HTTP server, continues at another server. It
// misses and repeats none of ten thousand changes, those in transactions included.
func TestWatch_Stream_ResumesAnywhere(t *testing.T) {
	tier.Seconds(t)
	t.Parallel()
	const seed, total = 3, 10_000
	rnd := rand.New(rand.NewPCG(seed, 0))
	e := shared()
	c := newClient(t, e.urls[0])
	r := root(t, c)
	p := strings.TrimPrefix(r, "/v1/znodes")
	id := c.get(r).want(200).header.Get("Zk-Zxid")
	var writers sync.WaitGroup
	defer writers.Wait()
	const perMulti, lanes = 25, 4
	for lane := range lanes {
		writers.Go(func() {
			w := c.at(e.urls[lane%3])
			for i := range total / lanes / perMulti {
				var ops []string
				for j := range perMulti {
					ops = append(ops, fmt.Sprintf(`{"op":"create","path":"%s/%d-%06d"}`, p, lane, i*perMulti+j))
				}
				if a := w.post("/v1/multi", `{"ops":[`+strings.Join(ops, ",")+`]}`); a.status != 200 {
					t.Errorf("a transaction: %d %s, want 200", a.status, a.body)
				}
			}
		})
	}
	next := map[byte]int{}
	seen, cuts := 0, 0
	for ; seen < total && !t.Failed(); cuts++ {
		d, url := serve(t, e.nodes[rnd.IntN(3)])
		s := c.at(url).with("Last-Event-ID: " + id).stream("/v1/watches" + p + "?kind=recursive")
		for left := 1 + rnd.IntN(400); left > 0 && seen < total; {
			ev, err := s.next()
			if err != nil {
				t.Fatal(err)
			}
			id = ev.id
			if ev.name == "progress" {
				continue
			}
			left--
			name := strings.TrimPrefix(ev.json["path"].(string), p+"/")
			if want := fmt.Sprintf("%c-%06d", name[0], next[name[0]]); name != want || ev.name != "created" {
				t.Fatalf("seed %d: after %d events and %d cuts: %s %s, want %s", seed, seen, cuts, ev.name, name, want)
			}
			next[name[0]]++
			seen++
		}
		if cuts%2 == 0 {
			s.close()
		}
		d.Kill()
	}
	t.Logf("%d changes, %d streams", seen, cuts)
}

// A server shuts down in good order: its streams end with their positions, long polls get an answer, and both continue
// elsewhere.
func TestServer_Shutdown_EndsStreams(t *testing.T) {
	e := shared()
	d, url := serve(t, e.nodes[0])
	c := newClient(t, e.urls[1])
	r := root(t, c)
	w := "/v1/watches" + strings.TrimPrefix(r, "/v1/znodes")
	s := c.at(url).stream(w)
	id, session := c.session("10s")
	events := session.at(url).stream("/v1/sessions/" + id + "/events")
	c.put(r, "1").want(200)
	s.changes(1)
	polled := make(chan *answer)
	go func() { polled <- c.at(url).get(w + "?wait=1m&since=" + s.id) }()
	eventually(t, "all are open", func() bool { n, _ := d.Core().Long.Open(); return n == 3 })
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := d.Shutdown(ctx); err != nil {
		t.Fatal(err)
	}
	a := (<-polled).want(200)
	for _, s := range []*stream{s, events} {
		var last event
		for {
			ev, err := s.next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			last = ev
		}
		if last.name != "reconnect" || last.id != last.json["zxid"] {
			t.Fatalf("the last event is %+v", last)
		}
	}
	c.put(r, "2").want(200)
	if got := c.with("Last-Event-ID: " + s.id).stream(w).changes(1); got[0] != "changed "+w[len("/v1/watches"):] {
		t.Errorf("the resumed stream begins with %v", got)
	}
	c.get(w+"?since="+a.text("zxid")).want(200).has("events.0.type", "changed")
}

// Streams and long polls leave nothing when they have ended.
func TestStreams_LeaveNothingBehind(t *testing.T) {
	e := shared()
	d, url := serve(t, e.nodes[0])
	c := newClient(t, e.urls[1])
	r := root(t, c)
	w := "/v1/watches" + strings.TrimPrefix(r, "/v1/znodes")
	id, session := c.session("10s")
	before := goroutines()
	var open []*stream
	var polls sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	for range 50 {
		open = append(open, c.at(url).stream(w+"?kind=recursive"))
		open = append(open, session.at(url).stream("/v1/sessions/"+id+"/events?watch=data:/a"))
		polls.Go(func() {
			req := c.at(url).request("GET", w+"?wait=1m", "").WithContext(ctx)
			if resp, err := http.DefaultClient.Do(req); err == nil {
				resp.Body.Close()
			}
		})
	}
	eventually(t, "all are open", func() bool { n, _ := d.Core().Long.Open(); return n == 150 })
	for i, s := range open {
		if i%4 < 2 {
			s.close()
		}
	}
	cancel()
	polls.Wait()
	eventually(t, "half have gone", func() bool { n, _ := d.Core().Long.Open(); return n == 50 })
	session.delete("/v1/sessions/" + id).want(204)
	eventually(t, "the session's have gone", func() bool { n, _ := d.Core().Long.Open(); return n == 25 })
	for _, s := range open {
		s.close()
	}
	eventually(t, "all have gone", func() bool { n, a := d.Core().Long.Open(); return n == 0 && a == 0 })
	http.DefaultClient.CloseIdleConnections()
	eventually(t, "their goroutines have gone", func() bool { return goroutines() <= before })
}

// goroutines counts those that run code of this package.
func goroutines() (n int) {
	buf := make([]byte, 8<<20)
	for g := range strings.SplitSeq(string(buf[:runtime.Stack(buf, true)]), "\n\n") {
		if strings.Contains(g, "zk-lite/api.") {
			n++
		}
	}
	return n
}

// A client that was away for more changes than a server remembers learns that.
func TestWatch_TooOld(t *testing.T) {
	tier.Seconds(t)
	t.Parallel()
	e := fresh(t, 1, func(s *config.Settings) { s.Server.ChangesWindow = 8 << 20 })
	c := newClient(t, e.urls[0])
	zxid := c.post("/v1/znodes/a", "").want(201).header.Get("Zk-Zxid")
	many := `{"ops": [` + strings.Repeat(`{"op": "set", "path": "/a"},`, 9_999) + `{"op": "set", "path": "/a"}]}`
	running := c.stream("/v1/watches/b?since=" + zxid)
	for range 7 {
		c.post("/v1/multi", many).want(200)
	}
	c.get("/v1/watches/a?since="+zxid).want(410).has("parameter", "since").contains("read the znodes again")
	_, err := c.with("Last-Event-ID: " + zxid).open("/v1/watches/a")
	if err == nil || !strings.Contains(err.Error(), "410") {
		t.Errorf("error %v, want status 410", err)
	}
	c.post("/v1/znodes/b", "").want(201)
	c.put("/v1/znodes/b", "").want(200)
	if got := running.changes(1); got[0] != "changed /b" {
		t.Errorf("a stream that was quiet is not late: %q", got)
	}
	// The state is replaced, as by a snapshot from the leader.
	srv := e.nodes[0].Server()
	var m *state.Machine
	srv.View(func(v *server.View) { m = v.Machine() })
	h := srv.Handler()
	h.BeginApply()
	h.StateReplaced(m)
	h.EndApply()
	if got := running.changes(1); got[0] != "gone <nil>" {
		t.Errorf("a stream over a replaced state has %q, want gone", got)
	}
	if _, err := running.next(); !errors.Is(err, io.EOF) {
		t.Errorf("after the end: %v", err)
	}
}

func TestSession_Life(t *testing.T) {
	e := shared()
	c := newClient(t, e.urls[0])
	r := root(t, c)
	a := c.post("/v1/sessions", `{"timeout": "10s"}`).want(201).has("timeout", "10s")
	id, header := a.text("id"), "Zk-Session: "+a.text("id")+"."+a.text("secret")
	if a.header.Get("Location") != "/v1/sessions/"+id {
		t.Errorf("Location is %q, want that of session %s", a.header.Get("Location"), id)
	}
	// At another server at once: there it may not have been applied yet.
	s := c.at(e.urls[1]).with(header)
	s.post(r+"/e?mode=ephemeral", "").want(201).has("stat.ephemeralOwner", id)
	s.post(r+"/e-?mode=ephemeral_sequential", "").want(201)
	s.post(r+"/e/child", "").problem(409, "NOCHILDRENFOREPHEMERALS")
	s.put(r+"/e/child?create=true", "").problem(409, "NOCHILDRENFOREPHEMERALS")
	s.post("/v1/multi", `{"ops": [{"op": "create", "mode": "ephemeral", "path": "`+
		strings.TrimPrefix(r, "/v1/znodes")+`/m"}]}`).want(200)
	s.post("/v1/sessions/"+id+"/keepalive", "").want(200).has("timeout", "10s")
	c.post("/v1/sessions/"+id+"/keepalive", "").want(403).has("parameter", "Zk-Session")
	c.delete("/v1/sessions/" + id).want(403)
	s.delete("/v1/sessions/0x77").want(400).contains("of session")
	s.delete("/v1/sessions/77").want(400).contains("0x1001")
	for _, bad := range []string{"x", "0x1", "0x1.2", "1.00112233445566778899aabbccddeeff", id + ".00"} {
		c.with("Zk-Session: "+bad).get(r).problem(400, "BADARGUMENTS").has("parameter", "Zk-Session")
	}
	c.with("Zk-Session: "+id+".00112233445566778899aabbccddeeff").get(r).problem(410, "SESSIONEXPIRED")
	s.at(e.urls[2]).delete("/v1/sessions/" + id).want(204)
	c.get(r+"/e?consistency=linearizable").problem(404, "NONODE")
	s.delete("/v1/sessions/"+id).problem(410, "SESSIONEXPIRED")
	s.post(r+"/e?mode=ephemeral", "").problem(410, "SESSIONEXPIRED").contains("POST /v1/sessions")
	c.post("/v1/sessions", "").want(201).has("timeout", "30s")
	c.post("/v1/sessions", `{"timeout": "1ms"}`).want(201).has("timeout", minTimeout.String())
	c.post("/v1/sessions", `{"timeout": "30"}`).want(400).has("parameter", "timeout")
	c.post("/v1/sessions", `{"timeuot": "30s"}`).want(400).contains("timeuot")
}

func (c *client) session(timeout string) (id string, with *client) {
	c.Helper()
	a := c.post("/v1/sessions", `{"timeout": "`+timeout+`"}`).want(201)
	return a.text("id"), c.with("Zk-Session: " + a.text("id") + "." + a.text("secret"))
}

// An open stream keeps the session alive, and nothing else does; it ends with it.
func TestSession_Events(t *testing.T) {
	tier.Seconds(t)
	t.Parallel()
	e := shared()
	c := newClient(t, e.urls[0])
	r := root(t, c)
	p := strings.TrimPrefix(r, "/v1/znodes")
	id, s := c.session(minTimeout.String())
	zxid := s.post(r+"/e?mode=ephemeral", "").want(201).header.Get("Zk-Zxid")
	events := s.at(e.urls[1]).stream("/v1/sessions/" + id + "/events?since=" + zxid + "&watch=children:" + p +
		"&watch=exists:" + p + "/x&watch=persistent:" + p)
	start := time.Now()
	for time.Since(start) < minTimeout+time.Second {
		if ev, err := events.next(); err != nil || ev.name != "progress" {
			t.Fatalf("%+v, %v", ev, err)
		}
	}
	c.get(r + "/e").want(200)
	c.post(r+"/x", "").want(201)
	if got := events.changes(2); got[0] != "created "+p+"/x" || got[1] != "children "+p {
		t.Errorf("the stream has %q, want created %s/x and children %s", got, p, p)
	}
	s.delete("/v1/sessions/" + id).want(204)
	if got := events.changes(2); got[0] != "children "+p || got[1] != "ended <nil>" {
		t.Errorf("the stream ends with %q, want children %s and ended", got, p)
	}
	if _, err := events.next(); !errors.Is(err, io.EOF) {
		t.Errorf("after the end: %v", err)
	}
	for watch, says := range map[string]string{
		"x": "kind:/path", "all:/a": "recursive", "data:a": "starts with /",
	} {
		_, s := c.session("10s")
		id, _, _ := strings.Cut(strings.TrimPrefix(s.headers[0], "Zk-Session: "), ".")
		s.get("/v1/sessions/" + id + "/events?watch=" + watch).want(400).contains(says)
	}
}

// A client that goes away takes its session with it, a timeout later.
func TestSession_ClientGoes_Expires(t *testing.T) {
	tier.Seconds(t)
	t.Parallel()
	c := newClient(t, fresh(t, 1, brisk).urls[0])
	r := root(t, c)
	id, s := c.session("4s")
	s.post(r+"/e?mode=ephemeral", "").want(201)
	events := s.stream("/v1/sessions/" + id + "/events")
	watcher := c.stream("/v1/watches" + strings.TrimPrefix(r, "/v1/znodes") + "/e")
	for range 4 {
		if _, err := events.next(); err != nil {
			t.Fatal(err)
		}
	}
	heard := time.Now() // at the earliest
	s.get(r + "/e").want(200)
	events.close()
	watcher.changes(1)
	if took := time.Since(heard); took < 2*time.Second { // half its timeout may pass before the next mark
		t.Errorf("expired after %v, want no less than 2s", took)
	}
	s.get(r).problem(410, "SESSIONEXPIRED")
}
