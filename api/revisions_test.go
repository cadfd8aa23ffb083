package api_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/zk-lite/zk-lite/api"
	"github.com/zk-lite/zk-lite/app/config"
	"github.com/zk-lite/zk-lite/server/audit"
)

// revisionsOf is the URL of the operations on a znode's revisions.
func revisionsOf(znode string) string {
	return "/v1/revisions" + strings.TrimPrefix(znode, "/v1/znodes")
}

// values are the revisions of an answer as text, the newest first.
func (a *answer) values() (all []string) {
	a.Helper()
	for _, x := range a.want(200).field("revisions").([]any) {
		r := x.(map[string]any)
		text := fmt.Sprintf("%v %v", r["event"], r["data"])
		if r["purged"] == true {
			text = fmt.Sprintf("%v, purged", r["event"])
		}
		all = append(all, text)
	}
	return all
}

func (a *answer) hasValues(want ...string) {
	a.Helper()
	if got := a.values(); !slices.Equal(got, want) {
		a.Errorf("%s: got %q, want %q", a.what, got, want)
	}
}

// A znode's values are there with who wrote them and when, page by page, at every server, also when it is gone.
func TestRevisions(t *testing.T) {
	e := shared()
	c := newClient(t, e.urls[0])
	r := root(t, c)
	dir := strings.TrimPrefix(r, "/v1/znodes")
	c.with(basic("alice:a")).post(r+"/a", "one").want(201)
	two := c.put(r+"/a", "two").want(200).text("stat.mzxid")
	c.post("/v1/multi", strings.ReplaceAll(`{"ops":[{"op":"set","path":"DIR/a","data":"never seen"},
		{"op":"set","path":"DIR/a","data":"/w==","encoding":"base64"}]}`, "DIR", dir)).want(200)
	gone := c.delete(r + "/a").want(204).header.Get("Zk-Zxid")
	c.post(r+"/a", "new").want(201)
	for _, url := range e.urls {
		c := c.at(url)
		a := c.get(r + "/a?revisions&consistency=linearizable")
		a.hasValues("created new", "deleted /w==", "changed /w==", "changed two", "created one")
		a.has("revisions.4.author.0.id", "alice:x").has("revisions.3.zxid", two).has("revisions.3.version", 1)
		page := c.get(r + "/a?revisions&limit=2")
		page.hasValues("created new", "deleted /w==")
		c.get(r+"/a?revisions&limit=3&after="+page.text("next")).hasValues("changed /w==", "changed two", "created one")
		c.get(r+"/a?at="+two).want(200).has("data", "two").has("version", 1).has("event", "changed")
		c.get(r+"/a?at="+gone).problem(404, "NONODE").contains("did not exist")
	}
	c.get(r+"/none?revisions").problem(404, "NONODE")
	c.get(r+"/none?at="+gone).problem(404, "NONODE")
	c.get(r + "?revisions").hasValues("created ")
	for target, param := range map[string]string{
		"?revisions&raw": "raw", "?at=0x1&acl": "acl", "?at=5": "at", "?at=0x1&limit=1": "limit", "?revisions&limit=0": "limit",
		"?revisions&at=0x1": "at", "?revisions=no": "revisions", "?revisions=false": "revisions", "?at=0x7fffffffffffffff": "at",
	} {
		c.get(r+"/a"+target).want(400).has("parameter", param)
	}
}

// Reading a former value needs READ under the ACL of that time and under the present one.
func TestRevisions_ObeyACLs(t *testing.T) {
	c := newClient(t, shared().urls[0])
	r := root(t, c)
	const alone, open = `{"acl":[{"scheme":"auth","id":"","perms":"cdrwa"}]}`, `{"acl":[{"scheme":"world","id":"anyone","perms":"cdrwa"}]}`
	alice := c.with(basic("alice:a"))
	hidden := alice.post(r+"/a?acl=auth::cdrwa", "secret").want(201).text("stat.mzxid")
	alice.put(r+"/a?acl", open).want(200)
	c.get(r+"/a?at="+hidden).problem(401, "NOAUTH")
	shown := alice.put(r+"/a", "shown").want(200).text("stat.mzxid")
	c.get(r + "/a?revisions").hasValues("changed shown")
	c.get(r+"/a?at="+hidden).problem(401, "NOAUTH")
	c.get(r+"/a?at="+shown).want(200).has("data", "shown")
	c.post(revisionsOf(r)+"/a?to="+hidden, "").want(200) // the ACL was open when that value was replaced
	alice.put(r+"/a?acl", alone).want(200)
	for _, target := range []string{"?revisions", "?at=" + shown, "?at=" + hidden} {
		a := c.get(r+"/a"+target).problem(401, "NOAUTH")
		if strings.Contains(string(a.body), "secret") || strings.Contains(string(a.body), "shown") {
			t.Errorf("%s: the answer has a value: %s", target, a.body)
		}
	}
	c.post(revisionsOf(r)+"/a?to="+shown, "").problem(401, "NOAUTH")
	c.delete(revisionsOf(r)+"/a").problem(401, "NOAUTH")
	alice.get(r+"/a?revisions").hasValues("changed secret", "changed shown", "created secret")
	alice.delete(r + "/a").want(204)
	c.get(r+"/a?revisions").hasValues("changed secret", "changed shown")
}

