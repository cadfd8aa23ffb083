package api_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/internal/testkit/tier"
	"github.com/zk-lite/zk-lite/server"
	"github.com/zk-lite/zk-lite/server/backup"
	"github.com/zk-lite/zk-lite/znode"
)

// takeBackup is the file that GET /v1/snapshot sends.
func takeBackup(c *client) string {
	c.Helper()
	return string(c.get("/v1/snapshot").want(200).body)
}

// leaderOf is the index of the leader, and of two others.
func (e *ensemble) leaderOf(c *client) (leader, follower, other int) {
	c.Helper()
	for leader = -1; leader < 0; {
		_, _ = fmt.Sscan(c.get("/livez").want(200).header.Get("Zk-Leader"), &leader)
		leader--
	}
	return leader, (leader + 1) % 3, (leader + 2) % 3
}

// poller collects, with long polls one after the other, what happens below a path.
type poller struct {
	mu     sync.Mutex          // protects the fields below
	events map[string][]string // zxid → type and path
}

func (p *poller) run(t *testing.T, c *client, path, since string, done *atomic.Bool) {
	p.events = map[string][]string{}
	for !done.Load() && !t.Failed() {
		a := c.get("/v1/watches" + path + "?kind=recursive&wait=50ms&since=" + since)
		if a.status != 200 {
			t.Errorf("the long poll: %d %s, want 200", a.status, a.body)
			return
		}
		p.mu.Lock()
		for _, e := range a.json["events"].([]any) {
			e := e.(map[string]any)
			zxid := e["zxid"].(string)
			p.events[zxid] = append(p.events[zxid], fmt.Sprint(e["type"], " ", e["path"]))
		}
		p.mu.Unlock()
		since = a.text("zxid")
	}
}

// A follower restores a backup while others write, watch, and hold locks: watchers see each change once, under one
// zxid, and the servers end in the same state.
func TestRestore_UnderLoad(t *testing.T) {
	tier.Seconds(t)
	t.Parallel()
	e := fresh(t, 3)
	_, follower, other := e.leaderOf(newClient(t, e.urls[0]))
	c := operator(t, e.urls[follower])
	want := map[string]bool{}
	for i := range 40 {
		c.post(fmt.Sprintf("/v1/znodes/app/dir%d/z%d?parents=true", i%4, i), fmt.Sprint(i)).want(201)
	}
	c.post("/v1/znodes/busy", "").want(201)
	c.post("/v1/znodes/busy/same", "x").want(201)
	same := c.get("/v1/znodes/app/dir0/z0").want(200).header.Get("Etag")
	changed := c.get("/v1/znodes/app/dir1/z1").want(200).header.Get("Etag")
	_, live := c.session("1m")
	live.post("/v1/znodes/app/dir0/live?mode=ephemeral", "").want(201)
	file := takeBackup(c)

	for i := 1; i < 20; i += 2 {
		c.put(fmt.Sprintf("/v1/znodes/app/dir%d/z%d", i%4, i), "changed").want(200)
		want[fmt.Sprintf("changed /app/dir%d/z%d", i%4, i)] = true
	}
	c.delete("/v1/znodes/app/dir2?recursive=true").want(204)
	want["created /app/dir2"] = true
	for i := 2; i < 40; i += 4 {
		want[fmt.Sprintf("created /app/dir2/z%d", i)] = true
	}
	c.post("/v1/znodes/app/new/x?parents=true", "").want(201)
	live.post("/v1/znodes/app/new/gone?mode=ephemeral", "").want(201)
	want["deleted /app/new/x"], want["deleted /app/new/gone"], want["deleted /app/new"] = true, true, true
	since := c.post("/v1/sync", "").want(200).text("zxid")

	var all sync.WaitGroup
	var done atomic.Bool
	p := &poller{}
	all.Go(func() { p.run(t, newClient(t, e.urls[other]), "/app", since, &done) })
	written := make(chan struct{}, 1)
	all.Go(func() {
		w := newClient(t, e.urls[other])
		for i := 0; !done.Load(); i++ {
			if a := w.put("/v1/znodes/busy/same", fmt.Sprint(i)); a.status != 200 {
				t.Errorf("a write: %d %s", a.status, a.body)
				return
			}
			select {
			case written <- struct{}{}:
			default:
			}
		}
	})
	<-written
	c.post("/v1/snapshot", file).problem(409, "NOTEMPTY").contains("replace=true").contains("nothing was changed")
	dry := c.post("/v1/snapshot?replace&dry_run=true", file).want(200).has("dry_run", true)
	<-written
	a := c.post("/v1/snapshot?replace=true", file).want(200).has("dry_run", false).has("created", 11).
		has("deleted", 3).has("kept_ephemerals", 1).has("skipped_ephemerals", 1)
	for _, name := range []string{"created", "deleted", "kept_ephemerals"} {
		dry.has(name, int(a.field(name).(float64)))
	}
	zxid := a.text("zxid")
	if n := a.field("changed").(float64); n != 10 && n != 11 { // with /busy/same
		t.Errorf("want 10 or 11 znodes changed: %s", a.body)
	}
	<-written
	eventually(t, "the watcher has seen it", func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return len(p.events[zxid]) >= len(want) || t.Failed()
	})
	done.Store(true)
	all.Wait()
	got := slices.Sorted(slices.Values(p.events[zxid]))
	if !slices.Equal(got, slices.Sorted(maps.Keys(want))) || len(p.events) != 1 {
		t.Errorf("watched %q\nwant %q\nzxids %v, want %s", got, slices.Sorted(maps.Keys(want)), len(p.events), zxid)
	}
	for i := range 3 {
		x := newClient(t, e.urls[i])
		x.get("/v1/znodes/app/dir2/z2?consistency=linearizable").want(200).has("data", "2").has("stat.czxid", zxid)
		x.get("/v1/znodes/app/dir0/live").want(200)
		x.get("/v1/znodes/app/new").want(404)
	}
	// An earlier zxid is still a condition.
	c.with("If-Match: "+changed).put("/v1/znodes/app/dir1/z1", "late").want(412)
	c.with("If-Match: "+same).put("/v1/znodes/app/dir0/z0", "still").want(200)
	live.delete("/v1/znodes/app/dir0/live").want(204)
	e.sameState(t, c)
}

