package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/app/config"
	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/internal/testkit/ports"
	"github.com/zk-lite/zk-lite/internal/testkit/tier"
	"github.com/zk-lite/zk-lite/server"
	"github.com/zk-lite/zk-lite/server/auth"
	"github.com/zk-lite/zk-lite/znode"
)

func operator(t testing.TB, url string) *client {
	return newClient(t, url).with(basic("super:secret"))
}

// leading is the index of the ensemble's leader.
func (e *ensemble) leading(t testing.TB) int {
	t.Helper()
	i := -1
	eventually(t, "a server leads", func() bool {
		i = slices.IndexFunc(e.urls, func(url string) bool {
			r, err := http.Get(url + "/readyz")
			if err != nil {
				return false
			}
			defer r.Body.Close()
			var ready struct{ Role string }
			return json.NewDecoder(r.Body).Decode(&ready) == nil && ready.Role == "leader"
		})
		return i >= 0
	})
	return i
}

func TestCluster_Get(t *testing.T) {
	e := shared()
	i := e.leading(t)
	eventually(t, "all are connected", func() bool {
		return operator(t, e.urls[i]).get("/v1/cluster").json["failures_tolerated_now"] == 1.0
	})
	a := operator(t, e.urls[i]).get("/v1/cluster").want(200)
	a.has("leader", i+1).has("voters", 3).has("failures_tolerated", 1).has("server.role", "leader")
	a.has("server.id", i+1).has("server.serving", true).has("server.draining", false)
	a.has("server.last_contact", "0s").has(fmt.Sprintf("members.%d.role", i), "leader")
	s := e.settings[2]
	a.has("members.2.id", 3).has("members.2.client", fmt.Sprintf("127.0.0.1:%d", s.ClientPort))
	other := (i + 1) % 3
	b := operator(t, e.urls[other]).get("/v1/cluster").want(200)
	b.has("server.role", "follower").has("leader", i+1)
	b.has(fmt.Sprintf("members.%d.role", other), "follower")
}

// Every server reports what only the leader knows, up to date. Without a leader it reports that it cannot.
func TestCluster_Get_EverywhereWhatTheLeaderKnows(t *testing.T) {
	tier.Seconds(t)
	t.Parallel()
	e := fresh(t, 3)
	newClient(t, e.urls[0]).post("/v1/znodes/x", "").want(201)
	connected := func(a *answer) (n int) {
		for i := range 3 {
			if a.field(fmt.Sprintf("members.%d.connected", i)) == true {
				n++
			}
		}
		return n
	}
	for i := range e.urls {
		eventually(t, "all are connected, and up to date", func() bool {
			a := operator(t, e.urls[i]).get("/v1/cluster").want(200)
			return a.json["failures_tolerated_now"] == 1.0 && connected(a) == 3 && a.json["incomplete"] == nil &&
				a.field("members.0.lag") == 0.0 && a.field("members.1.lag") == 0.0 &&
				a.field("members.2.lag") == 0.0 && a.field("members.2.applied_index").(float64) > 1 &&
				a.field("members.2.last_index").(float64) > 1 &&
				a.field("members.2.last_contact") != nil
		})
	}
	// A member's id for a newcomer: the others would lose the member.
	for i := range e.urls {
		operator(t, e.urls[i]).post("/v1/cluster/members", `{"id": 2, "address": "127.0.0.1:1"}`).want(409).
			has("title", "a member at another address")
	}
	down := (e.leading(t) + 1) % 3
	e.stop(down)
	for i := range e.urls {
		if i == down {
			continue
		}
		eventually(t, "two are connected", func() bool {
			a := operator(t, e.urls[i]).get("/v1/cluster").want(200)
			of := func(field string) any { return a.field(fmt.Sprintf("members.%d.%s", down, field)) }
			return a.json["failures_tolerated_now"] == 0.0 && connected(a) == 2 && of("connected") == false &&
				of("last_contact") != nil && of("lag") == nil && of("last_index") == nil
		})
	}
	lead := e.leading(t)
	e.stop(lead)
	last := 3 - down - lead
	eventually(t, "nobody leads, and the answer says so", func() bool {
		a := operator(t, e.urls[last]).get("/v1/cluster").want(200)
		text, _ := a.json["incomplete"].(string)
		return a.json["failures_tolerated_now"] == nil && a.field("members.0.connected") == nil &&
			strings.Contains(text, "no leader")
	})
}