// A purged value is gone from all servers, and from one that starts again; the present one stays.
func TestRevisions_Purge(t *testing.T) {
	e := fresh(t, 3, patient)
	c := newClient(t, e.urls[0])
	r := root(t, c)
	begin := c.get(r).want(200).header.Get("Zk-Zxid")
	leaked := c.post(r+"/a", "secret").want(201).text("stat.mzxid")
	c.put(r+"/a", "secret, too").want(200)
	c.put(r+"/a", "harmless").want(200)
	c.post(r+"/a/b", "secret below").want(201)
	c.post(r+"/a/gone", "secret gone").want(201)
	c.delete(r + "/a/gone").want(204)
	c.post(r+"/ab", "beside").want(201)
	alice := c.with(basic("alice:a"))
	alice.post(r+"/a/alice?acl=auth::cdrwa,world:anyone:r", "hers").want(201)
	alice.put(r+"/a/alice", "hers now").want(200)

	c.delete(revisionsOf(r) + "/a?recursive").want(204)
	c.put(r+"/a", "after").want(200)
	check := func(c *client) {
		t.Helper()
		c.get(r+"/a?revisions&consistency=linearizable").hasValues("changed after", "changed, purged", "changed, purged", "created, purged")
		c.get(r + "/a/b?revisions").hasValues("created secret below") // the present value
		c.get(r+"/a/gone?revisions").hasValues("deleted, purged", "created, purged")
		c.get(r + "/ab?revisions").hasValues("created beside")
		c.get(r+"/a/alice?revisions").hasValues("changed hers now", "created hers") // it may not be written
		c.get(r + "/a?at=" + leaked).want(410).contains("purged")
		c.post(revisionsOf(r)+"/a?to="+leaked, "").want(410).contains("purged")
		feed := c.get(feedOf(r) + "?before=true&wait=0s&since=" + begin).want(200)
		if strings.Contains(string(feed.body), "secret") {
			t.Errorf("the feed has a purged value: %s", feed.body)
		}
		feed.has("transactions.1.changes.0.purged", true)
	}
	for _, url := range e.urls {
		check(c.at(url))
	}
	c.delete(r + "/a/b").want(204)
	c.delete(revisionsOf(r) + "/a/b").want(204)
	c.get(r+"/a/b?revisions").hasValues("deleted, purged", "created, purged")
	e.stop(2)
	e.start(t, 2)
	e.waitReady(t, 2)
	check2 := c.at(e.urls[2]).get(feedOf(r) + "?before=true&wait=0s&since=" + begin)
	if check2.status == 200 && strings.Contains(string(check2.body), "secret") {
		t.Errorf("after a start the feed has a purged value: %s", check2.body)
	}
	c.at(e.urls[2]).get(r+"/a?revisions&consistency=linearizable").want(200).has("revisions.1.purged", true)
}

