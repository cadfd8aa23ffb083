package api_test

import (
	"fmt"
	"net"
	"net/http"
	"net/url"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/zk-lite/zk-lite/api"
	"github.com/zk-lite/zk-lite/server"

	"github.com/zk-lite/zk-lite/api/rest"
)

func TestSearch(t *testing.T) {
	c := newClient(t, shared().urls[0])
	r := root(t, c)
	dir := strings.TrimPrefix(r, "/v1/znodes")
	for i := range 40 {
		c.post(fmt.Sprintf("%s/needle-%02d", r, i), fmt.Sprint("data ", i)).want(201)
	}
	c.post(r+"/secret?acl=digest:u:x:cdrwa", "data").want(201)
	c.with(basic("u:p")).post(r+"/hidden?acl=auth::cdrwa", "").want(201)
	c.with(basic("u:p")).post(r+"/hidden/needle-open", "").want(201)
	s := c.post("/v1/sessions", "").want(201)
	owner := c.with("Zk-Session: " + s.text("id") + "." + s.text("secret"))
	owner.post(r+"/needle-mine?mode=ephemeral", "").want(201)
	find := func(c *client, query string) (found []string) {
		t.Helper()
		for next := ""; ; {
			a := c.get("/v1/search" + dir + "?" + query + "&after=" + next).want(200)
			for _, z := range a.field("found").([]any) {
				found = append(found, strings.TrimPrefix(z.(map[string]any)["path"].(string), dir))
			}
			if a.json["next"] == nil {
				slices.Sort(found)
				return found
			}
			next = a.text("next")
		}
	}
	for query, want := range map[string]int{
		"name=needle": 41, "name=needle&limit=1": 41, "name=needle&limit=7": 41, "name=needle-1": 10, "data=data+3": 11, "name=Needle": 0,
		"": 42, "name=needle&data=data+39": 1, "owner=" + s.text("id"): 1, "owner=0x1": 0, "name=secret": 0,
		"owner=any": 1, "owner=any&name=none": 0, "name=needle-01&name=needle-02": 2,
		"any=needle-1": 10, "any=data+3": 11, "any=-39": 1, "any=data&name=needle-1": 10, "any=secret": 0,
	} {
		if found := find(c, query); len(found) != want || len(slices.Compact(found)) != want {
			t.Errorf("%s: %d found, want %d: %q", query, len(found), want, found)
		}
	}
	if found := find(c.with(basic("u:p")), "name=needle-o"); len(found) != 1 {
		t.Errorf("with permission: %q", found)
	}
	c.get("/v1/search"+dir+"?owner=me").problem(400, "BADARGUMENTS").has("parameter", "owner")
	c.get("/v1/search"+dir+"?"+strings.Repeat("name=x&", 21)).problem(400, "BADARGUMENTS").has("parameter", "name")
	c.get("/v1/search"+dir+"?after=x").problem(400, "BADARGUMENTS").has("parameter", "after")
	c.get("/v1/search"+dir+"?after=1.1").want(410).has("title", "another tree")
	c.get("/v1/search"+dir+"?limit=1001").problem(400, "BADARGUMENTS")
	owner.delete("/v1/sessions/" + s.text("id")).want(204)
}

