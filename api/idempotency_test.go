package api_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/internal/testkit/tier"
)

// losing is an HTTP server that loses the result of one of the commands that it sends:
// the command happens, and no reply reports it.
func losing(t testing.TB, i int) (url string, lose func(n int)) {
	srv := shared().nodes[i].Server()
	var left atomic.Int64
	_, url = serveReplaced(t, shared().nodes[i], faulty{Server: srv, do: func(ctx context.Context, c *state.Command) (state.Result, error) {
		r, err := srv.Do(ctx, c)
		if err == nil && left.Add(-1) == 0 {
			return state.Result{}, context.DeadlineExceeded
		}
		return r, err
	}})
	return url, func(n int) { left.Store(int64(n)) }
}

// write is a request that a test repeats, with its preparation and its check. R is replaced by the test's own znode.
type write struct {
	name                 string
	before               [][2]string // requests, "METHOD target" and body
	method, target, body string
	status               int
	since                [][2]string // what others do after it has happened
	// after lists targets to read at the end, and texts that their answers contain.
	after map[string]string
}

func writes() []write {
	return []write{
		{name: "create", method: "POST", target: "/v1/znodesR/n-?mode=persistent_sequential", status: 201,
			after: map[string]string{"/v1/znodesR?children": `["n-0000000000"]`}},
		{name: "create with parents", method: "POST",
			target: "/v1/znodesR/a/b/n-?mode=persistent_sequential&parents=true", status: 201,
			since: [][2]string{{"DELETE /v1/znodesR/a?recursive=true", ""}},
			after: map[string]string{"/v1/znodesR?children": `"children":[]`}},
		{name: "create with parents that are there", before: [][2]string{{"POST /v1/znodesR/a", ""}},
			method: "POST", target: "/v1/znodesR/a/n-?mode=persistent_sequential&parents=true", status: 201,
			after: map[string]string{"/v1/znodesR/a?children": `["n-0000000000"]`}},
		{name: "set", method: "PUT", target: "/v1/znodesR", body: "x", status: 200,
			since: [][2]string{{"PUT /v1/znodesR", "newer"}},
			after: map[string]string{"/v1/znodesR": `"data":"newer"`}},
		{name: "set or create, missing", method: "PUT", target: "/v1/znodesR/a?create=true", status: 201,
			since: [][2]string{{"DELETE /v1/znodesR/a", ""}},
			after: map[string]string{"/v1/znodesR?children": `"children":[]`}},
		{name: "set or create, there", before: [][2]string{{"POST /v1/znodesR/a", ""}},
			method: "PUT", target: "/v1/znodesR/a?create=true", body: "x", status: 200,
			since: [][2]string{{"DELETE /v1/znodesR/a", ""}},
			after: map[string]string{"/v1/znodesR?children": `"children":[]`}},
		{name: "set or create with parents", method: "PUT",
			target: "/v1/znodesR/a/b/c?create=true&parents=true", body: "x", status: 201,
			since: [][2]string{{"PUT /v1/znodesR/a/b/c", "newer"}},
			after: map[string]string{"/v1/znodesR/a/b/c": `"data":"newer"`}},
		{name: "delete", before: [][2]string{{"POST /v1/znodesR/a", ""}},
			method: "DELETE", target: "/v1/znodesR/a", status: 204,
			since: [][2]string{{"POST /v1/znodesR/a", "new"}},
			after: map[string]string{"/v1/znodesR/a": `"data":"new"`}},
		{name: "delete recursively", before: [][2]string{{"POST /v1/znodesR/a/b/c?parents=true", ""}},
			method: "DELETE", target: "/v1/znodesR/a?recursive=true", status: 204,
			since: [][2]string{{"POST /v1/znodesR/a/d?parents=true", "new"}},
			after: map[string]string{"/v1/znodesR/a/d": `"data":"new"`}},
		{name: "delete recursively what is not there", method: "DELETE",
			target: "/v1/znodesR/a?recursive=true", status: 404,
			since: [][2]string{{"POST /v1/znodesR/a", "new"}},
			after: map[string]string{"/v1/znodesR/a": `"data":"new"`}},
		{name: "set the ACL", method: "PUT", target: "/v1/znodesR?acl=world:anyone:cdrwa", status: 200,
			after: map[string]string{"/v1/znodesR?acl": `"aversion":1`}},
		{name: "multi", method: "POST", target: "/v1/multi", status: 200,
			body:  `{"ops": [{"op": "create", "path": "R/n-", "mode": "persistent_sequential"}]}`,
			after: map[string]string{"/v1/znodesR?children": `["n-0000000000"]`}},
		{name: "branch", method: "POST", target: "/v1/multi", status: 200,
			body:  `{"if": [{"path": "R", "children": 0}], "then": [{"op": "create", "path": "R/a"}, {"op": "children", "path": "R"}]}`,
			since: [][2]string{{"POST /v1/znodesR/b", ""}},
			after: map[string]string{"/v1/znodesR?children": `["a","b"]`}},
		{name: "join a group", method: "PUT", target: "/v1/groupsR/g/members/m", body: "x", status: 201,
			since: [][2]string{{"DELETE /v1/groupsR/g/members/m", ""}},
			after: map[string]string{"/v1/groupsR/g": `"members":[]`}},
		{name: "change a member", before: [][2]string{{"PUT /v1/groupsR/g/members/m", "1"}},
			method: "PUT", target: "/v1/groupsR/g/members/m", body: "2", status: 200,
			since: [][2]string{{"DELETE /v1/groupsR/g/members/m", ""}},
			after: map[string]string{"/v1/groupsR/g": `"members":[]`}},
		{name: "leave a group", before: [][2]string{{"PUT /v1/groupsR/g/members/m", "1"}},
			method: "DELETE", target: "/v1/groupsR/g/members/m", status: 204,
			since: [][2]string{{"PUT /v1/groupsR/g/members/m", "new"}},
			after: map[string]string{"/v1/groupsR/g": `"data":"new"`}},
		{name: "take a lock", method: "POST", target: "/v1/locksR/l?wait=0s", status: 200,
			after: map[string]string{"/v1/locksR/l": `"length":0`}},
	}
}

