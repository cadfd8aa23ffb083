package api_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/zk-lite/zk-lite/api"
	"github.com/zk-lite/zk-lite/app/config"
	zkclient "github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/internal/testkit/tier"
)

// AdminServer's commands showed to everyone what ACLs hide, and so did the resource of a session with its watches
// and identities. No GET of any operation tells a stranger of it; administrators see it.
func TestRegression_Strangers_AreNotToldWhatACLsHide(t *testing.T) {
	tier.Seconds(t)
	for name, super := range map[string]string{"with a super user": superDigest, "with none": ""} {
		e := fresh(t, 1, func(s *config.Settings) { s.Auth.SuperDigest = super })
		id := hideSomething(t, e)
		stranger, n := newClient(t, e.urls[0]).with(basic("mallory:x")), 0
		for _, target := range readable(t, stranger, id) {
			a := stranger.once("GET", target)
			for _, secret := range []string{"hidden", "missing", "alice"} {
				if strings.Contains(string(a.body), secret) {
					t.Errorf("%s: %s is told of %s: %s", name, a.what, secret, a.body)
				}
			}
			if n++; a.status == 404 {
				t.Errorf("%s: %s is 404, want any other answer: %s", name, a.what, a.body)
			}
		}
		if n < 50 {
			t.Errorf("only %d GETs", n)
		}
		if super == "" {
			stranger.get("/commands/watches").want(200).contains("/open")
			continue
		}
		admin := operator(t, e.urls[0])
		for _, command := range []string{"dump", "watches", "wchp"} {
			stranger.get("/commands/"+command).problem(403, "NOAUTH")
			admin.get("/commands/" + command).want(200).contains("hidden")
		}
		for _, command := range []string{"cons", "stat"} {
			stranger.get("/commands/"+command).problem(403, "NOAUTH")
			admin.get("/commands/" + command).want(200).contains("127.0.0.1")
		}
		admin.get("/v1/sessions/" + id).want(200).contains("/private/hidden").contains("/private/missing").contains("alice")
		admin.get("/v1/watchers/private/hidden").want(200).has("watchers.0.session", id)
		stranger.get("/v1/watchers/private/hidden").problem(403, "NOAUTH")
		stranger.get("/v1/watchers/private/missing").problem(403, "NOAUTH")
		stranger.get("/v1/watchers/open").want(200).has("watchers.0.session", id)
		stranger.with().get("/v1/sessions/"+id).want(200).has("connection.watches.0.path", "/open")
	}
}

// hideSomething has a session own, and watch, what only its user may read.
func hideSomething(t *testing.T, e *ensemble) (session string) {
	t.Helper()
	zk := connectTo(t, fmt.Sprintf("127.0.0.1:%d", e.settings[0].ClientPort))
	if err := zk.AddAuth(t.Context(), "digest", []byte("alice:secret")); err != nil {
		t.Fatal(err)
	}
	acl, err := zkclient.DigestACL(zkclient.PermAll, "alice", "secret")
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := zk.Create(t.Context(), "/private", nil, zkclient.Persistent, acl...); err != nil {
		t.Fatal(err)
	}
	if _, _, err := zk.Create(t.Context(), "/private/hidden", nil, zkclient.Ephemeral, acl...); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/private/hidden", "/private/missing", "/open"} {
		if _, _, _, err := zk.ExistsW(t.Context(), path); err != nil {
			t.Fatal(err)
		}
	}
	return fmt.Sprintf("0x%x", uint64(zk.SessionID()))
}

// readable are the resources that can be read: every GET that waits for nothing, and AdminServer's
// commands.
func readable(t *testing.T, c *client, session string) (targets []string) {
	t.Helper()
	fill := strings.NewReplacer("{path}", "private", "{id}", session, "{ticket}", "x", "{name}", "x")
	for _, r := range api.Routes() {
		switch {
		case r.Method != http.MethodGet, r.Pattern == "/commands/{command}":
		case r.Pattern == "/openapi.json", r.Pattern == "/docs", strings.HasPrefix(r.Pattern, "/ui"):
			// They are the same for all.
		case r.Pattern == "/v1/watches/{path}":
			targets = append(targets, "/v1/watches/private?wait=0s&kind=recursive&since=0x0")
		case r.Pattern == "/v1/feed/{path}":
			targets = append(targets, "/v1/feed/private?wait=0s&since=0x0")
		case r.Pattern == "/v1/znodes/{path}":
			for _, more := range []string{"", "?children", "?children&stat&data", "?acl", "?about", "?raw"} {
				targets = append(targets, "/v1/znodes/private"+more)
			}
		case r.Pattern == "/v1/acl/{path}":
			targets = append(targets, "/v1/acl/private?identity=digest:mallory")
		case r.Pattern == "/v1/search/{path}":
			targets = append(targets, "/v1/search/", "/v1/search/private?owner=any")
		case r.Pattern == "/v1/recipes":
			targets = append(targets, r.Pattern, "/v1/recipes?below=/private", "/v1/recipes?kind=group")
		default:
			targets = append(targets, fill.Replace(r.Pattern))
		}
	}
	for _, command := range c.get("/commands/none").want(404).field("commands").([]any) {
		targets = append(targets, "/commands/"+command.(string))
	}
	return targets
}

