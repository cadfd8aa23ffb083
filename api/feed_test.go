package api_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/zk-lite/zk-lite/app/config"
)

// feedOf is the URL of the feed of a znode.
func feedOf(znode string) string { return "/v1/feed" + strings.TrimPrefix(znode, "/v1/znodes") }

// lines are a transaction's changes as text.
func lines(transaction map[string]any, dir string) (all []string) {
	for _, x := range transaction["changes"].([]any) {
		e := x.(map[string]any)
		line := fmt.Sprintf("%v %v=%v", e["event"], strings.TrimPrefix(e["path"].(string), dir), e["data"])
		if b, ok := e["before"].(map[string]any); ok {
			line += fmt.Sprintf(" was %v", b["data"])
		}
		all = append(all, line)
	}
	return all
}

// A feed has each transaction as a whole, with values, author and trace.
func TestFeed_Poll(t *testing.T) {
	c := newClient(t, shared().urls[0])
	r := root(t, c)
	dir := strings.TrimPrefix(r, "/v1/znodes")
	at := c.get(r).want(200).header.Get("Zk-Zxid")
	const trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	alice := c.with(basic("alice:a"), "Traceparent: "+trace)
	alice.post(r+"/a", "one").want(201)
	c.put(r+"/a", "two").want(200)
	c.post("/v1/multi", strings.ReplaceAll(`{"ops":[{"op":"set","path":"DIR/a","data":"three"},
		{"op":"create","path":"DIR/b","data":"/w==","encoding":"base64"}, {"op":"delete","path":"DIR/a"}]}`, "DIR", dir)).want(200)
	a := c.get(feedOf(r) + "?before=true&wait=10s&since=" + at).want(200)
	var got []string
	for _, x := range a.field("transactions").([]any) {
		got = append(got, strings.Join(lines(x.(map[string]any), dir), ", "))
	}
	want := []string{
		"created /a=one", "changed /a=two was one", "changed /a=three was two, created /b=/w==, deleted /a=three",
	}
	if !slices.Equal(got, want) {
		t.Errorf("the feed has\n%q, want\n%q", got, want)
	}
	a.has("transactions.0.author.0.scheme", "digest").has("transactions.0.author.0.id", "alice:x").
		has("transactions.0.traceparent", trace).has("transactions.0.changes.0.type", "persistent").
		has("transactions.0.changes.0.stat.version", 0.0).has("transactions.2.changes.1.encoding", "base64")
	if author := a.field("transactions.1.author").([]any); len(author) != 0 {
		t.Errorf("the author of an anonymous change is %v, want nothing: addresses are for administrators", author)
	}
	c.get(feedOf(r) + "?wait=0s&since=" + a.text("zxid")).want(200).contains(`"transactions":[]`)
	filtered := c.get(feedOf(r) + "?events=created,deleted&types=persistent&wait=0s&since=" + at).want(200)
	if n := len(filtered.field("transactions.1.changes").([]any)); n != 2 {
		t.Errorf("%d changes of the multi were created or deleted, want 2: %s", n, filtered.body)
	}
	c.get(feedOf(r) + "?types=ephemeral,ttl&wait=0s&since=" + at).want(200).contains(`"transactions":[]`)
	c.post(r+"/b/below", "").want(201)
	children := c.get(feedOf(r) + "?events=children&wait=0s&since=" + at).want(200)
	if n := len(children.field("transactions").([]any)); n != 2 || bytes.Contains(children.body, []byte("changed")) {
		t.Errorf("children came and went in %d transactions, want 2 without changes: %s", n, children.body)
	}
	for target, param := range map[string]string{
		"?events=moved": "events", "?types=": "types", "?before=x": "before", "?since=5": "since",
	} {
		c.get(feedOf(r)+target).want(400).has("parameter", param)
	}
}

// Of what it may not read at the time of a change, a client learns nothing; of what it may no longer read, no values.
func TestFeed_ObeysACLs(t *testing.T) {
	c := newClient(t, shared().urls[0])
	r := root(t, c)
	at := c.get(r).want(200).header.Get("Zk-Zxid")
	alice := c.with(basic("alice:a"))
	alice.post(r+"/hidden?acl=auth::cdrwa", "secret").want(201)
	alice.post(r+"/leaked", "secret").want(201)
	alice.put(r+"/leaked?acl", `{"acl":[{"scheme":"auth","id":"","perms":"cdrwa"}]}`).want(200)
	alice.put(r+"/leaked", "more").want(200)
	a := c.get(feedOf(r) + "?before=true&wait=0s&since=" + at).want(200)
	if n := len(a.field("transactions").([]any)); n != 1 || strings.Contains(string(a.body), "secret") {
		t.Errorf("got %s, want one transaction, without its value", a.body)
	}
	a.has("transactions.0.changes.0.hidden", true)
	alice.get(feedOf(r)+"?before=true&wait=0s&since="+at).want(200).has("transactions.2.changes.0.before.data", "secret")
}

