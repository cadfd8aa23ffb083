package httpload

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestConn_Do_EveryKindOfAnswer: bodies with a length, in chunks and none at all, errors,
// and a server that closes the connection, all on one conn.
func TestConn_Do_EveryKindOfAnswer(t *testing.T) {
	long := strings.Repeat("long ", 10_000)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		switch r.URL.Path {
		case "/length":
			_, _ = io.WriteString(w, r.Method+" "+string(body)+r.Header.Get("X"))
		case "/chunks":
			_, _ = io.WriteString(w, long[:3])
			w.(http.Flusher).Flush()
			_, _ = io.WriteString(w, long[3:])
		case "/nothing":
			w.WriteHeader(http.StatusNoContent)
		case "/close":
			w.Header().Set("Connection", "close")
			_, _ = io.WriteString(w, "bye")
		default:
			http.Error(w, "what is that", http.StatusTeapot)
		}
	}))
	defer s.Close()
	c := &conn{host: strings.TrimPrefix(s.URL, "http://")}
	defer c.close()
	for range 2 {
		for _, test := range []struct {
			q    request
			want string
		}{
			{request{method: "PUT", target: "/length", header: "X: y\r\n", body: []byte("data ")}, "PUT data y"},
			{request{method: "GET", target: "/chunks"}, long},
			{request{method: "DELETE", target: "/nothing"}, ""},
			{request{method: "GET", target: "/close"}, "bye"},
			{request{method: "POST", target: "/length", body: []byte{}}, "POST "},
		} {
			got, err := c.do(t.Context(), &test.q)
			if err != nil || string(got) != test.want {
				t.Errorf("%s: %.40q, %v, want %.40q", test.q.target, got, err, test.want)
			}
		}
		_, err := c.do(t.Context(), &request{method: "GET", target: "/none"})
		var status *StatusError
		if !errors.As(err, &status) || status.Status != http.StatusTeapot ||
			!strings.Contains(status.Body, "what is that") {
			t.Errorf("%v, want the status 418 with its body", err)
		}
	}
}

// TestAPI_Changes: what a line of each dialect's stream tells.
func TestAPI_Changes(t *testing.T) {
	for line, want := range map[string]int{"event: changed": 1, "event: progress": 0, `data: {"type":"changed"}`: 0} {
		if got := (ZKLite{}).changes([]byte(line)); got != want {
			t.Errorf("%q: %d, want %d", line, got, want)
		}
	}
	for line, want := range map[string]int{
		`{"result":{"header":{"revision":"2"},"created":true}}`:                                                    0,
		`{"result":{"header":{},"events":[{"kv":{"key":"aw==","mod_revision":"3"}},{"kv":{"mod_revision":"4"}}]}}`: 2,
	} {
		if got := (Etcd{}).changes([]byte(line)); got != want {
			t.Errorf("%q: %d, want %d", line, got, want)
		}
	}
}
