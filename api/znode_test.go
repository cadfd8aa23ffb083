package api_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// root makes a znode of the test's own, a new one in every run, and returns its URL's
// path.
func root(t testing.TB, c *client) string {
	t.Helper()
	name := "/v1/znodes/" + uniqueName(t)
	c.put(name+"?create=true", "").want(http.StatusCreated)
	return name
}

func TestZnode_CreateGetSetDelete(t *testing.T) {
	c := newClient(t, shared().urls[0])
	r := root(t, c)
	a := c.post(r+"/a", "hello").want(201)
	path := strings.TrimPrefix(r, "/v1/znodes") + "/a"
	a.has("path", path).has("stat.version", 0).has("stat.dataLength", 5)
	if got := a.header.Get("Location"); got != r+"/a" {
		t.Errorf("Location %q", got)
	}
	a = c.get(r + "/a").want(200)
	a.has("data", "hello").has("encoding", "utf-8").has("path", path).has("stat.numChildren", 0)
	tag := a.header.Get("ETag")
	if tag != `"`+a.text("stat.mzxid")+`"` {
		t.Errorf("ETag %s", tag)
	}
	c.with("If-None-Match: " + tag).get(r + "/a").want(304)
	c.with(`If-None-Match: "0x1", W/`+tag).do("HEAD", r+"/a").want(304)
	c.with(`If-None-Match: "0x1"`).get(r + "/a").want(200)
	if h := c.do("HEAD", r+"/a?raw").want(200).header; h.Get("ETag") != tag ||
		h.Get("Content-Length") != "5" || h.Get("Zk-Version") != "0" {
		t.Errorf("HEAD: %v", h)
	}
	if a := c.get(r + "/a?raw").want(200); string(a.body) != "hello" ||
		a.header.Get("Content-Type") != "application/octet-stream" {
		t.Errorf("raw: %q %v", a.body, a.header)
	}
	c.with("If-Match: "+tag).put(r+"/a", "\xff\x00bytes").want(200).has("stat.version", 1)
	c.get(r+"/a").want(200).has("encoding", "base64").has("data", "/wBieXRlcw==")
	c.with("If-Match: "+tag).put(r+"/a", "late").problem(412, "BADVERSION").has("path", path)
	c.put(r+"/a?version=0", "late").problem(412, "BADVERSION")
	c.put(r+"/a?version=1", "in time").want(200).has("stat.version", 2)
	c.delete(r+"/a?version=0").problem(412, "BADVERSION")
	c.with("If-Match: "+tag).delete(r+"/a").problem(412, "BADVERSION")
	c.with("If-Match: *").delete(r + "/a?version=2").want(204)
	c.get(r+"/a").problem(404, "NONODE").has("code", -101).has("path", path)
	c.delete(r+"/a").problem(404, "NONODE")
	c.put(r+"/a", "x").problem(404, "NONODE")
	c.post(r+"/a", "").want(201)
	if now := c.get(r + "/a").header.Get("ETag"); now == tag {
		t.Error("a znode created again has the ETag of the former")
	}
	c.post(r+"/a", "").problem(409, "NODEEXISTS")
	c.post(r+"/a/b", "").want(201)
	c.delete(r+"/a").problem(409, "NOTEMPTY").has("path", path)
}

func TestZnode_Headers(t *testing.T) {
	c := newClient(t, shared().urls[1])
	a := c.put(root(t, c), "x").want(200)
	if a.header.Get("Zk-Server") != "2" || a.header.Get("Zk-Leader") == "none" ||
		a.header.Get("Zk-Zxid") != a.text("stat.mzxid") ||
		a.header.Get("Zk-Consistency") != "linearizable" {
		t.Errorf("headers %v, want server 2, a leader, and the zxid of the write", a.header)
	}
	if h := c.get("/v1/znodes/").want(200).header; h.Get("Zk-Consistency") != "local" {
		t.Errorf("Zk-Consistency is %q, want local", h.Get("Zk-Consistency"))
	}
}

func TestZnode_Root(t *testing.T) {
	c := newClient(t, shared().urls[0])
	for _, target := range []string{"/v1/znodes/", "/v1/znodes"} {
		c.get(target).want(200).has("path", "/")
	}
	c.delete("/v1/znodes/").problem(400, "BADARGUMENTS")
	c.delete("/v1/znodes/zookeeper?recursive=true").problem(400, "BADARGUMENTS")
	c.post("/v1/znodes/", "").problem(409, "NODEEXISTS")
}

