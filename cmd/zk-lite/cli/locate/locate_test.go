package locate

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// fake is a server with an HTTP port and a ZooKeeper port that sends HTTP clients there.
type fake struct {
	id           int
	http, client *httptest.Server

	mu       sync.Mutex // protects the fields below
	ensemble string
	others   []*fake
	redirect http.HandlerFunc // instead of to its HTTP port; nil: there
}

func newFake(t *testing.T, id int, ensemble string) *fake {
	s := &fake{id: id, ensemble: ensemble}
	s.http = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		rows := []string{}
		for _, o := range append([]*fake{s}, s.others...) {
			rows = append(rows, fmt.Sprintf(`{"id":%d,"http":%q,"client":%q}`, o.id,
				o.http.Listener.Addr(), o.client.Listener.Addr()))
		}
		fmt.Fprintf(w, `{"ensemble":%q,"server":%d,"servers":[%s]}`, s.ensemble, s.id, strings.Join(rows, ","))
	}))
	s.client = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.redirect != nil {
			s.redirect(w, q)
			return
		}
		w.Header().Set(ensembleHeader, s.ensemble)
		http.Redirect(w, q, s.http.URL+q.URL.Path, http.StatusTemporaryRedirect)
	}))
	t.Cleanup(s.stop)
	return s
}

// set changes what the server answers.
func (s *fake) set(change func(*fake)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(s)
}

func (s *fake) address() string { return s.client.Listener.Addr().String() }

func (s *fake) stop() {
	s.http.Close()
	s.client.Close()
}

// two are servers that know each other.
func two(t *testing.T) (a, b *fake) {
	a, b = newFake(t, 1, "ab"), newFake(t, 2, "ab")
	a.set(func(s *fake) { s.others = []*fake{b} })
	b.set(func(s *fake) { s.others = []*fake{a} })
	return a, b
}

func TestFind(t *testing.T) {
	a, b := two(t)
	f := &Finder{}
	e, err := f.Find(t.Context(), []string{"127.0.0.1:1", a.address()})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := e.URLs(), []string{a.http.URL, b.http.URL}; !slices.Equal(got, want) {
		t.Errorf("the URLs are %q, want %q", got, want)
	}
	if got, want := e.Clients(), []string{a.address(), b.address()}; !slices.Equal(got, want) {
		t.Errorf("the ZooKeeper ports are %q, want %q", got, want)
	}
}

func TestFind_Refuses(t *testing.T) {
	a, other := newFake(t, 1, "ab"), newFake(t, 1, "cd")
	answer := func(status int, location, text string) func(w http.ResponseWriter, q *http.Request) {
		return func(w http.ResponseWriter, q *http.Request) {
			w.Header().Set("Location", location)
			w.Header().Set(ensembleHeader, "ab")
			w.WriteHeader(status)
			fmt.Fprint(w, text)
		}
	}
	for name, c := range map[string]struct {
		redirect func(w http.ResponseWriter, q *http.Request)
		want     string
	}{
		"no HTTP port": {answer(404, "", "no HTTP port here\nmore"), `"no HTTP port here"`},
		"TLS":          {answer(400, "", "This port speaks TLS: use https://"), " speaks TLS: give --tls-ca"},
		"an alert": {func(w http.ResponseWriter, _ *http.Request) {
			c, _, err := w.(http.Hijacker).Hijack()
			if err == nil {
				fmt.Fprint(c, "\x15\x03\x01\x00\x02\x02\x46")
				c.Close()
			}
		}, " speaks TLS: give --tls-ca"},
		"another ensemble": {answer(307, other.http.URL+"/", ""), "which is of another ensemble"},
		"a strange place":  {answer(307, "ftp://x/", ""), `sends HTTP clients to "ftp://x/"`},
		"ZooKeeper": {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
			"it is ZooKeeper, or a zk-lite before 1.1"},
	} {
		a.set(func(s *fake) { s.redirect = c.redirect })
		if e, err := new(Finder).Find(t.Context(), []string{a.address()}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, %v, want the error %q", name, e, err, c.want)
		}
	}
	if _, err := new(Finder).Find(t.Context(), []string{"127.0.0.1:1"}); err == nil || err.Error() != "connection refused" {
		t.Errorf("where nothing listens: %v", err)
	}
}

// A server that has been reached need not be there: another one is asked, if it is still of the same ensemble.
func TestFind_Remembers(t *testing.T) {
	a, b := two(t)
	noted := ""
	f := &Finder{Memory: filepath.Join(t.TempDir(), "zk-lite", "servers.json"),
		Note: func(address string, instead Server) { noted = address + " " + instead.HTTP }}
	given := []string{a.address()}
	if _, err := f.Find(t.Context(), given); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(f.Memory); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the memory is %v, %v, want the mode 0600", info, err)
	}
	if !f.Fresh(given) || f.Fresh([]string{"other"}) {
		t.Error("what was found now is not fresh, or what never was is")
	}
	a.stop()
	e, err := f.Find(t.Context(), given)
	if err != nil || e.Clients()[0] != b.address() {
		t.Fatalf("with a stopped: %v, %v, want server 2", e, err)
	}
	if want := a.address() + " " + b.http.URL; noted != want {
		t.Errorf("noted %q, want %q", noted, want)
	}
	b.set(func(s *fake) { s.ensemble = "cd" })
	if e, err := f.Find(t.Context(), given); err == nil {
		t.Errorf("of another ensemble: %v, want none", e)
	}
}

// What cannot be read is as if it were not there, and the oldest entries go.
func TestMemory(t *testing.T) {
	a, _ := two(t)
	f := &Finder{Memory: filepath.Join(t.TempDir(), "servers.json")}
	old := map[string]entry{}
	for i := range maxEntries {
		old[fmt.Sprint(i)] = entry{Ensemble{ID: "ab"}, time.Unix(int64(i), 0)}
	}
	text, err := json.Marshal(old)
	if err != nil {
		t.Fatal(err)
	}
	for name, write := range map[string]string{"full": string(text), "broken": "{", "empty": ""} {
		if err := os.WriteFile(f.Memory, []byte(write), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := f.Find(t.Context(), []string{a.address()}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		all := f.entries()
		if _, there := all["0"]; there || len(all) > maxEntries || all[a.address()].ID != "ab" {
			t.Errorf("%s: %d entries, the oldest there: %t, the new one %v", name, len(all), there, all[a.address()])
		}
	}
	f.Memory = filepath.Join(f.Memory, "below-a-file")
	if _, err := f.Find(context.Background(), []string{a.address()}); err != nil {
		t.Errorf("a memory that cannot be written: %v", err)
	}
}
