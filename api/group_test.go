package api_test

import (
	"strings"
	"testing"
)

func TestGroup_MembersComeAndGo(t *testing.T) {
	e := shared()
	target, path := queueURL(t, "groups")
	a, b := newCoordinator(t, e.urls[0]), newCoordinator(t, e.urls[1])
	if m := a.get(target).want(200).has("path", path).field("members").([]any); len(m) != 0 {
		t.Errorf("a group that does not exist has the members %v", m)
	}
	one := a.put(target+"/members/one", "10.0.0.1:80").want(201)
	one.has("name", "one").has("path", path+"/one").has("session", a.id).has("data", "10.0.0.1:80")
	b.put(target+"/members/two%20%C3%BC", "\xff").want(201).has("name", "two ü").has("encoding", "base64")
	g := a.get(target + "?consistency=linearizable").want(200)
	g.has("members.0.name", "one").has("members.0.fencing_token", one.text("fencing_token")).has("members.1.name", "two ü")
	g.has("members.1.session", b.id)
	a.get(target + "/members/one").want(404).contains("shows it with the others")
	page := a.get(target+"?limit=1").want(200).has("members.0.name", "one").has("next", "one")
	a.get(target+"?limit=1&after="+page.text("next")).want(200).has("members.0.name", "two ü")
	// The mark that it is not healthy is shown.
	a.put(target+"/members/one", `{"healthy":false,"reason":"full","data":"x"}`).want(200).has("healthy", false).has("reason", "full")
	a.get(target).want(200).has("members.0.healthy", false).has("members.0.reason", "full").has("members.1.healthy", nil)
	// Only its owner may change it.
	a.put(target+"/members/one", "10.0.0.9:80").want(200).has("data", "10.0.0.9:80").has("fencing_token", one.text("fencing_token"))
	b.put(target+"/members/one", "mine").problem(403, "NOAUTH").contains(a.id)
	b.delete(target+"/members/one").problem(403, "NOAUTH")
	a.delete(target + "/members/one").want(204)
	a.delete(target+"/members/one").problem(404, "NONODE")
	b.delete("/v1/sessions/" + b.id).want(204)
	if m := a.get(target + "?consistency=linearizable").want(200).field("members").([]any); len(m) != 0 {
		t.Errorf("after its session ended the group has the members %v", m)
	}
}

func TestGroup_IsIdempotent(t *testing.T) {
	target, _ := queueURL(t, "groups")
	a := newCoordinator(t, shared().urls[0])
	keyed := a.with("Idempotency-Key: " + target)
	keyed.put(target+"/members/m", "x").want(201)
	if again := keyed.put(target+"/members/m", "x").want(201); again.header.Get("Idempotency-Replayed") != "true" {
		t.Error("it was done twice")
	}
	gone := a.with("Idempotency-Key: leave-" + target)
	gone.delete(target + "/members/m").want(204)
	gone.delete(target + "/members/m").want(204)
}

func TestGroup_Parameters(t *testing.T) {
	c, a := newClient(t, shared().urls[0]), newCoordinator(t, shared().urls[0])
	target, _ := queueURL(t, "groups")
	c.put(target+"/members/m", "").want(400).has("parameter", "Zk-Session")
	c.delete(target+"/members/m").want(400).has("parameter", "Zk-Session")
	a.put(target+"/members/a%2Fb", "").want(400).has("parameter", "name")
	a.put(target+"/members/..", "").want(400).has("parameter", "name")
	a.put(target+"/members/", "").want(400).has("parameter", "name")
	a.put("/v1/groups/members/m", "").want(400).has("parameter", "path")
	a.get("/v1/groups/").want(400).has("parameter", "path")
	a.get(target+"?limit=0").want(400).has("parameter", "limit")
	a.put(target+"/m", "").want(404).contains("no such resource")
	a.put(target+"/members/m?acl=x", "").want(400).has("parameter", "acl")
	a.put(target+"/members/m", strings.Repeat("x", 1<<20)).want(413)
	r := root(t, c)
	a.post(r+"/e?mode=ephemeral", "").want(201)
	a.put("/v1/groups"+strings.TrimPrefix(r, "/v1/znodes")+"/e/members/m", "").
		problem(409, "NOCHILDRENFOREPHEMERALS")
	c.post(r+"/lasting", "").want(201)
	a.put("/v1/groups"+strings.TrimPrefix(r, "/v1/znodes")+"/members/lasting", "").
		problem(403, "NOAUTH").contains("not ephemeral")
	private := a.with(basic("alice:x"))
	private.post(r+"/private?acl=auth::cdrwa", "").want(201)
	a.get("/v1/groups"+strings.TrimPrefix(r, "/v1/znodes")+"/private").problem(401, "NOAUTH")
	// A group may have any path, even one that looks like a member.
	a.put(target+"/members/x/members/m", "").want(201).has("name", "m")
	a.get(target + "/members/x").want(200)
}