func TestZnode_Paths(t *testing.T) {
	c := newClient(t, shared().urls[0])
	r := root(t, c)
	for _, name := range []string{"a%20b", "%C3%BC", "100%25", "a%3Fb", "%22", "a+b", "%2525", "..a", "{x}"} {
		a := c.post(r+"/"+name, "").want(201)
		loc := a.header.Get("Location")
		c.get(loc).want(200).has("path", a.text("path"))
		c.delete(r + "/" + name).want(204)
	}
	c.post(r+"/x%2Fy?parents=true", "").want(201).has("path", strings.TrimPrefix(r, "/v1/znodes")+"/x/y")
	for bad, says := range map[string]string{
		"/": "does not end with /", "//a": "empty name", "/a/../b": "relative name", "/.": "relative name",
		"/%00": "U+0000", "/%ff": "invalid UTF-8", "/%F0%9F%92%A9": "not allowed", "/%2Fa": "empty name",
	} {
		c.get(r+bad).problem(400, "BADARGUMENTS").contains(says)
	}
}

func TestZnode_Parameters(t *testing.T) {
	c := newClient(t, shared().urls[0])
	r := root(t, c)
	for _, x := range []struct{ method, target, param, says string }{
		{"DELETE", "?ver=3", "ver", "there are: version, recursive"},
		{"DELETE", "?version=x", "version", "stat.version"},
		{"DELETE", "?version=1&version=2", "version", "given 2 times"},
		{"DELETE", "?recursive=maybe", "recursive", "neither true nor false"},
		{"GET", "?limit=3", "limit", "with children only"},
		{"GET", "?children&limit=0", "limit", "from 1 to"},
		{"GET", "?children&raw", "raw", "children"},
		{"GET", "?children&acl", "acl", "cannot be combined"},
		{"GET", "?children=no", "children", "neither"},
		{"GET", "?acl=x", "acl", "no value"},
		{"GET", "?consistency=strong", "consistency", "linearizable"},
		{"GET", "?min_zxid=7", "min_zxid", "0x100000002"},
		{"GET", "?%zz", "query", "%25"},
		{"POST", "/x?mode=temporary", "mode", "ephemeral_sequential"},
		{"POST", "/x?mode=ttl", "ttl", "needs one"},
		{"POST", "/x?ttl=3s", "ttl", "mode=ttl"},
		{"POST", "/x?mode=ttl&ttl=3", "ttl", "unit"},
		{"POST", "/x?acl=world:anyone", "acl", "scheme:id:perms"},
		{"POST", "/x?acl=world:anyone:xyz", "acl", "permission"},
		{"PUT", "?parents=true", "parents", "create=true"},
		{"PUT", "?create=true&version=3", "create", "version"},
	} {
		a := c.do(x.method, r+x.target).want(400).contains(x.says)
		a.has("parameter", x.param)
	}
	c.with("If-Match: 12").put(r, "").problem(400, "BADARGUMENTS").has("parameter", "If-Match")
	c.with(`If-Match: "0x1","0x2"`).put(r, "").want(400)
	c.with(`If-None-Match: "0x1"`).put(r, "").want(400).has("parameter", "If-None-Match")
	c.with(`If-Match: "0x0"`).put(r, "").problem(412, "BADVERSION")
	for _, key := range [][]string{
		{"Idempotency-Key: " + strings.Repeat("x", 300)}, {"Idempotency-Key: "}, {"Idempotency-Key: a", "Idempotency-Key: b"},
	} {
		c.with(key...).put(r, "").want(400).has("parameter", "Idempotency-Key")
	}
	c.with(`If-Match: "0x1"`).post(r+"/new", "").want(400).has("parameter", "If-Match")
	c.with("If-None-Match: *").delete(r+"/a").want(400).has("parameter", "If-None-Match")
	c.delete("/v1/locks/a").want(400).has("parameter", "ticket")
	c.do("PATCH", r).want(405).contains("DELETE, GET, HEAD, OPTIONS, POST, PUT")
	c.get("/v2/znodes/").want(404).contains("no such resource")
}

