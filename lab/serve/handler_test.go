package serve

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/zk-lite/zk-lite/lab/page"
	"github.com/zk-lite/zk-lite/lab/trace"
)

func ask(t *testing.T, change func(*http.Request), method, path, body string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, "http://127.0.0.1:8480"+path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	change(r)
	w := httptest.NewRecorder()
	New(Options{}).ServeHTTP(w, r)
	return w
}

func asIs(*http.Request) {}

func TestHandler_Run_ReturnsTheTrace(t *testing.T) {
	w := ask(t, asIs, http.MethodPost, "/api/run", `["election","--n","3","--crash","3@0","--initiator","1"]`)
	var tr trace.Trace
	if err := json.Unmarshal(w.Body.Bytes(), &tr); err != nil || w.Code != http.StatusOK || len(tr.Messages) != 5 {
		t.Errorf("%d, %v, %d messages: %s", w.Code, err, len(tr.Messages), w.Body)
	}
}

func TestHandler_Run_IsBounded(t *testing.T) {
	long := `["election","--ids","` + strings.Repeat("1,", page.MaxBytes) + `"]`
	for _, c := range []struct {
		body, want string
		status     int
	}{
		{`["election","--n","2000"]`, "want 64 at most", http.StatusBadRequest},
		{long, "words of", http.StatusBadRequest},
		{`[` + strings.Repeat(`"",`, 7*page.MaxBytes) + `""]`, "too large", http.StatusRequestEntityTooLarge},
		{`{"words":1}`, "want the words of a command line", http.StatusBadRequest},
		{`["table"]`, "unknown", http.StatusBadRequest},
		{`["ensemble"]`, "no servers are known", http.StatusBadRequest},
		{`["explore"]`, "command line", http.StatusBadRequest},
	} {
		w := ask(t, asIs, http.MethodPost, "/api/run", c.body)
		if w.Code != c.status || !strings.Contains(w.Body.String(), c.want) {
			t.Errorf("%.60s: %d %s, want %d with %q", c.body, w.Code, w.Body, c.status, c.want)
		}
	}
	// A run that would go on for minutes is cut off.
	w := ask(t, asIs, http.MethodPost, "/api/run", `["mutex","--algorithm","lamport","--n","32","--requests","1000"]`)
	var tr trace.Trace
	if err := json.Unmarshal(w.Body.Bytes(), &tr); err != nil || tr.Ended != "limit" || len(tr.Steps) > page.MaxEvents {
		t.Errorf("%v, ended %q after %d steps", err, tr.Ended, len(tr.Steps))
	}
}

// TestHandler_Strangers_AreRefused: a page elsewhere whose name leads here, or that calls
// from its own origin.
func TestHandler_Strangers_AreRefused(t *testing.T) {
	host := func(name string) func(*http.Request) { return func(r *http.Request) { r.Host = name } }
	origin := func(name string) func(*http.Request) { return func(r *http.Request) { r.Header.Set("Origin", name) } }
	for _, c := range []struct {
		change func(*http.Request)
		status int
	}{
		{asIs, http.StatusOK}, {host("localhost:8480"), http.StatusOK}, {host("[::1]:8480"), http.StatusOK},
		{origin("http://127.0.0.1:8480"), http.StatusOK}, {host("evil.example:8480"), http.StatusForbidden},
		{host("localhost.evil.example"), http.StatusForbidden}, {origin("http://evil.example"), http.StatusForbidden},
		{origin("null"), http.StatusForbidden}, {origin("http://127.0.0.1:9999"), http.StatusForbidden},
		{func(r *http.Request) { r.Header.Set("Content-Type", "text/plain") }, http.StatusUnsupportedMediaType},
	} {
		w := ask(t, c.change, http.MethodPost, "/api/run", `["election","--n","3"]`)
		if w.Code != c.status {
			t.Errorf("%d %s, want %d", w.Code, w.Body, c.status)
		}
	}
	if w := ask(t, host("evil.example"), http.MethodGet, "/", ""); w.Code != http.StatusForbidden {
		t.Errorf("the page itself: %d", w.Code)
	}
}

// TestHandler_Files_AskNobodyElse: the page is small, has its policy, and names no other
// address to fetch from.
func TestHandler_Files_AskNobodyElse(t *testing.T) {
	size := 0
	elsewhere := regexp.MustCompile(`(?i)(src|href|import|fetch|url)\W{1,4}(https?:)?//`)
	err := fs.WalkDir(page.Files(), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(page.Files(), name)
		size += len(data)
		if found := elsewhere.Find(data); found != nil {
			t.Errorf("%s has %q", name, found)
		}
		for i, line := range strings.Split(string(data), "\n") {
			if n := len([]rune(line)); n > 120 && !strings.HasSuffix(name, ".svg") {
				t.Errorf("%s:%d has %d columns: want 120 at most", name, i+1, n)
			}
		}
		path := "/" + strings.TrimSuffix(name, "index.html")
		w := ask(t, asIs, http.MethodGet, path, "")
		if w.Code != http.StatusOK || w.Header().Get("Content-Security-Policy") != page.Policy {
			t.Errorf("%s: %d, policy %q", path, w.Code, w.Header().Get("Content-Security-Policy"))
		}
		return err
	})
	if err != nil || size < 10_000 || size > 300_000 {
		t.Errorf("the page has %d bytes, %v: want at most 300,000", size, err)
	}
}

func TestHandler_Catalogue_HasCommands(t *testing.T) {
	w := ask(t, asIs, http.MethodGet, "/api/catalogue", "")
	var c struct{ Commands []page.Command }
	if err := json.Unmarshal(w.Body.Bytes(), &c); err != nil || len(c.Commands) < 5 || len(c.Commands[0].Options) < 10 {
		t.Errorf("%v, %+v, want five commands, the first with ten options", err, c)
	}
}

func TestServe_EndsWithItsContext(t *testing.T) {
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- Serve(ctx, l, New(Options{})) }()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+l.Addr().String()+"/", nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%v, %v, want 200", response, err)
	}
	response.Body.Close()
	cancel()
	if err := <-done; err != nil && !errors.Is(err, net.ErrClosed) {
		t.Error(err)
	}
}

// FuzzReadWords: whatever the body, the answer is a refusal or a list of words.
func FuzzReadWords(f *testing.F) {
	f.Add(`["election","--n","3"]`)
	f.Add(`[[]]`)
	f.Add("\x00")
	f.Fuzz(func(t *testing.T, body string) {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://127.0.0.1/api/run", strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		if _, ok := readWords(w, r); !ok && w.Code < 400 {
			t.Errorf("%q: refused with %d", body, w.Code)
		}
	})
}