// sameState waits until all servers have the same digest.
func (e *ensemble) sameState(t *testing.T, c *client) {
	t.Helper()
	c.post("/v1/sync", "").want(200)
	eventually(t, "all servers are in the same state", func() bool {
		states := map[string]bool{}
		for _, n := range e.nodes {
			if n != nil {
				zxid, digest := n.Server().Digest()
				states[fmt.Sprint(zxid, digest)] = true
			}
		}
		return len(states) == 1
	})
}

// The leader stops while a backup is on its way: the report about it is true, and it can be
// repeated.
func TestRestore_LeaderStops(t *testing.T) {
	tier.Seconds(t)
	t.Parallel()
	e := fresh(t, 3)
	leader, follower, _ := e.leaderOf(newClient(t, e.urls[0]))
	c := operator(t, e.urls[follower])
	const count = 5
	for i := range count {
		c.post(fmt.Sprintf("/v1/znodes/%d", i), noise(i, 150_000)).want(201)
	}
	file := takeBackup(c)
	for i := range count {
		c.delete(fmt.Sprintf("/v1/znodes/%d", i)).want(204)
	}
	key := c.with("Idempotency-Key: restore")
	before := c.post("/v1/sync", "").want(200).text("zxid")
	var first *answer
	var all sync.WaitGroup
	all.Go(func() { first = key.once("POST", "/v1/snapshot", file) })
	e.stop(leader)
	all.Wait()
	switch first.status {
	case 200, 504:
	case 503, 429:
		first.contains("nothing was changed")
	default:
		t.Errorf("the restore that was cut off: %d %s, want 200, 504, 503 or 429", first.status, first.body)
	}
	var again *answer
	eventually(t, "it can be repeated", func() bool {
		again = key.once("POST", "/v1/snapshot", file)
		return again.status == http.StatusOK
	})
	again.has("created", count).has("deleted", 0)
	if first.status == 200 && string(first.body) != string(again.body) {
		t.Errorf("%s, then %s", first.body, again.body)
	}
	c.get("/v1/watches/?kind=children&wait=10s&since="+before).want(200).has("events.0.zxid", again.text("zxid"))
	for i := range count {
		c.get(fmt.Sprintf("/v1/znodes/%d", i)).want(200).has("data", noise64(i))
	}
	e.sameState(t, c)
}

// noise64 is noise as a GET shows it.
func noise64(i int) string { return base64.StdEncoding.EncodeToString([]byte(noise(i, 150_000))) }