func TestZnode_Modes(t *testing.T) {
	c := newClient(t, shared().urls[0])
	r := root(t, c)
	p := strings.TrimPrefix(r, "/v1/znodes")
	c.post(r+"/job-?mode=persistent_sequential", "").want(201).has("path", p+"/job-0000000000")
	c.post(r+"/?mode=persistent_sequential", "").want(201).has("path", p+"/0000000001")
	c.post(r+"/c?mode=container", "").want(201)
	c.post(r+"/t?mode=ttl&ttl=1h", "").want(201)
	c.post(r+"/t-?mode=ttl_sequential&ttl=1h", "").want(201)
	c.post(r+"/e?mode=ephemeral", "").problem(400, "BADARGUMENTS").contains("POST /v1/sessions")
}

func TestZnode_Children(t *testing.T) {
	c := newClient(t, shared().urls[0])
	r := root(t, c)
	for _, name := range []string{"c", "a", "b", "B", "ä"} {
		c.post(r+"/"+name, "data of "+name).want(201)
	}
	c.post(r+"/secret?acl=digest:u:x:r", "").want(201)
	a := c.get(r + "?children").want(200)
	if got := fmt.Sprint(a.field("children")); got != "[B a b c secret ä]" {
		t.Errorf("children %s", got)
	}
	a.has("stat.numChildren", 6)
	var all []string
	after := ""
	for {
		a := c.get(r + "?children&limit=4&after=" + after).want(200)
		for _, name := range a.field("children").([]any) {
			all = append(all, name.(string))
		}
		if a.json["next"] == nil {
			break
		}
		after = a.text("next")
	}
	if want := []string{"B", "a", "b", "c", "secret", "ä"}; !slices.Equal(all, want) {
		t.Errorf("pages of children: %q, want %q", all, want)
	}
	a = c.get(r + "?children&stat&data&limit=5").want(200)
	a.has("children.1.name", "a").has("children.1.data", "data of a").has("children.1.stat.version", 0)
	a.has("children.4.name", "secret").has("children.4.error", "NOAUTH")
	a = c.get(r + "?children&stat").want(200)
	if a.field("children.0.data") != nil {
		t.Error("data without asking")
	}
	c.get(r+"/nobody?children").problem(404, "NONODE")
}

func TestZnode_CreateWithParents(t *testing.T) {
	c := newClient(t, shared().urls[0])
	r := root(t, c)
	c.post(r+"/a/b/c", "").problem(404, "NONODE").has("path", strings.TrimPrefix(r, "/v1/znodes")+"/a/b")
	a := c.post(r+"/a/b/c?parents=true&acl=ip:127.0.0.1:cdrwa", "x").want(201)
	for _, above := range []string{"/a", "/a/b"} {
		got := c.get(r + above).want(200)
		if got.text("stat.czxid") != a.text("stat.czxid") {
			t.Errorf("%s was created by another transaction", above)
		}
		c.get(r+above+"?acl").want(200).has("acl.0.scheme", "ip")
	}
	c.post(r+"/a/b/c?parents=true", "").problem(409, "NODEEXISTS")
	c.post(r+"/a/b/d?parents=true", "").want(201)
	c.post(r+strings.Repeat("/x", 120)+"?parents=true", "").want(400).has("parameter", "parents")
	c.post(r+"/q/n-?parents=true&mode=persistent_sequential", "").want(201)
	c.put(r+"/p/q?create=true&parents=true", "1").want(201)
	c.put(r+"/p/q?create=true&parents=true", "2").want(200).has("stat.version", 1)
	c.put(r+"/nowhere/q?create=true", "").problem(404, "NONODE")
	c.with("If-None-Match: *").put(r+"/only", "1").want(201)
	c.with("If-None-Match: *").put(r+"/only", "2").problem(412, "NODEEXISTS")
}

func TestZnode_DeleteRecursively(t *testing.T) {
	c := newClient(t, shared().urls[0])
	r := root(t, c)
	for i := range 5 {
		c.post(fmt.Sprintf("%s/a/%d/x/y?parents=true", r, i), "").want(201)
	}
	tag := c.get(r + "/a").header.Get("ETag")
	c.with(`If-Match: "0x1"`).delete(r+"/a?recursive=true").problem(412, "BADVERSION")
	c.get(r + "/a/3/x/y").want(200)
	c.with("If-Match: " + tag).delete(r + "/a?recursive=true").want(204)
	c.get(r+"/a").problem(404, "NONODE")
	c.delete(r+"/a?recursive=true").problem(404, "NONODE")
	c.post(r+"/b", "").want(201)
	c.delete(r + "/b?recursive=true").want(204)
}

