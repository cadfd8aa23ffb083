package api_test

import (
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/zk-lite/zk-lite/api"
	"github.com/zk-lite/zk-lite/app/config"
	"github.com/zk-lite/zk-lite/internal/testkit/wait"
	"github.com/zk-lite/zk-lite/internal/wire"
	"github.com/zk-lite/zk-lite/server/insight"
	"github.com/zk-lite/zk-lite/znode"
)

// Administrators see slow requests, in pages, with the stages of the command and the client's trace.
func TestSlow_Requests(t *testing.T) {
	n := shared().nodes[shared().leading(t)]
	log := insight.NewSlowLog(insight.SlowConfig{
		Threshold: 1, Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
		Server: n.Server(),
	})
	_, url := serve(t, n, func(c *api.Config) { c.REST.Slow = log })
	c := newClient(t, url)
	path := root(t, c)
	const trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	c.with("Traceparent: "+trace).put(path, "x").want(200)
	c.with("Traceparent: "+strings.ToUpper(trace)).put(path, "x").want(200)
	c.get("/v1/slow/requests").problem(401, "NOAUTH")
	c.get("/v1/slow/entries").problem(401, "NOAUTH")
	admin := operator(t, url)
	admin.get("/v1/slow/requests?limit=0").want(400)
	admin.get("/v1/slow/requests?before=-1").want(400)
	page := admin.get("/v1/slow/requests?limit=1")
	var seen []map[string]any
	for {
		items := page.want(200).field("items").([]any)
		for _, x := range items {
			if x := x.(map[string]any); strings.HasPrefix(x["operation"].(string), "PUT ") {
				seen = append(seen, x)
			}
		}
		next, more := page.json["next"].(float64)
		if !more {
			break
		}
		page = admin.get("/v1/slow/requests?limit=1&before=" + strconv.Itoa(int(next)))
	}
	if len(seen) != 3 || seen[0]["traceparent"] != nil || seen[1]["traceparent"] != trace {
		t.Fatalf("the slow requests are %v, want 3, the second with the trace", seen)
	}
	stages := seen[1]["stages_ms"].(map[string]any)
	if stages["disk"].(float64) <= 0 || stages["apply"].(float64) <= 0 || stages["leader"] != 0.0 || seen[1]["index"] == nil {
		t.Errorf("the write is %v, want an index and times of disk and apply", seen[1])
	}
	if term := admin.get("/v1/slow/entries?limit=1").want(200).field("leads_term").(float64); term != seen[1]["term"] {
		t.Errorf("leads term %v, and the request was of %v", term, seen[1]["term"])
	}
}

// Administrators see expired sessions with what the server knows of them.
func TestExpiredSessions(t *testing.T) {
	admin := operator(t, fresh(t, 1, brisk).urls[0])
	newClient(t, admin.url).get("/v1/expired-sessions").problem(401, "NOAUTH")
	path := root(t, admin) + "/e"
	var found map[string]any
	// It may expire before it has an ephemeral znode, and the server may have been paused for half its timeout.
	wait.Until(t, "a session to expire that was silent", func() bool {
		id, own := newClient(t, admin.url).session("1ms")
		if own.post(path+"?mode=ephemeral", "").status != 201 {
			return false
		}
		found = nil
		wait.Until(t, "the session to expire", func() bool {
			for _, x := range admin.get("/v1/expired-sessions").want(200).field("items").([]any) {
				if x := x.(map[string]any); x["session"] == id {
					found = x
				}
			}
			return found != nil
		})
		return found["cause"] != "paused"
	})
	if found["cause"] != "silent" || found["heard"] == nil || found["ephemerals"] != 1.0 ||
		!reflect.DeepEqual(found["paths"], []any{strings.TrimPrefix(path, "/v1/znodes")}) {
		t.Errorf("the session is %v, want one that was silent, with the path of its ephemeral", found)
	}
}

// Of an expired session that had a connection, they see who the client was.
func TestExpiredSessions_NameTheClient(t *testing.T) {
	e := fresh(t, 1, brisk)
	admin := operator(t, e.urls[0])
	conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", e.settings[0].ClientPort))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	// A session of one second, whose client then says nothing.
	request := wire.ConnectRequest{TimeoutMillis: 1000, Password: make([]byte, znode.PasswordSize)}
	if _, err := conn.Write(request.Append([]byte{0, 0, 0, 44})); err != nil {
		t.Fatal(err)
	}
	wait.Until(t, "the session to expire", func() bool {
		items := admin.get("/v1/expired-sessions").want(200).field("items").([]any)
		if len(items) == 0 {
			return false
		}
		x, at := items[0].(map[string]any), conn.LocalAddr().String()
		ip := []any{map[string]any{"scheme": "ip", "id": "127.0.0.1"}}
		if x["address"] != at || !reflect.DeepEqual(x["identities"], ip) {
			t.Fatalf("the session is %v, want one of %s with the identities %v", x, at, ip)
		}
		return true
	})
}

// Administrators see who uses a server most: this session, this address, this path.
func TestTop(t *testing.T) {
	e := shared()
	admin := operator(t, e.urls[0])
	c := newClient(t, admin.url)
	path := root(t, c)
	c.get("/v1/top").problem(401, "NOAUTH")
	admin.get("/v1/top?by=size").want(400)
	admin.get("/v1/top?limit=101").want(400)
	// Other tests use the server, too.
	shown := func(by, kind, name string) bool {
		for _, x := range admin.get("/v1/top?limit=100&by=" + by).want(200).field(kind).([]any) {
			if x := x.(map[string]any); x["name"] == name && x["count"].(float64) >= 1 {
				return true
			}
		}
		return false
	}
	wait.Until(t, "the path to be among the first", func() bool {
		c.put(path, strings.Repeat("x", 100_000)).want(200)
		return shown("bytes", "paths", strings.TrimPrefix(path, "/v1/znodes"))
	})
	if !shown("requests", "addresses", "127.0.0.1") {
		t.Error("the only address is not there")
	}
}

// A client that asks for more than limits.clientRequests gets 429, and learns when to come again; a health check and an
// administrator do not.
func TestRates(t *testing.T) {
	e := newEnsemble(t, 1, func(s *config.Settings) { s.Server.Rates.Requests = 1 })
	c := newClient(t, e.urls[0])
	wait.Until(t, "two requests in a second", func() bool {
		a := c.get("/v1/znodes/?about")
		if a.status == http.StatusOK {
			return false
		}
		if a.problem(429, "THROTTLEDOP"); a.header.Get("Retry-After") == "" {
			t.Error("429 without Retry-After")
		}
		return true
	})
	for range 3 {
		c.get("/readyz").want(200)
		operator(t, e.urls[0]).get("/v1/top?by=held").want(200)
	}
}
