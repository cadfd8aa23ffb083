package api_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/zk-lite/zk-lite/znode"
)

func TestMulti_AllOrNothing(t *testing.T) {
	c := newClient(t, shared().urls[2])
	r := root(t, c)
	p := strings.TrimPrefix(r, "/v1/znodes")
	a := c.post("/v1/multi", fmt.Sprintf(`{"ops": [
		{"op": "check_not_exists", "path": "%[1]s/a"},
		{"op": "create", "path": "%[1]s/a", "data": "AP8=", "encoding": "base64"},
		{"op": "create", "path": "%[1]s/a/n-", "mode": "persistent_sequential", "acl": "world:anyone:r"},
		{"op": "set", "path": "%[1]s/a", "data": "two", "version": 0},
		{"op": "check", "path": "%[1]s/a", "version": 1}
	]}`, p)).want(200)
	a.has("results.2.path", p+"/a/n-0000000000").has("results.3.stat.version", 1).has("results.0.op", "check_not_exists")
	got := c.get(r+"/a").want(200).has("data", "two")
	if a.text("zxid") != got.text("stat.czxid") || a.header.Get("Zk-Zxid") != a.text("zxid") {
		t.Errorf("zxid %s, %s", a.body, got.body)
	}
	mzxid := got.text("stat.mzxid")
	a = c.post("/v1/multi", fmt.Sprintf(`{"ops": [
		{"op": "delete", "path": "%[1]s/a/n-0000000000"},
		{"op": "delete", "path": "%[1]s/a", "mzxid": "0x1"},
		{"op": "create", "path": "%[1]s/b"}
	]}`, p)).problem(412, "BADVERSION").has("failed", 1).has("path", p+"/a")
	a.has("results.1.error", "BADVERSION").has("results.2.error", "RUNTIMEINCONSISTENCY")
	c.get(r + "/a/n-0000000000").want(200)
	c.post("/v1/multi", fmt.Sprintf(`{"ops": [{"op": "delete", "path": "%[1]s/a/n-0000000000"},
		{"op": "delete", "path": "%[1]s/a", "mzxid": "%s"}]}`, p, mzxid)).want(200)
}

func TestMulti_Failures(t *testing.T) {
	c := newClient(t, shared().urls[0])
	r := root(t, c)
	p := strings.TrimPrefix(r, "/v1/znodes")
	for _, x := range []struct {
		op, error string
		status    int
	}{
		{`{"op": "check_not_exists", "path": "%s"}`, "NODEEXISTS", 409},
		{`{"op": "create", "path": "%s"}`, "NODEEXISTS", 409},
		{`{"op": "create", "path": "%s/x/y"}`, "NONODE", 404},
		{`{"op": "set", "path": "%s/x"}`, "NONODE", 404},
		{`{"op": "check", "path": "%s", "version": 7}`, "BADVERSION", 412},
		{`{"op": "create", "path": "%s/x", "acl": "auth::r"}`, "INVALIDACL", 400},
		{`{"op": "create", "path": "%s/x", "mode": "ephemeral"}`, "BADARGUMENTS", 400},
	} {
		c.post("/v1/multi", `{"ops": [`+fmt.Sprintf(x.op, p)+`]}`).problem(x.status, x.error)
	}
	long := strings.TrimSuffix(strings.Repeat("digest:a:b:r,", znode.MaxACL+1), ",") // refused before the log
	long = `{"ops": [{"op": "create", "path": "` + p + `/x", "acl": "` + long + `"}]}`
	c.post("/v1/multi", long).problem(400, "INVALIDACL")
	c.with(basic("a:a")).post(r+"/s?acl=auth::cdrwa", "").want(201)
	c.post("/v1/multi", `{"ops": [{"op": "set", "path": "`+p+`/s"}]}`).problem(401, "NOAUTH")
}

