package api_test

import (
	"fmt"
	"strings"
	"testing"
)

// A transaction takes the branch that its conditions choose, and its reads have what its writes have done.
func TestMulti_Branches(t *testing.T) {
	c := newClient(t, shared().urls[2])
	r := root(t, c)
	p := strings.TrimPrefix(r, "/v1/znodes")
	c.post(r+"/a", "m").want(201)
	mzxid := c.get(r + "/a").want(200).text("stat.mzxid")
	for want, conditions := range map[string][]string{
		"then": {`{"path":"P/a","exists":true}`, `{"path":"P/b","exists":false}`, `{"path":"P/a","exists":false,"is":"!="}`,
			`{"path":"P/a","version":0}`, `{"path":"P/a","mzxid":"MZXID"}`, `{"path":"P/a","pzxid":"MZXID"}`,
			`{"path":"P","children":2,"is":"<"}`, `{"path":"P/a","owner":"0x0"}`, `{"path":"P/a","data":"m"}`,
			`{"path":"P/a","data":"bA==","encoding":"base64","is":">"}`, `{"path":"P/a","version":-1,"is":">"},{"path":"P","children":1}`},
		"else": {`{"path":"P/b","exists":true}`, `{"path":"P/b","version":0,"is":"!="}`, `{"path":"P/a","mzxid":"0x1"}`,
			`{"path":"P/a","owner":"0x5"}`, `{"path":"P/a","data":"m"},{"path":"P/a","version":1}`, `{"path":"P","children":1,"is":">"}`},
	} {
		for _, x := range conditions {
			x = strings.NewReplacer("P", p, "MZXID", mzxid).Replace(x)
			if a := c.post("/v1/multi", `{"if":[`+x+`],"then":[]}`).want(200); a.text("branch") != want || len(a.field("results").([]any)) != 0 {
				t.Errorf("%s: %s, want branch %s without results", x, a.body, want)
			}
		}
	}
	a := c.post("/v1/multi", fmt.Sprintf(`{"if": [{"path": "%[1]s/a", "mzxid": "%[2]s"}],
		"then": [{"op": "get", "path": "%[1]s/a"}, {"op": "set", "path": "%[1]s/a", "data": "two"}, {"op": "get", "path": "%[1]s/a"},
			{"op": "create", "path": "%[1]s/b", "data": "/wA=", "encoding": "base64"}, {"op": "get", "path": "%[1]s/b"},
			{"op": "children", "path": "%[1]s"}, {"op": "children", "path": "%[1]s/b"}],
		"else": [{"op": "get", "path": "%[1]s/none"}]}`, p, mzxid)).want(200)
	a.has("branch", "then").has("results.0.data", "m").has("results.0.stat.version", 0).has("results.2.data", "two").
		has("results.2.stat.mzxid", a.text("zxid")).has("results.4.data", "/wA=").has("results.4.encoding", "base64").
		contains(`"children":["a","b"]`).contains(`"children":[]`).has("results.5.stat.numChildren", 2)
	a = c.post("/v1/multi", fmt.Sprintf(`{"if": [{"path": "%[1]s/a", "mzxid": "%[2]s"}], "then": [{"op": "delete", "path": "%[1]s/a"}],
		"else": [{"op": "delete", "path": "%[1]s/b"}, {"op": "get", "path": "%[1]s/none"}]}`, p, mzxid))
	a.problem(404, "NONODE").has("failed", 1).has("path", p+"/none").contains("else[1]")
	c.get(r + "/b").want(200)
}

func TestMulti_Branches_NeedREAD(t *testing.T) {
	c := newClient(t, shared().urls[0])
	r := root(t, c)
	p := strings.TrimPrefix(r, "/v1/znodes")
	c.with(basic("a:a")).post(r+"/s?acl=auth::cdrwa", "x").want(201)
	ask := strings.ReplaceAll(`{"if":[{"path":"P/s","data":"x"}],"then":[{"op":"get","path":"P/s"}]}`, "P", p)
	c.post("/v1/multi", ask).problem(401, "NOAUTH").has("path", p+"/s")
	c.with(basic("b:b")).post("/v1/multi", ask).problem(403, "NOAUTH").has("path", p+"/s")
	c.post("/v1/multi", `{"then":[{"op":"children","path":"`+p+`/s"}]}`).problem(401, "NOAUTH").has("failed", 0)
	c.with(basic("a:a")).post("/v1/multi", ask).want(200).has("results.0.data", "x")
}

func TestMulti_Branches_BadBodies(t *testing.T) {
	c := newClient(t, shared().urls[0])
	for body, says := range map[string]string{
		`{"if": []}`: "0 conditions and operations",
		`{"if": [{"path": "/a", "version": 1}], "ops": []}`:                                             "either ops, or if, then and else",
		`{"ops": [{"op": "get", "path": "/a"}]}`:                                                        `ops[0].op: \"get\" can be used in then and else only`,
		`{"if": [{"path": "/a"}]}`:                                                                      "if[0]: it compares 0 attributes",
		`{"if": [{"path": "/a", "version": 1}, {"path": "/a", "version": 1, "exists": true}]}`:          "if[1]: it compares 2 attributes",
		`{"if": [{"path": "/a", "version": 1, "is": "<="}]}`:                                            "none of =, !=, <, >",
		`{"if": [{"path": "a", "version": 1}]}`:                                                         `"parameter":"if[0].path"`,
		`{"if": [{"path": "/a", "mzxid": "7"}]}`:                                                        "if[0].mzxid",
		`{"if": [{"path": "/a", "pzxid": ""}]}`:                                                         "if[0].pzxid",
		`{"if": [{"path": "/a", "owner": "me"}]}`:                                                       "if[0].owner",
		`{"if": [{"path": "/a", "data": "%", "encoding": "base64"}]}`:                                   "base64",
		`{"if": [{"path": "/a", "vertion": 1}]}`:                                                        "vertion",
		`{"then": [{"op": "get", "path": "/a", "version": 1}]}`:                                         "does not have",
		`{"else": [{"op": "rename", "path": "/a"}]}`:                                                    "else[0].op",
		`{"then": [` + strings.Repeat(`{"op":"get","path":"/"},`, 10_000) + `{"op":"get","path":"/"}]}`: "10001 conditions and operations",
	} {
		c.post("/v1/multi", body).want(400).contains(says)
	}
}

// What a transaction may read is bounded, and by less with a key.
func TestMulti_Branches_ReadTooMuch(t *testing.T) {
	c := newClient(t, shared().urls[1])
	r := root(t, c)
	p := strings.TrimPrefix(r, "/v1/znodes")
	c.put(r, strings.Repeat("x", 70_000)).want(200)
	get := `{"op":"get","path":"` + p + `"}`
	ask := func(times int) string { return `{"then":[` + strings.Repeat(get+",", times-1) + get + `]}` }
	c.post("/v1/multi", ask(14)).want(200)
	c.post("/v1/multi", ask(16)).problem(400, "SYSTEMERROR").contains("at most 1024 KiB, and 64 KiB with an Idempotency-Key").has("failed", 14)
	c.with("Idempotency-Key: "+uniqueName(t)).post("/v1/multi", ask(1)).problem(400, "SYSTEMERROR")
}