// A server that asks clients for an identity shows clients without one nothing of others.
func TestRegression_Commands_AskForAnIdentity(t *testing.T) {
	tier.Seconds(t)
	e := fresh(t, 1, func(s *config.Settings) { s.Auth.SuperDigest, s.Auth.Schemes = "", []string{"digest"} })
	c := newClient(t, e.urls[0])
	for _, command := range []string{"dump", "watches", "watches_by_path", "connections", "stats"} {
		if a := c.get("/commands/" + command).want(401); a.json["title"] != "an identity is needed" {
			t.Errorf("%s is answered with %s, want: an identity is needed", a.what, a.body)
		}
		c.with(basic("ann:x")).get("/commands/"+command).want(200).has("error", nil)
	}
	c.get("/commands/ruok").want(200)
	c.get("/commands/mntr").want(200)
}

// For an unreadable znode, If-Match answered 412 to a wrong version, and 401 to the right one.
func TestRegression_IfMatch_TellsNoVersionOfWhatIsHidden(t *testing.T) {
	e := shared()
	c := newClient(t, e.urls[0])
	ann, r := c.with(basic("ann:secret")), root(t, c)
	dir := strings.TrimPrefix(r, "/v1/znodes")
	ann.post(r+"/private?acl=auth::cdrwa", "").want(201)
	ann.post(r+"/private/below?acl=auth::cdrwa", "").want(201)
	right := ann.get(r + "/private/below").want(200).header.Get("ETag")
	var bodies []string
	for _, etag := range []string{right, `"0x1"`} {
		for _, who := range []*client{c, c.at(e.urls[1])} {
			asked := who.with("If-Match: " + etag)
			bodies = append(bodies,
				string(asked.put(r+"/private/below", "x").problem(401, "NOAUTH").body),
				string(asked.delete(r+"/private/below").problem(401, "NOAUTH").body),
				string(asked.delete(r+"/private/below?recursive=true").problem(401, "NOAUTH").body))
			for _, op := range []string{"set", "delete", "check"} {
				body := fmt.Sprintf(`{"ops":[{"op":"check","path":"/"},{"op":%q,"path":"%s/private/below","mzxid":%s},{"op":"check","path":"/"}]}`,
					op, dir, etag)
				bodies = append(bodies, string(who.post("/v1/multi", body).problem(401, "NOAUTH").
					has("failed", 1).has("results.2.error", "RUNTIMEINCONSISTENCY").body))
			}
		}
	}
	half := len(bodies) / 2
	for i := range half {
		if bodies[i] != bodies[half+i] {
			t.Errorf("with the right version %s, with a wrong one %s", bodies[i], bodies[half+i])
		}
	}
	// A client with the right learns the reason.
	ann.with(`If-Match: "0x1"`).put(r+"/private/below", "x").problem(412, "BADVERSION")
	ann.with("If-Match: "+right).put(r+"/private/below", "x").want(200)
	c.post(r+"/open", "").want(201)
	c.with(`If-Match: "0x1"`).put(r+"/open", "x").problem(412, "BADVERSION")
	c.with(`If-Match: "0x1"`).put(r+"/none", "x").problem(404, "NONODE")
}

// The owner of a lock or of a member was shown to clients that may not read it.
func TestRegression_Owners_OfWhatIsHidden(t *testing.T) {
	c := newClient(t, shared().urls[0])
	r := root(t, c)
	dir := strings.TrimPrefix(r, "/v1/znodes")
	ann := newCoordinator(t, shared().urls[0]).with(basic("ann:secret"))
	ann.post(r+"/g?acl=auth::cdrwa,world:anyone:c", "").want(201)
	ann.put("/v1/groups"+dir+"/g/members/w1?acl=auth::cdrwa", "").want(201)
	owner := ann.get(r + "/g/w1").want(200).text("stat.ephemeralOwner")
	ticket := ann.post("/v1/locks"+dir+"/g?acl=auth::cdrwa", "").want(200).text("ticket")
	stranger := newCoordinator(t, shared().urls[0])
	for _, a := range []*answer{
		stranger.delete("/v1/groups" + dir + "/g/members/w1"), stranger.put("/v1/groups"+dir+"/g/members/w1", "x"),
		stranger.delete("/v1/locks" + dir + "/g/" + ticket), stranger.delete("/v1/elections" + dir + "/g/" + ticket),
	} {
		if a.status < 400 || strings.Contains(string(a.body), owner) {
			t.Errorf("%s: %d %s, want a problem that does not name the owner", a.what, a.status, a.body)
		}
	}
	other := newCoordinator(t, shared().urls[0]).with(basic("ann:secret"))
	other.delete("/v1/groups"+dir+"/g/members/w1").problem(403, "NOAUTH").contains(owner)
}
