package failover_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/integration/cluster"
	"github.com/zk-lite/zk-lite/internal/testkit/wait"
)

// readiness is the answer of /readyz.
type readiness struct {
	code           int
	Status, Reason string
	Checks         []struct {
		Name, Detail string
		OK           bool
	}
}

func askReady(s *cluster.Server) (r readiness, err error) {
	answer, err := http.Get("http://" + s.HTTPAddr() + "/readyz?verbose")
	if err != nil {
		return r, err
	}
	defer answer.Body.Close()
	r.code = answer.StatusCode
	return r, json.NewDecoder(answer.Body).Decode(&r)
}

// awaitHalt waits until a server reports in every place that it is halted, and returns the reason.
func awaitHalt(t *testing.T, s *cluster.Server, kind string, words ...string) string {
	t.Helper()
	var r readiness
	wait.Succeeds(t, "a halted server", func() (err error) {
		if r, err = askReady(s); err == nil && (r.code != http.StatusServiceUnavailable || r.Status != "halted: "+kind) {
			err = fmt.Errorf("%+v", r)
		}
		return err
	})
	live, err := http.Get("http://" + s.HTTPAddr() + "/livez")
	if err != nil || live.StatusCode != http.StatusOK {
		t.Fatalf("/livez: %v %+v", err, live)
	}
	defer live.Body.Close()
	word, err := s.FourLetter("srvr")
	if err != nil || !strings.Contains(word, "halted ("+kind+"): "+r.Reason) {
		t.Errorf("srvr: %q, %v", word, err)
	}
	metrics, err := http.Get("http://" + s.HTTPAddr() + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer metrics.Body.Close()
	text, _ := io.ReadAll(metrics.Body)
	if want := fmt.Sprintf("halt_reason{reason=%q} 1", kind); !strings.Contains(string(text), want) {
		t.Errorf("/metrics has no %s", want)
	}
	wait.Until(t, "an error in the log", func() bool { return strings.Contains(s.Log(), "level=ERROR msg=\"halted: ") })
	for _, w := range words {
		if !strings.Contains(r.Reason, w) {
			t.Errorf("server %d does not name %q: %s", s.ID, w, r.Reason)
		}
	}
	t.Logf("server %d: %s", s.ID, r.Reason)
	return r.Reason
}

// TestHalt_Removed: a removed server reports it, and its clients continue elsewhere, with their sessions.
func TestHalt_Removed(t *testing.T) {
	e := start(t, 3, cluster.Options{})
	l := startLoad(t, e, "/removed")
	l.waitProgress(50)
	removed := e.Followers()[0]
	cluster.ChangeMembers(t, e.Leader(), http.MethodDelete, fmt.Sprintf("/members/%d", removed.ID), "", http.StatusOK)
	begin := time.Now()
	awaitHalt(t, removed, "removed", "was removed from the ensemble", "add it again")
	t.Logf("it took %v", time.Since(begin))
	l.waitProgress(50)
	l.checkKept(removed)
}
