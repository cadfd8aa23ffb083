package failover_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/integration/cluster"
	"github.com/zk-lite/zk-lite/internal/testkit/wait"
)

// staleReads is a writer that counts a znode up, and a reader with max_stale at every server.
type staleReads struct {
	t      *testing.T
	e      *cluster.Ensemble
	cancel context.CancelFunc
	done   sync.WaitGroup

	mu      sync.Mutex  // protects the fields below
	acked   []time.Time // when the value of its index was acknowledged
	reads   map[int]int // by server
	refused map[int]int // the same, with 503
}

// staleBound is the readers' max_stale.
const staleBound = 300 * time.Millisecond

// startStaleReads starts a writer at the server writesAt, and readers.
func startStaleReads(t *testing.T, e *cluster.Ensemble, writesAt *cluster.Server) *staleReads {
	t.Helper()
	if _, err := writesAt.Request(http.MethodPost, "/v1/znodes/stale", "0"); err != nil {
		t.Fatal(err)
	}
	r := &staleReads{t: t, e: e, acked: []time.Time{time.Now()}, reads: map[int]int{}, refused: map[int]int{}}
	var ctx context.Context
	ctx, r.cancel = context.WithCancel(context.Background())
	t.Cleanup(r.stop)
	r.done.Go(func() { r.write(ctx, writesAt) })
	for _, s := range e.Servers() {
		r.done.Go(func() { r.read(ctx, s) })
	}
	return r
}

func (r *staleReads) stop() {
	r.cancel()
	r.done.Wait()
}

// write counts up. A value without an answer is written again.
func (r *staleReads) write(ctx context.Context, s *cluster.Server) {
	for ctx.Err() == nil {
		next := strconv.Itoa(len(r.acked))
		if _, err := s.Request(http.MethodPut, "/v1/znodes/stale", next); err == nil {
			r.mu.Lock()
			r.acked = append(r.acked, time.Now())
			r.mu.Unlock()
		}
	}
}

// read reads at one server and compares each answer with what had been acknowledged as long before the request as the
// answer may be old, by its header and by the request's bound.
func (r *staleReads) read(ctx context.Context, s *cluster.Server) {
	url := fmt.Sprintf("http://%s/v1/znodes/stale?raw&max_stale=%v", s.HTTPAddr(), staleBound)
	for ctx.Err() == nil {
		q, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			r.t.Error(err)
			return
		}
		sent := time.Now()
		resp, err := http.DefaultClient.Do(q)
		if err != nil {
			continue
		}
		text, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil {
			continue
		}
		r.check(s, sent, resp, string(text))
	}
}

func (r *staleReads) check(s *cluster.Server, sent time.Time, resp *http.Response, text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if resp.StatusCode == http.StatusServiceUnavailable {
		r.refused[s.ID]++
		return
	}
	value, err := strconv.Atoi(strings.TrimSpace(text))
	age, err2 := time.ParseDuration(resp.Header.Get("Zk-Max-Stale"))
	if err != nil || err2 != nil {
		r.t.Errorf("server %d: status %d, %q, Zk-Max-Stale %q", s.ID, resp.StatusCode, text, resp.Header.Get("Zk-Max-Stale"))
		return
	}
	r.reads[s.ID]++
	if next := value + 1; !r.t.Failed() && next < len(r.acked) && r.acked[next].Before(sent.Add(-min(age, staleBound))) {
		r.t.Errorf("server %d: %d, at most %v old, but %d was acknowledged %v before the request", s.ID, value,
			min(age, staleBound), next, sent.Sub(r.acked[next]))
	}
}

// waitReads waits until there are n more reads at a server.
func (r *staleReads) waitReads(s *cluster.Server, n int) { r.waitMore(s, r.reads, n) }

func (r *staleReads) waitMore(s *cluster.Server, counts map[int]int, n int) {
	r.t.Helper()
	count := func() int {
		r.mu.Lock()
		defer r.mu.Unlock()
		return counts[s.ID]
	}
	before := count()
	wait.Until(r.t, fmt.Sprintf("server %d has %d more answers", s.ID, n), func() bool { return count() >= before+n })
}

// TestStale_Paused: a server that was stopped for longer than max_stale, in whatever it did, shows nothing older than
// it says when it continues; nor do a leader that was replaced meanwhile, and an observer.
func TestStale_Paused(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret")
	e := start(t, 4, cluster.Options{First: 3, Config: map[string]string{"peer.joinSecretFile": secret}})
	leader, followers := e.Roles()
	observer := e.Server(4)
	var added struct{ Token string }
	answer := cluster.ChangeMembers(t, leader, http.MethodPost, "/members",
		fmt.Sprintf(`{"id": 4, "address": %q, "role": "observer"}`, observer.PeerAddr()), http.StatusOK)
	if err := errors.Join(json.Unmarshal(answer, &added), os.WriteFile(secret, []byte(added.Token), 0o600)); err != nil {
		t.Fatal(err)
	}
	observer.Start()
	r := startStaleReads(t, e, followers[0])
	for _, s := range []*cluster.Server{followers[1], observer, followers[1], observer, leader} {
		r.waitReads(s, 50)
		s.Pause()
		wait.Steadily(t, "it stands still", 2*staleBound, func() error { return nil })
		r.waitReads(followers[0], 50)
		s.Resume()
	}
	r.waitReads(leader, 50)
	r.stop()
	t.Logf("%d writes; reads %v, refused %v", len(r.acked)-1, r.reads, r.refused)
}