func TestZnode_ACL(t *testing.T) {
	c := newClient(t, shared().urls[0])
	r := root(t, c)
	alice, bob := c.with(basic("alice:a")), c.with(basic("bob:b"))
	alice.post(r+"/a?acl=auth::cdrwa,world:anyone:c", "").want(201)
	c.get(r+"/a").problem(401, "NOAUTH").contains("-u user:password")
	bob.get(r+"/a").problem(403, "NOAUTH")
	path := strings.TrimPrefix(r, "/v1/znodes") + "/a"
	bob.post(r+"/a/x", "").want(201)
	bob.delete(r+"/a/x").problem(403, "NOAUTH").has("path", path)
	bob.delete(r+"/a?recursive=true").problem(403, "NOAUTH").has("path", path)
	bob.post("/v1/multi", `{"ops": [{"op": "delete", "path": "`+path+`/x"}]}`).problem(403, "NOAUTH").has("path", path)
	alice.post(r+"/a/shut?acl=auth::r", "").want(201)
	bob.post(r+"/a/shut/x", "").problem(403, "NOAUTH").has("path", path+"/shut")
	alice.get(r + "/a").want(200)
	a := alice.get(r + "/a?acl").want(200)
	a.has("acl.0.scheme", "digest").has("acl.0.perms", "cdrwa").has("stat.aversion", 0)
	bob.put(r+"/a?acl=world:anyone:r", "").problem(403, "NOAUTH")
	alice.put(r+"/a?acl=world:anyone:r,auth::cdrwa&version=1", "").problem(412, "BADVERSION")
	alice.put(r+"/a?acl=world:anyone:r,auth::cdrwa&version=0", "").want(200).has("stat.aversion", 1)
	bob.get(r + "/a").want(200)
	bob.get(r+"/a?acl").want(200).has("acl.1.id", "alice:x")
	c.with(basic("super:secret")).put(r+"/a?acl", `{"acl": [{"scheme":"world","id":"anyone","perms":"cdrwa"}]}`).want(200)
	bob.put(r+"/a", "mine").want(200)
	c.put(r+"/a?acl=auth::r", "").problem(400, "INVALIDACL")
	c.put(r+"/a?acl", "").problem(400, "INVALIDACL")
	c.put(r+"/a?acl", `{"acl": [{"scheme":"world","id":"anyone","perms":"q"}]}`).problem(400, "INVALIDACL")
	c.put(r+"/a?acl", `{"lca": []}`).want(400).contains("lca")
	c.with("Authorization: Bearer x").get(r+"/a").problem(401, "AUTHFAILED")
	c.put(r+"/a?acl=world:anyone:r", "data that would be lost").want(400).has("parameter", "acl")
	c.put(r+"/a?acl=digest:u:ab+c=:r", "").problem(400, "INVALIDACL").contains("%2B")
	c.post(r+"/b?acl=foo:bob:r", "").problem(400, "INVALIDACL").has("parameter", "acl")
	c.with(`If-Match: "0x1"`).put(r+"/a?acl=world:anyone:r", "").want(400).contains("aversion")
}

func TestZnode_Quota(t *testing.T) {
	c := newClient(t, shared().urls[0])
	r := root(t, c)
	q := "/v1/znodes/zookeeper/quota/" + strings.TrimPrefix(r, "/v1/znodes/")
	c.post(q+"/zookeeper_limits?parents=true", "count=-1,bytes=-1=;byteHardLimit=4;countHardLimit=-1").want(201)
	c.post(q+"/zookeeper_stats", "count=1,bytes=0").want(201)
	c.put(r, "too long").problem(403, "QUOTAEXCEEDED")
}

func TestZnode_TooLarge(t *testing.T) {
	c := newClient(t, shared().urls[0])
	r := root(t, c)
	c.put(r, strings.Repeat("x", 1<<20-1)).want(200)
	c.put(r, strings.Repeat("x", 1<<20)).want(413).contains("more than 1048575 bytes")
	c.post(r+"/a", strings.Repeat("x", 1<<20)).want(413)
	c.put(r, "").want(200)
}
