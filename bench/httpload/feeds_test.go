package httpload

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/bench/load"
	"github.com/zk-lite/zk-lite/internal/testkit/wait"
)

// Lags count from acknowledgements to arrivals, within the measured time; a change that comes before its acknowledgement
// has none. A follower that is too late comes back.
func TestFeeds(t *testing.T) {
	send, end := make(chan int), make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/feed/bench" || r.Header.Get("Accept") != "text/event-stream" {
			t.Errorf("got a request for %s, want one for the stream of /bench", r.URL)
		}
		fmt.Fprintf(w, "retry: 1000\n\nid: 0x1\nevent: progress\ndata: {}\n\n")
		for {
			w.(http.Flusher).Flush()
			select {
			case zxid := <-send:
				fmt.Fprintf(w, "id: 0x%x\nevent: transaction\ndata: %s\n\n", zxid, strings.Repeat("x", zxid*1000))
			case <-end:
				return
			case <-r.Context().Done():
				return
			}
		}
	}))
	defer s.Close()
	cfg := load.Default()
	cfg.Hosts = []string{strings.TrimPrefix(s.URL, "http://")}
	f, err := Follow(t.Context(), &cfg, []string{"/bench"})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	arrive := func(zxid int) {
		had := f.changes.Load()
		send <- zxid
		wait.Until(t, "the change arrives", func() bool { return f.changes.Load() == had+1 })
	}
	arrive(99) // before the measured time
	f.Measured(true)
	f.Acknowledged(100, time.Now().Add(-time.Second))
	arrive(100)
	arrive(101) // not acknowledged yet
	end <- struct{}{}
	wait.Until(t, "the follower is sent away", func() bool { return f.late.Load() > 0 })
	f.Measured(false)
	if got := f.Result(); got.Changes != 2 || got.Late != 1 || got.Lag.Count != 2 || got.Lag.P50 > 1 || got.Lag.Max.Duration() < time.Second {
		t.Errorf("got %+v, want a change without lag, one with a second, and a follower that was late once", got)
	}
}
