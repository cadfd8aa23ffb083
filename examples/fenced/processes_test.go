package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strconv"
	"sync"
	"testing"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/examples/internal/testserver"
	"github.com/zk-lite/zk-lite/internal/testkit/tier"
	"github.com/zk-lite/zk-lite/internal/testkit/wait"
)

func TestMain(m *testing.M) {
	os.Exit(testserver.Main(m, map[string]testserver.Role{"holder": holderRole}))
}

// remote is a Resource in another process.
type remote struct{ url, who string }

func (r remote) Read(token int64, name string) (int, error) {
	return r.ask("read", token, name, 0)
}

func (r remote) Write(token int64, name string, value int) error {
	_, err := r.ask("write", token, name, value)
	return err
}

func (r remote) ask(what string, token int64, name string, value int) (got int, err error) {
	response, err := http.Get(fmt.Sprintf("%s/%s?who=%s&token=%d&name=%s&value=%d",
		r.url, what, url.QueryEscape(r.who), token, url.QueryEscape(name), value))
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	if response.StatusCode == http.StatusConflict {
		return 0, ErrStale
	}
	_, err = fmt.Fscan(response.Body, &got)
	return got, err
}

// holderRole adds again and again to the resource at a URL.
func holderRole(ctx context.Context, c *client.Client, name, at string) error {
	r := remote{at, name}
	h := NewHolder(c, lockPath, r)
	h.Think = func(context.Context) { _, _ = r.ask("think", 0, "", 0) }
	for {
		if _, err := h.Add(ctx, "n"); err != nil && !errors.Is(err, ErrStale) {
			return err
		}
	}
}

// desk serves a store to the holders, counts what it accepts, and can hold one of them
// up while it thinks.
type desk struct {
	store *Store

	mu       sync.Mutex // protects the fields below
	accepted int
	caught   chan string   // gets the name of the next one who thinks; nil: no one is held up
	goOn     chan struct{} // closed to let it go on
}

func (d *desk) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	token, terr := strconv.ParseInt(r.FormValue("token"), 10, 64)
	value, verr := strconv.Atoi(r.FormValue("value"))
	err := errors.Join(terr, verr)
	switch r.URL.Path {
	case "/think":
		d.think(r.FormValue("who"))
	case "/read":
		value, err = d.store.Read(token, r.FormValue("name"))
	case "/write":
		d.mu.Lock()
		if err = d.store.Write(token, r.FormValue("name"), value); err == nil {
			d.accepted++
		}
		d.mu.Unlock()
	}
	switch {
	case errors.Is(err, ErrStale):
		w.WriteHeader(http.StatusConflict)
	case err != nil:
		w.WriteHeader(http.StatusBadRequest)
	default:
		fmt.Fprint(w, value)
	}
}

func (d *desk) think(who string) {
	d.mu.Lock()
	caught, goOn := d.caught, d.goOn
	d.caught = nil
	d.mu.Unlock()
	if caught != nil {
		caught <- who
		<-goOn
	}
}

// catch holds up the next one who thinks.
func (d *desk) catch() (caught chan string, goOn chan struct{}) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.caught, d.goOn = make(chan string, 1), make(chan struct{})
	return d.caught, d.goOn
}

// sum is the value, and how many additions were accepted, at one moment.
func (d *desk) sum() (value, accepted int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.store.Value("n"), d.accepted
}

// Holders are processes. One is stopped (SIGSTOP) between reading and writing, for as
// long as it takes until others have added; one is killed; servers are killed. The one
// that was stopped is refused when it wakes up, and no addition is lost.
func TestFenced_ProcessesStoppedAndKilled(t *testing.T) {
	tier.Seconds(t)
	t.Parallel() // it mostly waits for sessions to expire
	p := testserver.StartProcesses(t)
	d := &desk{store: NewStore()}
	web := httptest.NewServer(d)
	t.Cleanup(web.Close) // after the end of those who use it
	holders := map[string]*testserver.Child{}
	for range 3 {
		h := p.Run("holder", web.URL)
		holders[h.Name] = h
	}
	grow := func(what string, by int) {
		t.Helper()
		from, _ := d.sum()
		wait.Until(t, what, func() bool { v, _ := d.sum(); return v >= from+by })
	}
	grow("they add", 5)
	caught, goOn := d.catch()
	var asleep *testserver.Child
	select {
	case who := <-caught:
		asleep = holders[who]
	case <-p.Context.Done():
		t.Fatal("nobody thinks")
	}
	asleep.Pause()
	p.RestartServer()
	grow("others add", 3)
	refused := d.store.Refused()
	asleep.Resume()
	close(goOn)
	wait.Until(t, "the one that was asleep is refused",
		func() bool { return d.store.Refused() > refused })
	for name, h := range holders {
		if h != asleep {
			h.Kill()
			delete(holders, name)
			break
		}
	}
	p.RestartServer()
	p.Run("holder", web.URL)
	grow("they go on", 5)
	if value, accepted := d.sum(); value != accepted {
		t.Errorf("%d additions were accepted, and the sum is %d", accepted, value)
	}
}