// The pages by name of a znode with many children follow the sorted names, at any page size.
func TestZnode_Children_MatchAndOffset(t *testing.T) {
	c := newClient(t, shared().urls[0])
	r := root(t, c)
	var ops, want []string
	for i := range 9000 { // more than are looked at together
		name := fmt.Sprintf("%05d", i*7919%90_000)
		want = append(want, name)
		ops = append(ops, fmt.Sprintf(`{"op":"create","path":"%s/%s"}`, strings.TrimPrefix(r, "/v1/znodes"), name))
	}
	c.post("/v1/multi", `{"ops":[`+strings.Join(ops, ",")+"]}").want(200)
	slices.Sort(want)
	pages := func(query, by string, end func(a *answer) string) (all []string) {
		t.Helper()
		for at := ""; ; {
			a := c.get(r + "?children&" + query + "&" + by + "=" + at).want(200)
			for _, name := range a.field("children").([]any) {
				all = append(all, name.(string))
			}
			if at = end(a); at == "" {
				return all
			}
		}
	}
	next := func(a *answer) string { s, _ := a.json["next"].(string); return s }
	for _, limit := range []int{1000, 4096, rest.MaxPage} {
		if got := pages(fmt.Sprint("limit=", limit), "after", next); !slices.Equal(got, want) {
			t.Errorf("limit %d: %d names", limit, len(got))
		}
	}
	matching := slices.DeleteFunc(slices.Clone(want), func(name string) bool { return !strings.Contains(name, "77") })
	if got := pages("limit=100&match=77", "after", next); !slices.Equal(got, matching) {
		t.Errorf("match: %d names, want %d", len(got), len(matching))
	}
	var places []string
	for at := 0; at < 9000; at += 1000 {
		a := c.get(fmt.Sprintf("%s?children&limit=1000&offset=%d", r, at)).want(200).has("stat.numChildren", 9000)
		for _, name := range a.field("children").([]any) {
			places = append(places, name.(string))
		}
	}
	if slices.Sort(places); !slices.Equal(places, want) {
		t.Errorf("by places: %d names", len(places))
	}
	if n := len(c.get(r + "?children&offset=9000").want(200).field("children").([]any)); n != 0 {
		t.Errorf("%d children behind the last", n)
	}
	c.get(r+"?children&offset=1&stat&limit=1").want(200).has("children.0.stat.version", 0)
	c.get(r+"?children&offset=1&after=x").problem(400, "BADARGUMENTS").has("parameter", "offset")
	c.get(r+"?match=x").problem(400, "BADARGUMENTS").has("parameter", "match")
}

// A page of children of some types has those of them that the client may read; its limit and next are of these alone.
func TestZnode_Children_OfTypes(t *testing.T) {
	c := newClient(t, shared().urls[0])
	r := root(t, c)
	s := c.post("/v1/sessions", "").want(201)
	owner := c.with("Zk-Session: " + s.text("id") + "." + s.text("secret"))
	for i := range 5 {
		c.post(fmt.Sprintf("%s/p%d", r, i), "").want(201)
		c.post(fmt.Sprintf("%s/t%d?mode=ttl&ttl=1h", r, i), "").want(201)
		owner.post(fmt.Sprintf("%s/e%d?mode=ephemeral", r, i), "").want(201)
	}
	c.post(r+"/c?mode=container", "").want(201)
	const secret = "digest:u:2qBvJzBpF3nVUTn6M6JxNsmN6Hs=:cdrwa"
	owner.post(r+"/secret?mode=ephemeral&acl="+url.QueryEscape(secret), "").want(201)
	for query, want := range map[string]string{
		"type=ephemeral":                    "[e0 e1 e2 e3 e4]",
		"type=container":                    "[c]",
		"type=ttl&limit=2&after=t1":         "[t2 t3]",
		"type=ttl,container&match=t&after=": "[t0 t1 t2 t3 t4]",
		"type=persistent&limit=5":           "[p0 p1 p2 p3 p4]",
		"type=ttl&after=t4":                 "[]",
	} {
		if got := fmt.Sprint(c.get(r + "?children&" + query).want(200).field("children")); got != want {
			t.Errorf("%s: got %s, want %s", query, got, want)
		}
	}
	c.get(r+"?children&type=ttl&limit=2&after=t1").want(200).has("next", "t3").has("stat.numChildren", 17)
	c.get(r+"?children&type=container&stat").want(200).has("children.0.stat.version", 0)
	for _, query := range []string{"children&type=znode", "children&type=", "type=ttl"} {
		c.get(r+"?"+query).problem(400, "BADARGUMENTS").has("parameter", "type")
	}
	c.get(r+"?children&type=ttl&offset=1").problem(400, "BADARGUMENTS").has("parameter", "offset")
	owner.delete("/v1/sessions/" + s.text("id")).want(204)
}