func TestCluster_IsForAdministrators(t *testing.T) {
	url := shared().urls[0]
	c := newClient(t, url)
	for _, x := range []struct{ method, target, body string }{
		{"GET", "/v1/cluster", ""},
		{"POST", "/v1/cluster/members", `{"id": 9, "address": "h:1"}`},
		{"DELETE", "/v1/cluster/members/1?force=true", ""},
		{"POST", "/v1/cluster/members/1/token", ""},
		{"POST", "/v1/cluster/transfer", ""},
		{"POST", "/v1/cluster/drain", ""},
		{"DELETE", "/v1/cluster/drain", ""},
		{"GET", "/v1/snapshot", ""},
		{"POST", "/v1/snapshot?dry_run=true", ""},
	} {
		c.do(x.method, x.target, x.body).problem(401, "NOAUTH").contains("super user")
		c.with(basic("super:guess")).do(x.method, x.target, x.body).problem(403, "NOAUTH")
	}
}

// authed is a server with its own rules of authentication.
type authed struct {
	*server.Server
	a *auth.Authenticator
}

func (s authed) Config() server.Config {
	c := s.Server.Config()
	c.Auth = s.a
	return c
}

// serveAs serves the shared ensemble's first server with its own rules of authentication.
func serveAs(t *testing.T, cfg auth.Config) *client {
	t.Helper()
	_, url := serveReplaced(t, shared().nodes[0], authed{shared().nodes[0].Server(), auth.New(cfg)})
	return newClient(t, url)
}

// Without a named administrator it takes this machine, no proxy, and the server's own file.
func TestCluster_LocalAdministrator(t *testing.T) {
	dir := t.TempDir()
	local, err := auth.NewLocal(dir, 1)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(local.Path())
	if err != nil {
		t.Fatal(err)
	}
	token, _, _ := strings.Cut(string(text), "\n")
	c := serveAs(t, auth.Config{Local: local})
	a := c.get("/v1/cluster").problem(401, "NOAUTH").contains(local.Path())
	if got := a.header.Get("Zk-Token-File"); got != local.Path() {
		t.Errorf("Zk-Token-File is %q, want %q", got, local.Path())
	}
	bearer := c.with("Authorization: Bearer " + token)
	bearer.get("/v1/cluster").want(200)
	bearer.get("/v1/znodes/").want(200) // no user has that name there
	c.with("Authorization: Bearer x"+token).get("/v1/cluster").problem(401, "AUTHFAILED")
	c.with(basic("super:secret")).get("/v1/cluster").want(401)
	for _, h := range []string{"Forwarded: for=1.2.3.4", "X-Forwarded-For: 127.0.0.1", "Via: 1.1 x", "X-Real-IP: 127.0.0.1",
		"X-Forwarded-Host: localhost"} {
		if a := bearer.with(h).get("/v1/cluster").problem(403, "NOAUTH"); a.header.Get("Zk-Token-File") != "" {
			t.Errorf("%s: a stranger learns where the token is", h)
		}
	}
	// A name that this machine is not known by, as a page that was led here would use.
	if got := asked(t, c.url, "/v1/cluster", "evil.example"); got != 403 {
		t.Errorf("evil.example: %d", got)
	}
}