// A server says from when on it knows values, and that of a znode that has not changed since is known all the same.
func TestRevisions_Window(t *testing.T) {
	e := fresh(t, 1, func(s *config.Settings) { s.Server.ChangesWindow = 1 << 20 })
	c := newClient(t, e.urls[0])
	r := root(t, c)
	old := c.post(r+"/old", "old").want(201).text("stat.mzxid")
	first := c.post(r+"/a", "one").want(201).text("stat.mzxid")
	var floor string
	for i := range 12 {
		floor = c.put(r+"/a", strings.Repeat(fmt.Sprint(i%10), 100_000)).want(200).text("stat.mzxid")
	}
	a := c.get(r + "/a?revisions&limit=1000").want(200)
	if n := len(a.values()); n < 3 || n > 11 {
		t.Errorf("got %d revisions, want 3 to 11 in a window of a megabyte", n)
	}
	c.get(r+"/a?at="+first).want(410).has("parameter", "at").contains("since " + a.text("since"))
	c.post(revisionsOf(r)+"/a?to="+first, "").want(410).has("parameter", "to")
	c.get(r+"/a?at="+a.text("since")).want(200).has("encoding", "utf-8")
	c.get(r+"/a?at="+floor).want(200).has("version", 12)
	c.get(r+"/old?at="+old).want(200).has("data", "old")
	c.get(r + "/old?revisions").hasValues()
}

// did are the changes and what is left of a revert, as text.
func (a *answer) did() (all []string) {
	a.Helper()
	for _, x := range a.want(200).field("changes").([]any) {
		all = append(all, fmt.Sprintf("%v %v", x.(map[string]any)["action"], x.(map[string]any)["path"]))
	}
	for _, x := range a.field("left").([]any) {
		all = append(all, fmt.Sprintf("leave %v: %v", x.(map[string]any)["path"], x.(map[string]any)["reason"]))
	}
	return all
}

// A revert is one transaction: what was deleted comes back as it was, what was created since goes, ephemeral znodes
// stay. What has changed since the plan was seen prevents it.
func TestRevert(t *testing.T) {
	c := newClient(t, shared().urls[0])
	r := root(t, c)
	_, holder := c.session("1m")
	alice := c.with(basic("alice:a"))
	alice.post(r+"/gone?acl=auth::cdrwa,world:anyone:cdr", "gone").want(201)
	c.post(r+"/gone/below?mode=container", "/w==").want(201)
	c.post(r+"/short?mode=ttl&ttl=1h", "").want(201)
	c.post(r+"/short/below", "").want(201)
	c.post(r+"/same", "same").want(201)
	c.post(r+"/untouched", "").want(201)
	holder.post(r+"/mine?mode=ephemeral", "1").want(201)
	to := c.post(r+"/set", "before").want(201).text("stat.mzxid")

	c.put(r+"/set", "between").want(200)
	c.put(r+"/set", "after").want(200)
	c.put(r+"/same", "other").want(200)
	c.put(r+"/same", "same").want(200)
	c.put(r+"/mine", "2").want(200)
	c.delete(r + "/gone?recursive").want(204)
	c.delete(r + "/short?recursive").want(204)
	c.post(r+"/new", "").want(201)
	c.post(r+"/new/child", "").want(201)
	c.post(r+"/brief", "").want(201)
	c.delete(r + "/brief").want(204)
	c.post(r+"/kept", "").want(201)
	holder.post(r+"/kept/theirs?mode=ephemeral", "").want(201)

	dir := strings.TrimPrefix(r, "/v1/znodes")
	do := func(query string) *answer { return c.post(revisionsOf(r)+"?to="+to+query, "") }
	want := strings.Split(strings.ReplaceAll("create DIR/gone,create DIR/gone/below,set DIR/set,delete DIR/new/child,"+
		"delete DIR/new,leave DIR/kept/theirs: ephemeral,leave DIR/mine: ephemeral,"+
		"leave DIR/short: gone; and it had a time to live,leave DIR/short/below: gone; and the znode above it is left so,"+
		"leave DIR/kept: it has ephemeral znodes below it", "DIR", dir), ",")
	plan := do("&recursive&plan")
	if got := plan.did(); !slices.Equal(got, want) {
		t.Fatalf("the plan is\n%q, want\n%q", got, want)
	}
	c.get(r+"/set").has("data", "after")
	if got := do("&plan").did(); len(got) != 0 {
		t.Errorf("not recursive, %q would be done, want nothing", got)
	}
	seen := plan.text("zxid")
	c.put(r+"/same", "changed by another").want(200)
	do("&recursive&seen="+seen).problem(412, "BADVERSION").contains(dir + "/same: changed meanwhile")
	c.put(r+"/same", "same").want(200)

	done := do("&recursive")
	if got := done.did(); !slices.Equal(got, want) {
		t.Fatalf("got\n%q, want\n%q", got, want)
	}
	c.get(r+"/set").want(200).has("data", "before").has("stat.mzxid", done.text("zxid"))
	c.get(r+"/gone/below").want(200).has("data", "/w==").has("stat.czxid", done.text("zxid"))
	c.get(r + "/new").want(404)
	c.get(r+"/mine").has("data", "2")
	alice.get(r+"/gone?acl").want(200).has("acl.0.scheme", "digest").has("acl.0.perms", "cdrwa").has("acl.1.perms", "cdr")
	c.put(r+"/gone", "x").problem(401, "NOAUTH")
	c.get(r+"/gone/below?about").has("kind", "container")
	if again := do("&recursive").did(); len(again) != 5 {
		t.Errorf("a second time %q, want only what is left", again)
	}
	c.post(revisionsOf(r)+"/set?to="+seen, "").want(200).has("changes.0.action", "set")
	c.get(r+"/set").has("data", "after")
}