func TestZnode_About(t *testing.T) {
	c := newClient(t, shared().urls[0])
	r := root(t, c)
	c.post(r+"/t?mode=ttl&ttl=90s&acl=world:anyone:rw", "1").want(201)
	c.get(r+"?about").want(200).has("kind", "persistent").has("may", "cdrwa").has("below.znodes", 1).has("below.more", false)
	c.get(r+"/t?about").want(200).has("kind", "ttl").has("ttl", "1m30s").has("may", "rw").has("stat.dataLength", 1)
	c.get(r+"?about&acl").problem(400, "BADARGUMENTS").has("parameter", "about")
	c.get(r+"/none?about").problem(404, "NONODE")
}

func TestIdentity(t *testing.T) {
	c := newClient(t, shared().urls[0])
	c.get("/v1/identity").want(200).has("anonymous", true).has("administrator", false).has("identities.0.scheme", "ip")
	c.with(basic("alice:x")).get("/v1/identity").want(200).has("anonymous", false).has("identities.1.scheme", "digest")
	c.with(basic("super:secret")).get("/v1/identity").want(200).has("administrator", true)
	c.with("Authorization: Bearer none").get("/v1/identity").problem(401, "AUTHFAILED")
}

// Searches of one client, eight at a time, made others wait for half a second: they took the processors, too. An
// address has one at a time, and what has been looked at of the tree is little before others get their turn.
func TestRegression_Search_OneOfAnAddress(t *testing.T) {
	srv := &viewed{Server: shared().nodes[0].Server(), held: make(chan struct{}), free: make(chan struct{})}
	_, url := serveReplaced(t, shared().nodes[0], srv, func(c *api.Config) { c.REST.Limits.Searches = 2 })
	c := newClient(t, url)
	c.get("/v1/search/").want(200)
	status := func(address string) int {
		t.Helper()
		dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}}
		transport := &http.Transport{DialContext: dialer.DialContext}
		defer transport.CloseIdleConnections()
		resp, err := transport.RoundTrip(c.request("GET", "/v1/search/", ""))
		if err != nil {
			t.Error(err)
			return 0
		}
		resp.Body.Close()
		return resp.StatusCode
	}
	ended := make(chan int, 2)
	for _, address := range []string{"127.0.0.2", "127.0.0.3"} {
		srv.hold.Store(true)
		for held := false; !held; {
			go func() { ended <- status(address) }()
			select {
			case <-srv.held:
				held = true
			case got := <-ended: // the first search may still have its place, after its answer
				if got != 429 {
					t.Fatalf("a search from %s: %d", address, got)
				}
			}
		}
		srv.hold.Store(false)
		if got := status(address); got != 429 {
			t.Errorf("a second search from %s: %d", address, got)
		}
	}
	c.get("/v1/search/").problem(429, "THROTTLEDOP").contains("2 searches")
	c.get("/v1/znodes/").want(200)
	close(srv.free)
	if a, b := <-ended, <-ended; a != 200 || b != 200 {
		t.Errorf("the first searches: %d, %d", a, b)
	}
	eventually(t, "a place", func() bool { // a search has its own until after its answer
		a := c.get("/v1/search/")
		return a.status == 200 || a.want(429) == nil
	})
}

// viewed is a server that can delay a search's view of the state.
type viewed struct {
	*server.Server
	hold       atomic.Bool
	held, free chan struct{}
}

func (s *viewed) View(visit func(v *server.View)) {
	s.Server.View(visit)
	if pc, _, _, _ := runtime.Caller(2); s.hold.Load() && strings.HasSuffix(runtime.FuncForPC(pc).Name(), "data.search") {
		s.held <- struct{}{}
		<-s.free
	}
}