// Identities of every scheme match ACLs, and may be administrators.
func TestIdentities_TokensAndAdministrators(t *testing.T) {
	path := t.TempDir() + "/tokens"
	if err := os.WriteFile(path, []byte("alice 0123456789abcdef\nops fedcba9876543210\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	tokens, err := auth.OpenTokens(path, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	c := serveAs(t, auth.Config{Tokens: tokens, Administrators: []znode.ID{{Scheme: "token", ID: "ops"}}})
	alice, ops := c.with("Authorization: Bearer 0123456789abcdef"), c.with("Authorization: bearer fedcba9876543210")
	root := "/v1/znodes/identities"
	alice.post(root+"?acl=auth::cdrwa", "mine").want(201)
	alice.get(root+"?acl").want(200).has("acl.0.scheme", "token").has("acl.0.id", "alice")
	c.get(root).problem(401, "NOAUTH")
	ops.get(root).problem(403, "NOAUTH")
	alice.get("/v1/cluster").problem(403, "NOAUTH").contains("admin.identities")
	ops.get("/v1/cluster").want(200)
	c.with("Authorization: Bearer of-another-system").get(root).problem(401, "AUTHFAILED")
	c.with("Authorization: Negotiate x").get(root).problem(401, "AUTHFAILED")
	alice.delete(root).want(204)

	none := serveAs(t, auth.Config{NoDigest: true})
	none.with(basic("a:b")).get("/v1/znodes/").problem(401, "AUTHFAILED").contains("takes no passwords")
	needy := serveAs(t, auth.Config{Schemes: []string{"digest", "x509"}})
	needy.get("/v1/znodes/").problem(401, "SESSIONCLOSEDREQUIRESASLAUTH").contains("digest or x509")
	needy.get("/v1/znodes/").problem(401, "SESSIONCLOSEDREQUIRESASLAUTH").contains("curl -u user:password, or a certificate: curl --cert and --key")
	certified := serveAs(t, auth.Config{Schemes: []string{"x509"}}) // offers neither passwords nor SASL
	certified.get("/v1/znodes/").problem(401, "SESSIONCLOSEDREQUIRESASLAUTH").contains(`scheme x509`).contains(`"show a certificate: curl --cert and --key"`)
	needy.with(basic("a:b")).get("/v1/znodes/").want(200)
	needy.get("/livez").want(200)
	free := serveAs(t, auth.Config{SkipACL: true, Administrators: []znode.ID{{Scheme: "token", ID: "ops"}}})
	operator(t, shared().urls[0]).post(root+"?acl=digest:a:b:cdrwa", "").want(201)
	free.get(root).want(200)
	free.get("/v1/cluster").want(401)
	free.delete(root).want(204)
}

// Another user's credentials close neither health nor metrics.
func TestOpenOperations_TakeForeignCredentials(t *testing.T) {
	c := newClient(t, shared().urls[0])
	for _, h := range []string{"Authorization: Bearer of-another-system", "Authorization: x", basic("who:ever")} {
		for _, target := range []string{"/livez", "/readyz", "/metrics", "/openapi.json", "/docs", "/commands/ruok"} {
			c.with(h).get(target).want(200)
		}
	}
}

func TestCluster_Parameters(t *testing.T) {
	c := operator(t, shared().urls[0])
	for _, x := range []struct{ body, param, says string }{
		{`{"address": "h:1"}`, "id", "missing"},
		{`{"id": -1, "address": "h:1"}`, "id", "whole number"},
		{`{"id": 255, "address": "h:1"}`, "id", "0 to 254"},
		{`{"id": 4}`, "address", "host:peerPort"},
		{`{"id": 4, "address": "h"}`, "address", "host:peerPort"},
		{`{"id": 4, "address": ":2888"}`, "address", "host:peerPort"},
		{`{"id": 4, "address": "h:0"}`, "address", "host:peerPort"},
		{`{"id": 4, "address": "h:1:2:3"}`, "address", "host:peerPort"},
		{`{"id": 4, "address": "h:1:2:participant"}`, "address", "host:peerPort"},
		{`{"id": 4, "address": "h i:1"}`, "address", "host:peerPort"},
		{`{"id": 4, "address": "[::1:1"}`, "address", "host:peerPort"},
		{`{"id": 4, "address": "h:1;x"}`, "address", "semicolon"},
		{`{"id": 4, "address": "h:1;h:70000"}`, "address", "semicolon"},
		{`{"id": 4, "address": "h:1", "role": "leader"}`, "role", "observer"},
		{`{"id": 4, "where": "h:1"}`, "body", "where"},
	} {
		c.post("/v1/cluster/members", x.body).problem(400, "BADARGUMENTS").
			has("parameter", x.param).contains(x.says)
	}
	c.post("/v1/cluster/members", strings.Repeat(" ", 5000)).want(413)
	c.post("/v1/cluster/transfer", strings.Repeat(" ", 5000)).want(413)
	c.delete("/v1/cluster/members/x").want(400).has("parameter", "id")
	c.delete("/v1/cluster/members/255").want(400).has("parameter", "id")
	c.delete("/v1/cluster/members/77").want(404).contains("no such server")
	c.delete("/v1/cluster/members/77?force=perhaps").want(400).has("parameter", "force")
	c.post("/v1/cluster/transfer", `{"to": 300}`).want(400).has("parameter", "to")
	c.post("/v1/cluster/transfer", `{"to": 77}`).want(404)
	c.post("/v1/cluster/members/77/token", "").want(404)
	c.post("/v1/cluster/members/x/token", "").want(400).has("parameter", "id")
}

func TestCluster_StandsAlone(t *testing.T) {
	c := operator(t, fresh(t, 1).urls[0])
	c.get("/v1/cluster").want(200).has("server.role", "standalone").has("failures_tolerated_now", 0).has("voters", 1)
	c.post("/v1/cluster/members", `{"id": 2, "address": "h:1"}`).want(409).contains("stands alone")
	c.delete("/v1/cluster/members/1").want(409)
	c.post("/v1/cluster/members/1/token", "").want(409).contains("need no token")
	c.post("/v1/cluster/transfer", "").want(409)
	c.post("/v1/cluster/drain", "").want(409).contains("too few")
	c.get("/readyz").want(200)
}

// The feature level rises to the highest that all servers support, and no further.
func TestCluster_Level(t *testing.T) {
	c := operator(t, fresh(t, 1).urls[0])
	eventually(t, "the ensemble has a level", func() bool {
		return c.get("/v1/cluster").want(200).field("level") == float64(state.MaxLevel)
	})
	level := func(n state.Level) string { return fmt.Sprintf(`{"level": %d}`, n) }
	c.put("/v1/cluster/level", level(state.MaxLevel)).want(200).has("level", int(state.MaxLevel))
	c.put("/v1/cluster/level", level(state.MaxLevel+1)).want(409).has("title", "not at this level")
	c.put("/v1/cluster/level", "{}").want(400).has("parameter", "level")
	c.put("/v1/cluster/level", strings.Repeat(" ", 5000)).want(413)
}

func TestCluster_Transfer(t *testing.T) {
	tier.Seconds(t)
	e := fresh(t, 3)
	i := e.leading(t)
	to := (i + 1) % 3
	operator(t, e.urls[(i+2)%3]).post("/v1/cluster/transfer", fmt.Sprintf(`{"to": %d}`, to+1)).want(200)
	eventually(t, "it leads", func() bool { return e.leading(t) == to })
	for _, url := range e.urls {
		eventually(t, "the election is seen", func() bool {
			x, _ := newClient(t, url).get("/v1/servers").want(200).json["election"].(map[string]any)
			return x != nil && x["leader"] == float64(to+1) && x["outage_ms"].(float64) > 0
		})
		all, err := parseMetrics(newClient(t, url).get("/metrics").body)
		if out := all["election_last_outage_seconds"].value; err != nil || out <= 0 || out > 60 {
			t.Errorf("an outage of %v seconds: %v", out, err)
		}
	}
	operator(t, e.urls[i]).post("/v1/cluster/transfer", "").want(200)
	eventually(t, "another leads", func() bool { return e.leading(t) != to })
}

// A drained server sends clients that wait to another one, with a position from which to
// continue.
func TestCluster_Drain_SendsClientsAway(t *testing.T) {
	tier.Seconds(t)
	e := fresh(t, 3)
	a, b := newCoordinator(t, e.urls[0]), newCoordinator(t, e.urls[1])
	op := operator(t, e.urls[0])
	g := b.post("/v1/locks/l", "").want(200)
	queued := a.later("POST", "/v1/locks/l", "")
	req := a.request("GET", "/v1/watches/l?kind=recursive", "")
	req.Header.Set("Accept", "text/event-stream")
	stream, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Body.Close()
	eventually(t, "a waits", func() bool { return b.get("/v1/locks/l").field("length") == 1.0 })
	op.post("/v1/cluster/drain", "").want(200).has("safe_to_stop", true).has("server", 1)
	w := (<-queued).want(202).has("position", 1)
	text, err := io.ReadAll(stream.Body)
	if err != nil || !strings.Contains(string(text), "event: reconnect") {
		t.Errorf("the stream ends with %v, want an event reconnect in:\n%s", err, text)
	}
	refused := a.once("GET", "/v1/znodes/l").want(503).has("title", "draining").contains("another server")
	if refused.header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
	op.get("/v1/cluster").want(200).has("server.draining", true).has("server.serving", false)
	op.get("/readyz?verbose").want(503).has("status", "draining").has("checks.3.name", "not_draining").
		has("checks.3.ok", false).has("checks.0.ok", true)
	granted := a.at(e.urls[2]).later("POST", "/v1/locks/l?ticket="+w.text("ticket"), "")
	b.delete("/v1/locks/l/" + g.text("ticket")).want(204)
	(<-granted).want(200)
	op.delete("/v1/cluster/drain").want(204)
	a.get("/v1/znodes/l").want(200)
	a.get("/v1/watches/l?wait=1ms").want(200)
}

// traveller is a client as the documentation demands: it moves to the next server when one does not serve, and repeats
// a request whose outcome is unknown with the same key.
type traveller struct {
	urls func() []string
	at   int
}

func (c *traveller) create(ctx context.Context, target, key string) error {
	wait := time.NewTimer(0)
	defer wait.Stop()
	for {
		urls := c.urls()
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, urls[c.at%len(urls)]+target, nil)
		if err != nil {
			return err
		}
		req.Header.Set("Idempotency-Key", key)
		resp, err := http.DefaultClient.Do(req)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err == nil {
			body, _ := io.ReadAll(resp.Body)
			resp.Body.Close()
			again := resp.Header.Get("Retry-After") != "" || resp.StatusCode == http.StatusGatewayTimeout
			if resp.StatusCode != http.StatusCreated && !again {
				return fmt.Errorf("%s: %s %s", target, resp.Status, body)
			}
			if resp.StatusCode == http.StatusCreated {
				return nil
			}
		}
		c.at++
		wait.Reset(20 * time.Millisecond)
		select {
		case <-wait.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// A server is added to a running ensemble and gets its vote, the old leader is drained,
// removed and stopped, under load, and no client that follows the hints sees an error.
func TestCluster_GrowsAndShrinksUnderLoad(t *testing.T) {
	tier.Seconds(t)
	t.Parallel()
	e := fresh(t, 3)
	newClient(t, e.urls[0]).post("/v1/znodes/load", "").want(201)
	var mu sync.Mutex
	urls := func() []string { mu.Lock(); defer mu.Unlock(); return slices.Clone(e.urls) }
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var all sync.WaitGroup
	var created, stop atomic.Int64
	for i := range 6 {
		all.Go(func() {
			c := &traveller{urls, i}
			for n := 0; stop.Load() == 0; n++ {
				key := fmt.Sprintf("%d-%d", i, n)
				err := c.create(ctx, "/v1/znodes/load/n-?mode=persistent_sequential", key)
				if err != nil {
					t.Error(err)
					return
				}
				created.Add(1)
			}
		})
	}
	progress := func() {
		t.Helper()
		before := created.Load()
		eventually(t, "the load goes on", func() bool { return created.Load() > before+50 })
	}
	progress()

	newcomer := e.extend(t)
	own := newcomer.Servers[3]
	old := e.leading(t)
	stays := (old + 1) % 3
	op := operator(t, e.urls[stays])
	address := fmt.Sprintf(`{"id": 4, "address": "127.0.0.1:%d:%d;127.0.0.1:%d", "role": "voter"}`,
		own.PeerPort, own.ElectionPort, own.ClientPort)
	token, _ := op.post("/v1/cluster/members", address).want(200).has("id", 4).has("role", "joining").field("token").(string)
	if again := op.post("/v1/cluster/members", address).want(200); again.json["token"] != nil { // once more: harmless
		t.Errorf("the token has been replaced: %s", again.body)
	}
	if other, _ := op.post("/v1/cluster/members/4/token", "").want(200).json["token"].(string); other == token {
		t.Error("the same token again")
	} else {
		token = other
	}
	newcomer.PeerTLS.Keys.SecretFile = filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(newcomer.PeerTLS.Keys.SecretFile, []byte(token), 0o600); err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	e.settings = append(e.settings, newcomer)
	e.nodes = append(e.nodes, nil)
	e.urls = append(e.urls, fmt.Sprintf("http://127.0.0.1:%d", newcomer.AdminPort))
	mu.Unlock()
	eventually(t, "the leader waits for the newcomer", func() bool {
		return strings.Contains(string(op.get("/v1/cluster").want(200).body),
			`"plan":{"action":"promote","waits":"it is not connected"}`)
	})
	e.start(t, 3)
	eventually(t, "the newcomer votes", func() bool {
		a := op.get("/v1/cluster").want(200)
		return a.json["voters"] == 4.0 && a.field("members.3.role") != "joining"
	})
	progress()
	operator(t, e.urls[old]).post("/v1/cluster/drain", "").want(200).has("safe_to_stop", true)
	progress()
	op.delete(fmt.Sprintf("/v1/cluster/members/%d", old+1)).want(204)
	e.stop(old)
	progress()
	a := op.get("/v1/cluster").want(200).has("voters", 3)
	for _, m := range a.field("members").([]any) {
		if m.(map[string]any)["id"] == float64(old+1) {
			t.Errorf("it is still a member: %s", a.body)
		}
	}
	stop.Store(1)
	all.Wait()
	z := newClient(t, e.urls[3]).get("/v1/znodes/load?consistency=linearizable").want(200)
	z.has("stat.numChildren", int(created.Load()))
	t.Logf("%d znodes were created meanwhile", created.Load())
	// With two of the three left, no failure more is survived.
	lead := e.leading(t)
	var others []int
	for i := range e.nodes {
		if i != lead && i != old {
			others = append(others, i)
		}
	}
	e.stop(others[0])
	eventually(t, "no failure is survived", func() bool {
		return operator(t, e.urls[lead]).get("/v1/cluster").json["failures_tolerated_now"] == 0.0
	})
	operator(t, e.urls[lead]).post("/v1/cluster/drain", "").want(409).contains("bring another")
	operator(t, e.urls[lead]).
		delete(fmt.Sprintf("/v1/cluster/members/%d", others[1]+1)).want(409).contains("too few")
}

// extend returns the settings of one more server, which no other server lists.
func (e *ensemble) extend(t *testing.T) config.Settings {
	port := ports.Take(t, 4)
	s := e.settings[0]
	s.MyID = len(e.settings) + 1
	s.Servers = append(slices.Clone(s.Servers), config.Server{
		ID: s.MyID, Host: "127.0.0.1", PeerPort: port[0], ElectionPort: port[1],
		Role: config.Participant, ClientHost: "127.0.0.1", ClientPort: port[2],
	})
	s.DataDir = t.TempDir()
	s.DataLogDir = s.DataDir
	s.ClientPort, s.AdminPort = port[2], port[3]
	return s
}
