package api_test

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"
)

// recipesBelow are the places below a path, each with its participants' states.
func recipesBelow(c *client, below, query string) (places []string) {
	c.Helper()
	a := c.get("/v1/recipes?consistency=linearizable&below=" + below + query).want(200)
	for _, p := range a.field("places").([]any) {
		p := p.(map[string]any)
		text := fmt.Sprint(strings.TrimPrefix(p["path"].(string), below), " ", p["kind"], " ", p["participants"], ":")
		for _, x := range p["first"].([]any) {
			text += fmt.Sprint(" ", x.(map[string]any)["state"])
		}
		places = append(places, text)
	}
	return places
}

// What is contended comes first; each participant with its session, since when, its fencing token, its data and whom
// it waits for.
func TestRecipes(t *testing.T) {
	e := shared()
	_, dir := queueURL(t, "locks")
	a, b, x := newCoordinator(t, e.urls[0]), newCoordinator(t, e.urls[1]), newCoordinator(t, e.urls[2])
	x.post("/v1/locks"+dir+"/alone", "x").want(200)
	first := a.post("/v1/locks"+dir+"/busy", "first").want(200)
	b.post("/v1/locks"+dir+"/busy?wait=1ms", "\xff").want(202)
	x.post("/v1/locks"+dir+"/busy?wait=1ms", strings.Repeat("ü", 100)).want(202)
	a.post("/v1/elections"+dir+"/leader", "").want(200)
	b.post("/v1/elections"+dir+"/leader?wait=1ms", "").want(202)
	a.put("/v1/groups"+dir+"/group/members/web-1", "here").want(201)
	a.post("/v1/znodes"+dir+"/sem/leases/_c_a-lease-?mode=ephemeral_sequential&parents=true", "").want(201)
	for range 21 {
		a.post("/v1/znodes"+dir+"/queue/queue-?mode=persistent_sequential&parents=true", "\x00\x01\x00\x01\x01\x00\x00\x00\x04item\x02").want(201)
	}
	for query, want := range map[string][]string{
		"": {
			"/busy lock 3: holds waits waits", "/leader election 2: leads waits", "/alone lock 1: holds", "/group group 1: member",
			"/queue queue 21:" + strings.Repeat(" item", 20), "/sem/leases semaphore 1: holds",
		},
		"&contended": {"/busy lock 3: holds waits waits", "/leader election 2: leads waits"},
		"&kind=lock": {"/busy lock 3: holds waits waits", "/alone lock 1: holds"}, "&kind=read-write+lock": nil,
		"&kind=election,group": {"/leader election 2: leads waits", "/group group 1: member"},
		"&limit=1":             {"/busy lock 3: holds waits waits"},
	} {
		if got := recipesBelow(a.client, dir, query); !slices.Equal(got, want) {
			t.Errorf("%q: got %q, want %q", query, got, want)
		}
	}
	r := a.get("/v1/recipes?below="+dir+"/busy").want(200).has("places.0.first.0.session", a.id).has("places.0.waiting", 2)
	r.has("places.0.first.0.token", first.text("fencing_token")).has("places.0.first.0.data", "first").has("more", false)
	r.has("places.0.first.0.path", first.text("path")).has("places.0.first.2.data", strings.Repeat("ü", 64))
	r.has("places.0.first.2.waits_for.0", a.id).has("places.0.first.2.waits_for.1", b.id)
	holder := a.get("/v1/locks" + dir + "/busy").want(200)
	since, err := time.Parse(time.RFC3339, r.text("places.0.first.0.since"))
	if want, err2 := time.Parse(time.RFC3339, holder.text("holder.since")); err != nil || err2 != nil || !since.Equal(want) {
		t.Errorf("since %v (%v), want %v (%v)", since, err, want, err2)
	}
	if second := r.field("places.0.first.1").(map[string]any); second["data"] != nil {
		t.Errorf("data that is no text is shown: %v", second)
	}
	a.get("/v1/recipes?limit=1&below="+dir).want(200).has("more", true)
	a.get("/v1/recipes?below="+dir+"/queue").want(200).has("places.0.first.0.data", "item").has("places.0.more", true)
	a.get("/v1/recipes?below=x").problem(400, "BADARGUMENTS").has("parameter", "below")
	a.get("/v1/recipes?kind=mutex").problem(400, "BADARGUMENTS").has("parameter", "kind").contains("read-write lock")
	a.get("/v1/recipes?limit=1001").problem(400, "BADARGUMENTS").has("parameter", "limit")
	a.get("/v1/recipes?contended=yes").problem(400, "BADARGUMENTS").has("parameter", "contended")
}