// A revert that may not do all does nothing.
func TestRevert_Refusals(t *testing.T) {
	c := newClient(t, shared().urls[0])
	r := root(t, c)
	alice := c.with(basic("alice:a"))
	c.post(r+"/a", "1").want(201)
	alice.post(r+"/theirs?acl=auth::cdrwa,world:anyone:r", "1").want(201)
	to := c.post(r+"/p/b?parents", "1").want(201).text("stat.mzxid")
	c.put(r+"/a", "2").want(200)
	alice.put(r+"/theirs", "2").want(200)
	c.post(revisionsOf(r)+"?recursive&to="+to, "").problem(401, "NOAUTH").contains("/theirs")
	c.get(r+"/a").has("data", "2")
	alice.post(r+"/hidden?acl=auth::cdrwa", "").want(201)
	alice.delete(r + "/hidden").want(204)
	for _, seen := range []string{"", "&seen=" + to} {
		a := c.post(revisionsOf(r)+"?recursive&to="+to+seen, "").problem(401, "NOAUTH")
		if strings.Contains(string(a.body), "/hidden") {
			t.Errorf("the answer names a znode that may not be read: %s", a.body)
		}
	}
	c.delete(r + "/p?recursive").want(204)
	c.post(revisionsOf(r)+"/p/b?to="+to, "").problem(404, "NONODE") // its parent is not there
	c.post(revisionsOf(r)+"/p?recursive&to="+to, "").want(200).has("changes.1.action", "create")
	c.post(revisionsOf(r)+"/none?to="+to, "").problem(404, "NONODE")
	for query, param := range map[string]string{
		"": "to", "?to=5": "to", "?to=0x7fffffffffffffff": "to", "?to=0x1&plan=x": "plan", "?to=0x1&seen=x": "seen",
	} {
		c.post(revisionsOf(r)+query, "").want(400).has("parameter", param)
	}
	first := c.post(r+"/many", "").want(201).text("stat.mzxid")
	for i := range 2 {
		ops := make([]string, 6000)
		for k := range ops {
			ops[k] = fmt.Sprintf(`{"op":"create","path":"%s/many/%d"}`, strings.TrimPrefix(r, "/v1/znodes"), i*len(ops)+k)
		}
		c.post("/v1/multi", `{"ops":[`+strings.Join(ops, ",")+`]}`).want(200)
	}
	c.post(revisionsOf(r)+"/many?recursive&to="+first, "").want(409).contains("more than 10000")
}

func TestRevisions_Purge_IsAudited(t *testing.T) {
	e := fresh(t, 1)
	file := filepath.Join(t.TempDir(), "audit.log")
	log := audit.Open(audit.Config{File: file, MaxBytes: 1 << 20, Keep: 1})
	_, url := serve(t, e.nodes[0], func(c *api.Config) { c.REST.Audit = log })
	c := newClient(t, url)
	c.with(basic("alice:a")).post("/v1/znodes/hers?acl=auth::cdrwa", "").want(201)
	c.delete("/v1/revisions/hers").problem(401, "NOAUTH")
	c.with(basic("bob:b")).delete("/v1/revisions/gone?recursive").want(204)
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"operation=purge\tznode=/hers\tresult=failure\treason=NOAUTH", "user=127.0.0.1,bob\tip=127.0.0.1\toperation=purge\tznode=/gone\tresult=success",
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the audit log is\n%swant a line with %q", text, want)
		}
	}
}