// Whatever is wrong with a request or a file, nothing changes.
func TestRestore_Refusals(t *testing.T) {
	tier.Seconds(t)
	t.Parallel()
	e := fresh(t, 1)
	c := operator(t, e.urls[0])
	file := takeBackup(c)
	c.post("/v1/znodes/a", "x").want(201)
	full := takeBackup(c)
	zxid := c.post("/v1/sync", "").want(200).text("zxid")
	newClient(t, e.urls[0]).post("/v1/snapshot", file).problem(401, "NOAUTH")
	c.post("/v1/snapshot?replace=perhaps", file).problem(400, "BADARGUMENTS").has("parameter", "replace")
	c.post("/v1/snapshot?dryrun=true", file).problem(400, "BADARGUMENTS").has("parameter", "dryrun")
	c.post("/v1/snapshot", file).problem(409, "NOTEMPTY")
	c.with("Idempotency-Key: k").post("/v1/snapshot", file).problem(409, "NOTEMPTY")
	flipped := []byte(full)
	flipped[len(flipped)/2] ^= 4
	for what, body := range map[string]string{
		"not a snapshot": `{"hello": "world"}`, "EOF": "", "reading snapshot": full[:len(full)-3],
		"nothing was changed": string(flipped), "end: ": full + full,
	} {
		c.post("/v1/snapshot?replace=true", body).problem(400, "BADARGUMENTS").has("parameter", "body").contains(what)
		c.post("/v1/snapshot?dry_run=true", body).problem(400, "BADARGUMENTS")
	}
	foreign := relabelled(t, full, [16]byte{1})
	c.post("/v1/snapshot?replace=true", foreign).problem(409, "BADARGUMENTS").contains("other_ensemble=true")
	// A client that has much to send gets the answer, too.
	c.post("/v1/snapshot?replace=true", foreign[:state.BackupHead]+noise(1, 8<<20)).problem(409, "BADARGUMENTS")
	c.post("/v1/snapshot", full+noise(1, 8<<20)).problem(409, "NOTEMPTY")
	c.post("/v1/snapshot?dry_run=true&other_ensemble=true", foreign).want(200)
	c.post("/v1/snapshot?dry_run=true&other_ensemble=maybe", foreign).problem(400, "BADARGUMENTS")
	c.post("/v1/snapshot?dry_run=true", full[:6]+full[state.BackupHead:]).want(200) // of a build that writes no label
	own := c.get("/v1/cluster").want(200).text("ensemble")
	if id, err := state.BackupEnsemble([]byte(full)); err != nil || fmt.Sprintf("%x", id) != own {
		t.Errorf("a backup of %x, %v; the ensemble is %s", id, err, own)
	}
	req := c.request("POST", "/v1/snapshot?replace=true", "")
	req.ContentLength = backup.MaxBackup + 1
	req.Body = io.NopCloser(strings.NewReader("x"))
	req.Header.Set("Expect", "100-continue")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	body, _ := io.ReadAll(resp.Body)
	resp.Body.Close()
	if err := validate(req, resp, body); err != nil || resp.StatusCode != http.StatusRequestEntityTooLarge {
		t.Errorf("%d %s (%v), want 413 as documented", resp.StatusCode, body, err)
	}
	if now := c.post("/v1/sync", "").want(200).text("zxid"); now != zxid {
		t.Errorf("zxid %s, was %s", now, zxid)
	}

	key := c.with("Idempotency-Key: k2")
	first := key.post("/v1/snapshot?replace=true", file).want(200).has("deleted", 1)
	c.post("/v1/znodes/b", "x").want(201)
	again := key.post("/v1/snapshot?replace=true", file).want(200)
	if string(again.body) != string(first.body) || again.header.Get("Idempotency-Replayed") != "true" {
		t.Errorf("%s, then %s", first.body, again.body)
	}
	key.post("/v1/snapshot?replace=true", full).problem(422, "BADARGUMENTS").has("parameter", "Idempotency-Key")
	c.get("/v1/znodes/b").want(200)
}

// relabelled is a backup labelled as another ensemble's.
func relabelled(t *testing.T, file string, ensemble [16]byte) string {
	t.Helper()
	m, err := state.ReadSnapshot(strings.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	s := m.Snapshot()
	defer s.Release()
	var b strings.Builder
	if err := s.WriteBackup(&b, ensemble); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// One restore at a time: a second is refused while the first still arrives.
func TestRestore_OneAtATime(t *testing.T) {
	t.Parallel()
	e := fresh(t, 1)
	c := operator(t, e.urls[0])
	file := takeBackup(c)
	r, w := io.Pipe()
	got := make(chan error, 1)
	go func() {
		_, err := e.nodes[0].Server().Restore(t.Context(), r, backup.RestoreOptions{})
		got <- err
	}()
	// Once it has taken a byte in, it is under way.
	if _, err := io.WriteString(w, file[:1]); err != nil {
		t.Fatal(err)
	}
	a := c.post("/v1/snapshot", file).problem(429, "THROTTLEDOP").contains("has changed nothing")
	if a.header.Get("Retry-After") == "" {
		t.Errorf("headers %v, want Retry-After", a.header)
	}
	if _, err := io.WriteString(w, file[1:]); err != nil {
		t.Fatal(err)
	}
	w.Close()
	if err := <-got; err != nil {
		t.Error(err)
	}
	c.post("/v1/snapshot", file).want(200)
}

// unsure is a server that does not know the outcome of a restore.
type unsure struct {
	*server.Server
	err error
}

func (u unsure) Restore(context.Context, io.Reader, backup.RestoreOptions) (backup.Restored, error) {
	return backup.Restored{}, u.err
}

func TestRestore_UnknownOutcome(t *testing.T) {
	srv := shared().nodes[0].Server()
	for _, x := range []struct {
		err    error
		status int
		code   znode.Error
		says   string
	}{
		{&backup.UnknownError{Err: context.DeadlineExceeded}, 504, znode.ErrOperationTimeout, "restoring the same backup again"},
		{context.DeadlineExceeded, 503, znode.ErrConnectionLoss, "nothing was changed"},
	} {
		_, url := serveReplaced(t, shared().nodes[0], unsure{srv, x.err})
		operator(t, url).once("POST", "/v1/snapshot", "x").problem(x.status, x.code.Name()).contains(x.says)
		operator(t, url).with("Idempotency-Key: k").once("POST", "/v1/snapshot", "x").want(x.status)
	}
}