// A stream continues at another server: it has each transaction once, whole.
func TestFeed_Stream_ResumesAnywhere(t *testing.T) {
	e := shared()
	c := newClient(t, e.urls[0])
	r := root(t, c)
	dir := strings.TrimPrefix(r, "/v1/znodes")
	since := c.get(r).want(200).header.Get("Zk-Zxid")
	const total = 60
	var writer sync.WaitGroup
	defer writer.Wait()
	writer.Go(func() {
		for i := range total {
			c.post("/v1/multi", fmt.Sprintf(`{"ops":[{"op":"create","path":"%s/a%d","data":"%[2]d"},
				{"op":"set","path":"%[1]s/a%[2]d","data":"x%[2]d"}]}`, dir, i))
		}
	})
	for got, at := 0, 0; got < total; at++ {
		s := c.at(e.urls[at%len(e.urls)]).stream(feedOf(r) + "?before=true&since=" + since)
		for n := 0; n < 7 && got < total; {
			event, err := s.next()
			if err != nil {
				t.Fatal(err)
			}
			since = event.id
			if event.name != "transaction" {
				continue
			}
			want := []string{fmt.Sprintf("created /a%d=%[1]d", got), fmt.Sprintf("changed /a%d=x%[1]d was %[1]d", got)}
			if all := lines(event.json, dir); !slices.Equal(all, want) {
				t.Fatalf("transaction %d has %q, want %q", got, all, want)
			}
			got, n = got+1, n+1
		}
		s.close()
	}
}

// A server keeps the bytes of changes that its setting says; who comes later learns it.
func TestFeed_Window(t *testing.T) {
	e := fresh(t, 1, func(s *config.Settings) { s.Server.ChangesWindow = 1 << 20 })
	c := newClient(t, e.urls[0])
	r := root(t, c)
	since := c.get(r).want(200).header.Get("Zk-Zxid")
	for range 12 {
		c.put(r, strings.Repeat("x", 100_000)).want(200)
	}
	c.get(feedOf(r)+"?wait=0s&since="+since).want(410).has("parameter", "since").contains("read the znodes again")
	c.get(feedOf(r) + "?wait=0s&since=" + c.put(r, "last").want(200).text("stat.mzxid")).want(200)
}

// Streams share the texts of transactions, and yet each client gets what a poll, which shares none, answers it: an
// administrator addresses, who asks for them values from before, and no one what is hidden from him.
func TestFeed_Stream_SharedTexts(t *testing.T) {
	c := newClient(t, shared().urls[0])
	r := root(t, c)
	at := c.get(r).want(200).header.Get("Zk-Zxid")
	alice := c.with(basic("alice:a"))
	alice.post(r+"/open", "one").want(201)
	alice.put(r+"/open", "two").want(200)
	alice.post(r+"/leaked", "secret").want(201)
	alice.put(r+"/leaked", "more").want(200)
	alice.put(r+"/leaked?acl", `{"acl":[{"scheme":"auth","id":"","perms":"cdrwa"}]}`).want(200)
	alice.put(r+"/open", strings.Repeat("long", 1000)).want(200)
	all := []*client{c, alice, operator(t, c.url)}
	texts := map[string]bool{}
	for range 2 { // in both orders
		for _, who := range all {
			for _, query := range []string{"?since=" + at, "?before=true&since=" + at, "?events=changed&since=" + at} {
				want := who.get(feedOf(r) + query + "&wait=0s").want(200).field("transactions").([]any)
				s := who.stream(feedOf(r) + query)
				for i := range want {
					e, err := s.next()
					for err == nil && e.name != "transaction" {
						e, err = s.next()
					}
					if got := fmt.Sprint(e.json); err != nil || got != fmt.Sprint(want[i]) {
						t.Fatalf("%s, %v: got %.300s, %v, want %.300v", query, who.headers, got, err, want[i])
					}
					texts[fmt.Sprint(e.json)] = true
				}
				s.close()
			}
		}
		slices.Reverse(all)
	}
	if len(texts) < 15 {
		t.Errorf("got %d different texts, want those of addresses, values before and hidden values", len(texts))
	}
}
