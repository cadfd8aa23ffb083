//go:build unix

package cli

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"
)

// A check that takes too long is killed with the processes that it has started.
func TestHealthCheck_Late_IsKilledWithItsChildren(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { // it ends with the processes that have the other end
		f, err := os.Open(fifo)
		if err == nil {
			_, err = io.ReadAll(f)
			f.Close()
		}
		ended <- err
	}()
	h := healthCheck{command: "exec 3> " + fifo + "; sleep 600 & echo late; wait", timeout: 5 * time.Second}
	if err := h.check(t.Context()); err == nil || err.Error() != "no result within 5s: late" {
		t.Errorf("the check's result is %v, want that there is none", err)
	}
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Error("a process that the check had started lives on")
	}
}

// The reason has the end of the output, however much and whatever there is.
func TestHealthCheck_Output_IsBounded(t *testing.T) {
	h := healthCheck{command: `yes ü | head -c 1000001; printf '\377 the end'; exit 1`, timeout: time.Minute}
	err := h.check(t.Context())
	if text := err.Error(); len(text) > maxOutput+20 || !utf8.ValidString(text) || !strings.HasSuffix(text, "ü the end") {
		t.Errorf("the reason has %d bytes and ends with %.20q, want %d at most, and what the command said last", len(text),
			text[max(0, len(text)-20):], maxOutput+20)
	}
}

func TestHealthCheck_HTTP(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/moved":
			http.Redirect(w, r, "/up", http.StatusFound)
		case "/full":
			http.Error(w, "disk full "+strings.Repeat("x", 1e6), http.StatusServiceUnavailable)
		case "/late":
			<-r.Context().Done()
		default:
			w.WriteHeader(http.StatusNoContent)
		}
	}))
	defer s.Close()
	for path, want := range map[string]string{
		"/up": "", "/moved": "", "/full": "503 Service Unavailable: disk full xxx", "/late": "no result within 1s",
	} {
		h := healthCheck{url: s.URL + path, timeout: time.Minute}
		if path == "/late" {
			h.timeout = time.Second
		}
		got := ""
		if err := h.check(t.Context()); err != nil {
			got = err.Error()
		}
		if !strings.Contains(got, want) || (got == "") != (want == "") || len(got) > maxOutput+200 {
			t.Errorf("%s: the reason is %.100q of %d bytes, want %q", path, got, len(got), want)
		}
	}
}
