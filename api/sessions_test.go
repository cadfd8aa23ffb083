package api_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	zkclient "github.com/zk-lite/zk-lite/client"
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
	c.get(r + "/me?consistency=linearizable").is(200)
	row := c.get("/v1/sessions?limit=1000").is(200)
	row.says(`{"id":"` + id + `","timeout":"10s","server":3,"ephemerals":1}`)
	for _, asked := range e.urls {
		a := c.at(asked).get("/v1/sessions/"+id+"?server=3").is(200).has("paths.0", dir+"/me").has("connection.watches.0.path", dir)
		a.has("connection.identities.1.id", "alice:x").has("connection.watches.0.kinds.0", "data").has("server", 3)
		if !strings.HasPrefix(a.text("connection.address"), "127.0.0.1:") || a.header.Get("Zk-Server") != "3" {
			t.Errorf("%s", a.body)
		}
		c.at(asked).get("/v1/watchers"+dir+"?server=3").is(200).has("watchers.0.session", id)
	}
	if a := c.get("/v1/sessions/" + id).is(200); a.json["connection"] != nil {
		t.Errorf("server 1 shows a connection of server 3: %s", a.body)
	}
	c.get("/v1/servers").is(200).has("servers.2.id", 3)
	c.get("/v1/sessions/0x1").is(404)
	c.get("/v1/sessions/x").problem(400, "BADARGUMENTS")
	c.get("/v1/sessions?after=x").problem(400, "BADARGUMENTS")
	c.get("/v1/watchers"+dir+"?server=9").is(404).has("parameter", "server")

	c.delete("/v1/sessions/"+id+"?force").problem(401, "NOAUTH")
	c.with(basic("alice:secret")).delete("/v1/sessions/"+id+"?force").problem(403, "NOAUTH")
	c.with(basic("super:secret")).delete("/v1/sessions/" + id + "?force").is(204)
	c.get(r + "/me?consistency=linearizable").is(404)
}

func TestSessions_Pages(t *testing.T) {
	c := newClient(t, shared().urls[1])
	want := map[string]bool{}
	for range 5 {
		s := c.post("/v1/sessions", "").is(201)
		want[s.text("id")] = true
	}
	last := ""
	for next := "0x1"; next != ""; {
		a := c.get("/v1/sessions?limit=2&after=" + next).is(200)
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

// What an address is granted is not granted to whom its server passes on; a server that is away is said to be.
func TestPeers_OfWhatIsPassedOn(t *testing.T) {
	e := fresh(t, 3)
	c := newClient(t, e.urls[0])
	c.post("/v1/znodes/private?acl=ip:127.0.0.1:cdrwa,world:anyone:w", "").is(201)
	s := c.post("/v1/sessions", `{"timeout":"60s"}`).is(201)
	own := c.with("Zk-Session: " + s.text("id") + "." + s.text("secret"))
	own.post("/v1/znodes/private/me?mode=ephemeral", "").is(201)
	c.at(e.urls[1]).get("/v1/znodes/private/me?consistency=linearizable").is(200)
	c.get("/v1/sessions/"+s.text("id")).is(200).has("paths.0", "/private/me")
	if a := c.get("/v1/sessions/" + s.text("id") + "?server=2").is(200); len(a.field("paths").([]any)) != 0 {
		t.Errorf("server 2 takes server 1's address for the client's: %s", a.body)
	}
	e.stop(1)
	c.get("/v1/sessions/" + s.text("id") + "?server=2").is(502)
	c.get("/v1/watchers/private?server=2").is(502)
	c.get("/metrics?server=2").is(502)
	c.get("/metrics?server=3").is(200).says("raft_term")
	c.get("/metrics?server=9").is(404)
	c.get("/v1/history?server=2").is(502)
	c.get("/v1/history?server=9").is(404)
	c.get("/v1/history?server=3&since=1").is(200).has("interval", "10s").has("names.0", "packets_received")
}