func TestMulti_BadBodies(t *testing.T) {
	c := newClient(t, shared().urls[0])
	for body, says := range map[string]string{
		``:                                       "0 of them",
		`{"ops": []}`:                            "0 of them",
		`{"ops": [{"op": "rename"}]}`:            "check_not_exists",
		`{"ops": [{"op": "set", "path": "a"}]}`:  "starts with /",
		`{"ops": [{"op": "set", "paht": "/a"}]}`: "paht",
		`{"operations": []}`:                     "operations",
		`{"ops": "x"}`:                           "ops: it must be an array, not: string",
		`{"ops": [{"op": "set", "data": 7}]}`:    "a string, not: number",
		`[]`:                                     "it must be a JSON object, not: array",
		`{"ops": 1,}`:                            "at byte",
		`{"ops": []} x`:                          "follows",
		`[`:                                      "not complete",
		`{"ops": [{"op": "delete", "path": "/a", "data": ""}]}`:                     "does not have",
		`{"ops": [{"op": "create", "path": "/a", "version": 1}]}`:                   "version or mzxid",
		`{"ops": [{"op": "set", "path": "/a", "mode": "container"}]}`:               "mode",
		`{"ops": [{"op": "check_not_exists", "path": "/a", "version": 1}]}`:         "does not have",
		`{"ops": [{"op": "set", "path": "/a", "data": "%", "encoding": "base64"}]}`: "base64",
		`{"ops": [{"op": "set", "path": "/a", "data": "x", "encoding": "hex"}]}`:    "neither",
		`{"ops": [{"op": "set", "path": "/a", "mzxid": "7"}]}`:                      "ops[0].mzxid",
		`{"ops": [{"op": "set", "path": "/a", "mzxid": "0x0"}]}`:                    "use version",
		`{"ops": [{"op": "create", "path": "/a", "mode": "ttl", "ttl": "soon"}]}`:   "ops[0].ttl",
		`{"ops": [{"op": "create", "path": "/a", "mode": "x"}]}`:                    "ops[0].mode",
		`{"ops": [{"op": "create", "path": "/a", "acl": "x"}]}`:                     "ops[0].acl",
		`{"ops": [{"op": "create", "path": "a"}]}`:                                  `"parameter":"ops[0].path"`,
		`{"ops": [{"op": "delete", "path": "/a", "version": -5}]}`:                  "ops[0].version",
		"{\"ops\": [{\"op\": \"set\", \"path\": \"/a\", \"data\": \"a\xffb\"}]}":    "base64",
		`{"ops": [{"op": "set", "path": "/a", "data": "\\\ud800x"}]}`:               "base64",
		`{"ops": [{"op": "set", "path": "/a", "data": "\udc00\ud800"}]}`:            "base64",
	} {
		c.post("/v1/multi", body).want(400).contains(says)
	}
	c.with(`If-Match: "0x1"`).post("/v1/multi", `{"ops": []}`).want(400).has("parameter", "If-Match")
	many := strings.Repeat(`{"op": "check", "path": "/"},`, 10_001)
	c.post("/v1/multi", `{"ops": [`+strings.TrimSuffix(many, ",")+`]}`).want(400).contains("10001 of them")
	c.post("/v1/multi", strings.Repeat(" ", 4<<20)).want(413)
	c.post("/v1/sessions", strings.Repeat(" ", 5<<10)).want(413)
}

func TestSync(t *testing.T) {
	e := shared()
	c := newClient(t, e.urls[0])
	r := root(t, c)
	for i := range 30 {
		text := fmt.Sprint(i)
		zxid := c.put(r, text).want(200).header.Get("Zk-Zxid")
		other := c.at(e.urls[1+i%2])
		switch i % 3 {
		case 0:
			other.post("/v1/sync", "").want(200)
			other.get(r).want(200).has("data", text)
		case 1:
			a := other.get(r+"?consistency=linearizable").want(200).has("data", text)
			if a.header.Get("Zk-Consistency") != "linearizable" {
				t.Errorf("Zk-Consistency is %q, want linearizable", a.header.Get("Zk-Consistency"))
			}
		case 2:
			other.get(r+"?min_zxid="+zxid).want(200).has("data", text)
		}
	}
	c.get(r+"?min_zxid=0x7fffffffffffffff").want(503).contains("has not reached").has("parameter", "min_zxid")
}