// Whichever of the answers to its commands a request loses, its repetition at another
// server brings what the first one would have brought, and nothing happens twice, nor
// to what has come since.
func TestServer_Idempotency_LostAnswers(t *testing.T) {
	tier.Seconds(t)
	e := shared()
	lossy, lose := losing(t, 0)
	for _, w := range writes() {
		lost := 0
		for n := 1; ; n++ {
			r := strings.TrimPrefix(root(t, newClient(t, e.urls[0])), "/v1/znodes")
			in := func(s string) string { return strings.ReplaceAll(s, "R", r) }
			a := newCoordinator(t, e.urls[1])
			run := func(list [][2]string) {
				t.Helper()
				for _, x := range list {
					method, target, _ := strings.Cut(in(x[0]), " ")
					if got := a.do(method, target, in(x[1])); got.status >= 400 {
						t.Fatalf("%s: %d %s, want success", x[0], got.status, got.body)
					}
				}
			}
			run(w.before)
			keyed := a.with(fmt.Sprintf("Idempotency-Key: %s/%d", r, n))
			lose(n)
			first := keyed.at(lossy).do(w.method, in(w.target), in(w.body))
			if first.status != 504 {
				lose(0)
				first.want(w.status)
				break // it sends less than n commands
			}
			lost++
			second := keyed.at(e.urls[2]).do(w.method, in(w.target), in(w.body)).want(w.status)
			run(w.since)
			third := keyed.at(e.urls[1]).do(w.method, in(w.target), in(w.body)).want(w.status)
			if string(third.body) != string(second.body) && w.status != 404 {
				t.Errorf("%s: %s, then %s", w.name, second.body, third.body)
			}
			if third.header.Get("Idempotency-Replayed") != "true" {
				t.Errorf("%s: it does not say that it is the first result: %v", w.name, third.header)
			}
			for target, want := range w.after {
				if strings.Contains(target, "?") {
					target += "&consistency=linearizable"
				} else {
					target += "?consistency=linearizable"
				}
				a.get(in(target)).want(200).contains(want)
			}
		}
		if lost == 0 {
			t.Errorf("%s: no answer was lost", w.name)
		}
	}
}

// The repetition of a request that ends a session no longer has a session to prove.
func TestServer_Idempotency_SessionsLostAnswers(t *testing.T) {
	e := shared()
	lossy, lose := losing(t, 0)
	c := newClient(t, lossy)
	r := root(t, c.at(e.urls[0]))
	opened := c.with("Idempotency-Key: open a session for " + r)
	lose(1)
	opened.post("/v1/sessions", `{"timeout": "9s"}`).want(504)
	a := opened.at(e.urls[1]).post("/v1/sessions", `{"timeout": "9s"}`).want(201)
	b := opened.at(e.urls[2]).post("/v1/sessions", `{"timeout": "9s"}`).want(201)
	if string(a.body) != string(b.body) {
		t.Errorf("%s, then %s", a.body, b.body)
	}
	proof, url := "Zk-Session: "+a.text("id")+"."+a.text("secret"), "/v1/sessions/"+a.text("id")
	closing := c.with(proof, "Idempotency-Key: close"+r)
	lose(1)
	closing.delete(url).want(504)
	for i := range 3 {
		again := closing.at(e.urls[i]).delete(url).want(204)
		if again.header.Get("Idempotency-Replayed") != "true" {
			t.Errorf("server %d: headers %v, want a replayed answer", i+1, again.header)
		}
	}
	// With another key, or for something else, it is a session that has ended.
	c.with(proof, "Idempotency-Key: other"+r).at(e.urls[0]).delete(url).problem(410, "SESSIONEXPIRED")
	closing.at(e.urls[0]).post(r+"/e?mode=ephemeral", "").want(422)
	c.with(proof).at(e.urls[0]).delete(url).problem(410, "SESSIONEXPIRED")
	// A client with a wrong secret of a live session gets nothing for a key.
	live := newCoordinator(t, e.urls[0])
	wrong := "Zk-Session: " + live.id + "." + strings.Repeat("0", 32)
	keyed := live.with("Idempotency-Key: live" + r)
	keyed.post(r+"/e?mode=ephemeral", "").want(201)
	c.with(wrong, "Idempotency-Key: live"+r).at(e.urls[0]).post(r+"/e?mode=ephemeral", "").
		problem(410, "SESSIONEXPIRED")
}

