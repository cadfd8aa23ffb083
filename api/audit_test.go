package api_test

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/zk-lite/zk-lite/api"
	"github.com/zk-lite/zk-lite/app/config"
	"github.com/zk-lite/zk-lite/internal/testkit/tier"
	"github.com/zk-lite/zk-lite/server/audit"
)

// Two requests that only administrators may send were missing from the audit log. Every operation that checks for an
// administrator logs the requests that it lets through: the present operations, and future ones.
func TestRegression_Audit_WhateverNeedsAnAdministrator(t *testing.T) {
	tier.Seconds(t)
	e := fresh(t, 1, func(s *config.Settings) { s.Auth.SuperDigest = superDigest })
	file := filepath.Join(t.TempDir(), "audit.log")
	log := audit.Open(audit.Config{File: file, JSON: true, MaxBytes: 1 << 20, Keep: 1})
	_, url := serve(t, e.nodes[0], func(c *api.Config) {
		c.REST.Audit, c.REST.Slow = log, e.nodes[0].Server().Slow()
	})
	stranger, admin := newClient(t, url), operator(t, url)
	session := stranger.post("/v1/sessions", "").want(201).text("id")

	type request struct{ method, target string }
	var reserved []request
	for _, x := range everything(t, stranger, session) {
		a := stranger.once(x.method, x.target)
		if a.json["title"] == "for administrators only" {
			reserved = append(reserved, request{x.method, x.target})
			admin.once(x.method, x.target) // may fail: the server is alone
		}
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	noted := map[request]int{}
	for line := range strings.Lines(string(text)) {
		var event struct{ User, Operation, Result string }
		if err := json.Unmarshal([]byte(line), &event); err != nil {
			t.Fatalf("the line %q is not JSON: %v", line, err)
		}
		if method, path, _ := strings.Cut(event.Operation, " "); strings.Contains(event.User, "super") {
			noted[request{method, path}]++
		}
	}
	for _, x := range reserved {
		path, _, _ := strings.Cut(x.target, "?")
		if noted[request{x.method, path}] == 0 {
			t.Errorf("no line about %s %s", x.method, x.target)
		}
	}
	for _, must := range []request{
		{"DELETE", "/v1/sessions/" + session + "?force=true"}, {"GET", "/commands/crst"}, {"GET", "/commands/srst"},
		{"GET", "/commands/stmk"}, {"GET", "/commands/hash"}, {"POST", "/v1/cluster/members"}, {"POST", "/v1/snapshot"},
	} {
		if !slices.Contains(reserved, must) {
			t.Errorf("%v is not for administrators", must)
		}
	}
}

// everything is a request for each operation, for each way in which force= changes it, and for each of AdminServer's
// commands.
func everything(t *testing.T, c *client, session string) (all []struct{ method, target string }) {
	t.Helper()
	add := func(method, target string) { all = append(all, struct{ method, target string }{method, target}) }
	fill := strings.NewReplacer("{path}", "x", "{id}", session, "{ticket}", "x", "{name}", "x")
	for _, r := range api.Routes() {
		switch target := fill.Replace(r.Pattern); {
		case r.Pattern == "/commands/{command}", strings.HasSuffix(r.Pattern, "/events"):
		case slices.Contains(r.Params, "force"):
			add(r.Method, target)
			add(r.Method, target+"?force=true")
		case slices.Contains(r.Params, "wait"):
			add(r.Method, target+"?wait=0s")
		default:
			add(r.Method, target)
		}
	}
	for _, command := range c.get("/commands/none").want(404).field("commands").([]any) {
		add(http.MethodGet, "/commands/"+command.(string))
	}
	return all
}