// Sessions that wait for each other are named, also when the places are not shown.
func TestRecipes_Deadlock(t *testing.T) {
	e := shared()
	_, dir := queueURL(t, "locks")
	a, b := newCoordinator(t, e.urls[0]), newCoordinator(t, e.urls[0])
	a.post("/v1/locks"+dir+"/a", "").want(200)
	b.post("/v1/locks"+dir+"/b", "").want(200)
	b.post("/v1/locks"+dir+"/a?wait=1ms", "").want(202)
	c := newClient(t, e.urls[0])
	if circles := c.get("/v1/recipes?below=" + dir).want(200).field("deadlocks").([]any); len(circles) != 0 {
		t.Errorf("deadlocks %v, want none", circles)
	}
	a.post("/v1/locks"+dir+"/b?wait=1ms", "").want(202)
	r := c.get("/v1/recipes?kind=group&below="+dir).want(200).has("deadlocks.0.0", a.id).has("deadlocks.0.1", b.id)
	if n := len(r.field("deadlocks").([]any)); n != 1 {
		t.Errorf("%d deadlocks, want 1: %s", n, r.body)
	}
}

// Places below a znode that the client may not read are not told; of a znode that it may not read in one that it may,
// its name alone.
func TestRecipes_ObeyACLs(t *testing.T) {
	e := shared()
	_, dir := queueURL(t, "locks")
	a, b := newCoordinator(t, e.urls[0]), newCoordinator(t, e.urls[0])
	secret := "?acl=" + url.QueryEscape("digest:u:2qBvJzBpF3nVUTn6M6JxNsmN6Hs=:cdrwa")
	a.post("/v1/locks"+dir+"/open"+secret, "secret").want(200)
	b.post("/v1/locks"+dir+"/open?wait=1ms", "").want(202)
	a.post("/v1/locks"+dir+"/closed/lock", "secret").want(200)
	a.put("/v1/groups"+dir+"/open/members/hidden"+secret, "").want(201)
	a.put("/v1/znodes"+dir+"/closed"+secret, "").want(200)
	r := b.get("/v1/recipes?below="+dir).want(200).has("places.0.kind", "lock").has("places.0.participants", 2)
	for _, text := range []string{"secret", "closed", "hidden", a.id} {
		if strings.Contains(string(r.body), text) {
			t.Errorf("a stranger is told of %s: %s", text, r.body)
		}
	}
	r.has("places.0.first.0.state", "holds").has("places.0.first.1.session", b.id).has("places.0.first.1.state", "waits")
}

// While a lost holder's delay passes, the first in the queue waits.
func TestRecipes_LockDelay(t *testing.T) {
	e := shared()
	_, dir := queueURL(t, "locks")
	a, b := newCoordinator(t, e.urls[0]), newCoordinator(t, e.urls[0])
	a.post("/v1/locks"+dir+"?lock_delay=1h", "").want(200)
	b.post("/v1/locks"+dir+"?wait=1ms", "").want(202)
	a.delete("/v1/sessions/" + a.id).want(204)
	b.get("/v1/recipes?below="+dir).want(200).has("places.0.first.0.state", "waits").has("places.0.waiting", 1)
}