// A client that sent many writes with keys made the ensemble forget the keys of other clients within seconds, and their
// repeated writes took effect twice. Now the ensemble refuses its keys, and accepts those of others. When many clients
// fill the table, it accepts no new keys: a key accepted a moment ago is always known.
func TestRegression_Idempotency_OthersDoNotHaveKeysForgotten(t *testing.T) {
	tier.Seconds(t)
	e := fresh(t, 1)
	c := newClient(t, e.urls[0])
	c.post("/v1/znodes/jobs", "").want(201)
	const job = "/v1/znodes/jobs/n-?mode=persistent_sequential"
	victim := c.with("Idempotency-Key: victim")
	first := victim.post(job, "").want(201)

	// The answer to a transaction of a thousand operations takes as much memory as a hundred other answers.
	large := `{"ops":[` + strings.Repeat(`{"op":"check","path":"/jobs"},`, 999) + `{"op":"check","path":"/jobs"}]}`
	number := 0
	fill := func(address string, most int) (taken int) {
		for ; taken < most; taken++ {
			number++
			status, _ := postFrom(t, address, e.urls[0]+"/v1/multi", fmt.Sprint("fill", number), large)
			if status == 429 {
				return taken
			}
			if status != 200 {
				t.Fatalf("the status is %d, want 200", status)
			}
		}
		return taken
	}
	if n := fill("127.0.0.2", 200); n < 80 || n > 100 {
		t.Errorf("one address has taken the room of %d transactions, of some 128", n)
	}
	if n := fill("127.0.0.3", 10); n != 10 {
		t.Errorf("another address has been refused after %d", n)
	}
	if fill("127.0.0.2", 1) != 0 {
		t.Error("the first may go on")
	}
	for i := range 100 {
		if fill(fmt.Sprint("127.0.1.", 1+i), 10) < 10 {
			break
		}
	}
	for i := 0; ; i++ { // the rest is too small for such a transaction
		if a := c.with(fmt.Sprint("Idempotency-Key: new", i)).post(job, ""); a.status == 429 {
			break
		} else if a.want(201); i == 1000 {
			t.Fatal("there is always room")
		}
	}
	c.post(job, "").want(201) // without a key
	again := victim.post(job, "").want(201)
	if string(again.body) != string(first.body) || again.header.Get("Idempotency-Replayed") != "true" {
		t.Errorf("%s, then %s", first.body, again.body)
	}
}

// postFrom sends a POST with a key from an address of this machine.
func postFrom(t *testing.T, address, url, key, body string) (status int, answer []byte) {
	t.Helper()
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}}
	transport := &http.Transport{DialContext: dialer.DialContext}
	defer transport.CloseIdleConnections()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Idempotency-Key", key)
	resp, err := transport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if answer, err = io.ReadAll(resp.Body); err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, answer
}

// A client that knew the Idempotency-Key of a new session got its secret, and keys such as deploy-42 are easy to guess.
// The server refuses short keys, and gives the same key from another address another session.
func TestRegression_Idempotency_SessionsAreNotGivenAway(t *testing.T) {
	url := shared().urls[0]
	c := newClient(t, url)
	for _, key := range []string{"deploy-42", strings.Repeat("x", 21)} {
		a := c.with("Idempotency-Key: "+key).post("/v1/sessions", "").problem(400, "BADARGUMENTS")
		a.has("parameter", "Idempotency-Key").contains("22 characters").contains("uuidgen")
	}
	key := uniqueName(t) + strings.Repeat("x", 22)
	opened := c.with("Idempotency-Key: " + key)
	a, again := opened.post("/v1/sessions", "").want(201), opened.post("/v1/sessions", "").want(201)
	if string(a.body) != string(again.body) || again.header.Get("Idempotency-Replayed") != "true" {
		t.Errorf("%s, then %s", a.body, again.body)
	}
	status, b := postFrom(t, "127.0.0.2", url+"/v1/sessions", key, "")
	if status != 201 || bytes.Contains(b, []byte(a.text("secret"))) || bytes.Contains(b, []byte(a.text("id"))) {
		t.Errorf("another client with the key: %d %s", status, b)
	}
	// Nor can the address be made a part of the key.
	for _, forged := range []string{"127.0.0.1" + key, "127.0.0.1 " + key} {
		if _, b := postFrom(t, "127.0.0.2", url+"/v1/sessions", forged, ""); bytes.Contains(b, []byte(a.text("secret"))) {
			t.Errorf("with the key %q another address gets the session: %s", forged, b)
		}
	}
}
