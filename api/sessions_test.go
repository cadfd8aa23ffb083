package api_test

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/api"
	"github.com/zk-lite/zk-lite/api/zk"
	"github.com/zk-lite/zk-lite/app/config"
	zkclient "github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/internal/testkit/tier"
	"github.com/zk-lite/zk-lite/internal/testkit/wait"
)

func connectTo(t *testing.T, address string) *zkclient.Client {
	t.Helper()
	c, err := zkclient.Connect(t.Context(), address, zkclient.WithSessionTimeout(10*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() }) // its session may have been ended
	return c
}

// A session is shown with its connection by the server that has it, asked through any other one.
func TestSessions_ShownThroughAnyServer(t *testing.T) {
	e := shared()
	c := newClient(t, e.urls[0])
	r := root(t, c)
	dir := strings.TrimPrefix(r, "/v1/znodes")
	zk := connectTo(t, fmt.Sprintf("127.0.0.1:%d", e.settings[2].ClientPort))
	if err := zk.AddAuth(t.Context(), "digest", []byte("alice:secret")); err != nil {
		t.Fatal(err)
	}
	if _, _, err := zk.Create(t.Context(), dir+"/me", nil, zkclient.Ephemeral); err != nil {
		t.Fatal(err)
	}
	if _, _, _, err := zk.GetW(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	id := fmt.Sprintf("0x%x", uint64(zk.SessionID()))
	c.get(r + "/me?consistency=linearizable").want(200)
	row := c.get("/v1/sessions?limit=1000").want(200)
	row.contains(`{"id":"` + id + `","timeout":"10s","server":3,"ephemerals":1}`)
	super := c.with(basic("super:secret"))
	client := super.at(e.urls[2]).get("/v1/sessions/" + id).want(200).field("connection").(map[string]any)
	for _, asked := range e.urls {
		a := super.at(asked).get("/v1/sessions?server=3&id="+id+"&id=0x1").want(200).has("sessions.0.identities.1.id", "alice:x")
		a.has("sessions.0.address", client["address"]).has("sessions.0.server", 3)
		if rows := a.field("sessions").([]any); len(rows) != 1 || rows[0].(map[string]any)["last_heard"] == nil {
			t.Errorf("want one session, and when it was heard: %s", a.body)
		}
	}
	// Another's identities are not told to who lacks them; the address is the asker's own.
	a := c.get("/v1/sessions?server=3&id="+id).want(200).has("sessions.0.identities.0.scheme", "ip")
	if n := len(a.field("sessions.0.identities").([]any)); n != 1 {
		t.Errorf("a stranger is told of %d identities, want its own one: %s", n, a.body)
	}
	c.with(basic("alice:secret")).get("/v1/sessions?server=3&id="+id).want(200).has("sessions.0.identities.1.id", "alice:x")
	c.get("/v1/sessions?id=x").problem(400, "BADARGUMENTS").has("parameter", "id")
	c.get("/v1/sessions?"+strings.Repeat("id=0x1&", 101)).problem(400, "BADARGUMENTS").has("parameter", "id")
	for _, asked := range e.urls {
		a := super.at(asked).get("/v1/sessions/"+id+"?server=3").want(200).has("paths.0", dir+"/me").has("connection.watches.0.path", dir)
		a.has("connection.identities.1.id", "alice:x").has("connection.watches.0.kinds.0", "data").has("server", 3)
		if !strings.HasPrefix(a.text("connection.address"), "127.0.0.1:") || a.header.Get("Zk-Server") != "3" {
			t.Errorf("want an address on this machine, and the answer of server 3: %s", a.body)
		}
		c.at(asked).get("/v1/watchers"+dir+"?server=3").want(200).has("watchers.0.session", id)
	}
	if a := c.get("/v1/sessions/" + id).want(200); a.json["connection"] != nil {
		t.Errorf("server 1 shows a connection of server 3: %s", a.body)
	}
	servers := c.get("/v1/servers").want(200).has("server", 1).has("servers.2.id", 3)
	servers.has("servers.2.client", e.nodes[2].ClientAddr().String()).has("ensemble", super.get("/v1/cluster").text("ensemble"))
	c.get("/v1/sessions/0x1").want(404)
	c.get("/v1/sessions/x").problem(400, "BADARGUMENTS")
	c.get("/v1/sessions?after=x").problem(400, "BADARGUMENTS")
	c.get("/v1/watchers"+dir+"?server=9").want(404).has("parameter", "server")

	c.delete("/v1/sessions/"+id+"?force").problem(401, "NOAUTH")
	c.with(basic("alice:secret")).delete("/v1/sessions/"+id+"?force").problem(403, "NOAUTH")
	c.with(basic("super:secret")).delete("/v1/sessions/" + id + "?force").want(204)
	c.get(r + "/me?consistency=linearizable").want(404)
}

// A local session is listed by its server, and marked.
func TestSessions_Local(t *testing.T) {
	tier.Seconds(t)
	e := fresh(t, 1, func(s *config.Settings) { s.Server.LocalSessions, s.Server.UpgradeLocalSessions = true, true })
	c := newClient(t, e.urls[0])
	zk := connectTo(t, fmt.Sprintf("127.0.0.1:%d", e.settings[0].ClientPort))
	id := fmt.Sprintf("0x%x", uint64(zk.SessionID()))
	row := `{"id":"` + id + `","timeout":"10s","server":1,"ephemerals":0`
	c.get("/v1/sessions").want(200).has("total", 1).contains(row + `,"local":true,"address":"127.0.0.1:`)
	c.get("/v1/sessions/"+id).want(200).has("local", true).has("connection.outstanding", 0)
	if _, _, err := zk.Create(t.Context(), "/e", nil, zkclient.Ephemeral); err != nil {
		t.Fatal(err)
	}
	c.get("/v1/sessions").want(200).has("total", 1).contains(`"ephemerals":1,"address":"127.0.0.1:`)
	if a := c.get("/v1/sessions/" + id).want(200); a.json["local"] != nil {
		t.Errorf("a session that was upgraded: %s", a.body)
	}
}

// An administrator could not end a local session: its own server, too, answered that there is none. Others say which
// server to ask, and pass the request on to it.
func TestRegression_Sessions_LocalIsEnded(t *testing.T) {
	tier.Seconds(t)
	e := fresh(t, 3, func(s *config.Settings) { s.Server.LocalSessions, s.Server.UpgradeLocalSessions = true, true })
	c := newClient(t, e.urls[0]).with(basic("super:secret"))
	id := func(zk *zkclient.Client) string { return fmt.Sprintf("0x%x", uint64(zk.SessionID())) }
	for at, query := range []string{"?force", "?force&server=2"} {
		zk := connectTo(t, fmt.Sprintf("127.0.0.1:%d", e.settings[at].ClientPort))
		former := id(zk)
		target := "/v1/sessions/" + former
		own := fmt.Sprintf("?server=%d", at+1)
		c.get(target+own).want(200).has("local", true)
		other := c.at(e.urls[2])
		other.get(target).want(404)
		other.delete(target+"?force").problem(410, "SESSIONEXPIRED").has("parameter", "id").
			contains("server 3 knows no session").contains(fmt.Sprintf("ask with ?force\u0026server=%d", at+1))
		newClient(t, e.urls[0]).delete(target+query).problem(401, "NOAUTH")
		c.get(target+own).want(200).has("local", true)
		c.delete(target + query).want(204)
		c.get(target + own).want(404)
		wait.Until(t, "the client has another session", func() bool { return id(zk) != former })
		c.delete(target+query).problem(410, "SESSIONEXPIRED").contains("GET /v1/sessions lists them")
	}
	c.delete("/v1/sessions/0x1?force&server=9").want(404).has("parameter", "server")
	e.stop(1)
	c.delete("/v1/sessions/0x1?force&server=2").want(502)
}

func TestSessions_Pages(t *testing.T) {
	c := newClient(t, shared().urls[1])
	want := map[string]bool{}
	for range 5 {
		s := c.post("/v1/sessions", "").want(201)
		want[s.text("id")] = true
	}
	last := ""
	for next := "0x1"; next != ""; {
		a := c.get("/v1/sessions?limit=2&after=" + next).want(200)
		for _, s := range a.field("sessions").([]any) {
			id := s.(map[string]any)["id"].(string)
			if len(id) == len(last) && id <= last {
				t.Errorf("%s behind %s", id, last)
			}
			last = id
			delete(want, id)
		}
		next, _ = a.json["next"].(string)
	}
	if len(want) > 0 {
		t.Errorf("not listed: %v", want)
	}
}

// Sessions over HTTP had no bound: neither connectionMaxTokens, nor one for each address.
func TestRegression_Sessions_AreBoundedOverHTTP(t *testing.T) {
	tier.Seconds(t)
	e := fresh(t, 1, func(s *config.Settings) {
		s.ZooKeeper.Throttle = zk.ConnectionThrottle{MaxTokens: 3, FillTime: time.Hour, FillCount: 1}
	})
	c := newClient(t, e.urls[0])
	keyed := c.with("Idempotency-Key: 8e03978e-40d5-43e8-bc93-6894a57f9324")
	first := keyed.post("/v1/sessions", "").want(201)
	c.post("/v1/sessions", "").want(201)
	connectTo(t, fmt.Sprintf("127.0.0.1:%d", e.settings[0].ClientPort)) // takes the last token
	for range 3 {
		c.post("/v1/sessions", "").problem(429, "THROTTLEDOP").contains("connectionMaxTokens")
	}
	if again := keyed.post("/v1/sessions", "").want(201); string(again.body) != string(first.body) {
		t.Errorf("%s, then %s", first.body, again.body)
	}
}

func TestRegression_Sessions_OfAnAddressAreBounded(t *testing.T) {
	_, url := serve(t, shared().nodes[0], func(c *api.Config) { c.REST.Limits.SessionsPerAddress = 3 })
	c := newClient(t, url)
	open := make([]*answer, 3)
	for i := range open {
		open[i] = c.with(fmt.Sprintf("Idempotency-Key: %s of session %d", uniqueName(t), i)).post("/v1/sessions", "").want(201)
	}
	a := c.post("/v1/sessions", "").problem(429, "THROTTLEDOP").contains("127.0.0.1")
	if a.header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
	if status, body := postFrom(t, "127.0.0.2", url+"/v1/sessions", uniqueName(t)+strings.Repeat("x", 22), ""); status != 201 {
		t.Errorf("another address: %d %s", status, body)
	}
	proof := "Zk-Session: " + open[1].text("id") + "." + open[1].text("secret")
	c.with(proof).delete("/v1/sessions/" + open[1].text("id")).want(204)
	last := c.post("/v1/sessions", "").want(201)
	c.post("/v1/sessions", "").problem(429, "THROTTLEDOP")

	var asked sync.WaitGroup
	var opened atomic.Int64
	c.with("Zk-Session: " + last.text("id") + "." + last.text("secret")).delete("/v1/sessions/" + last.text("id")).want(204)
	for range 20 { // at once
		asked.Go(func() {
			if c.post("/v1/sessions", "").status == 201 {
				opened.Add(1)
			}
		})
	}
	asked.Wait()
	if opened.Load() != 1 {
		t.Errorf("%d were opened where one may be", opened.Load())
	}
}
