//go:build privileged

package failover_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/integration/cluster"
	"github.com/zk-lite/zk-lite/internal/testkit/wait"
)

const (
	// Two servers with that few descriptors have no room for all these sessions.
	fewDescriptors = 2600
	manySessions   = 6000
	manyTimeout    = 30 * time.Second
	awayFor        = 5 * time.Second // the killed leader
	// soon is how long the leader may take until it serves, and then the sessions to reconnect.
	soon = 5 * time.Second
	// probe is how long a server may take to answer a health check.
	probe = time.Second
)

// limited runs servers with a limit of open files.
func limited(descriptors int) func(int) []string {
	return func(int) []string {
		return []string{"sh", "-c", fmt.Sprintf(`ulimit -n %d && exec "$@"`, descriptors), "sh"}
	}
}

// answers is an error unless a server's HTTP port answers with a status, on a connection of its own.
func answers(s *cluster.Server, path string, want int) error {
	c := http.Client{Timeout: probe, Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := c.Get("http://" + s.HTTPAddr() + path)
	if err != nil {
		return err
	}
	if resp.StatusCode != want {
		err = fmt.Errorf("server %d: %s: status %d, want %d", s.ID, path, resp.StatusCode, want)
	}
	return errors.Join(err, resp.Body.Close())
}

// healthy returns an error unless a server reports by either port that it lives and serves.
func healthy(s *cluster.Server) error {
	_, err := s.Mode()
	return errors.Join(err, answers(s, "/livez", http.StatusOK), answers(s, "/readyz", http.StatusOK))
}

// gather opens sessions, some at a time.
func gather(t *testing.T, e *cluster.Ensemble, n int, timeout time.Duration) []*client.Client {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), wait.Patience)
	defer cancel()
	clients := make([]*client.Client, n)
	t.Cleanup(func() { part(clients) })
	var all sync.WaitGroup
	for first := range stormAtOnce {
		all.Go(func() {
			for i := first; i < n; i += stormAtOnce {
				c, err := client.Connect(ctx, e.ConnectString(), client.WithSessionTimeout(timeout), client.WithFinalExpiry())
				if err != nil {
					t.Errorf("session %d: %v", i, err)
					return
				}
				clients[i] = c
			}
		})
	}
	all.Wait()
	if t.Failed() {
		t.FailNow()
	}
	return clients
}

func part(clients []*client.Client) {
	var all sync.WaitGroup
	for first := range stormAtOnce {
		all.Go(func() {
			for i := first; i < len(clients); i += stormAtOnce {
				if clients[i] != nil {
					_ = clients[i].Detach() // closing the sessions would be as many writes
				}
			}
		})
	}
	all.Wait()
}

// absent counts the clients without a connection, and those that have lost their session.
func absent(clients []*client.Client) (away, expired int) {
	for _, c := range clients {
		switch s := c.State().State; {
		case s == client.StateExpired || s == client.StateClosed:
			expired++
		case !s.Connected():
			away++
		}
	}
	return away, expired
}

// TestDescriptors_LeaderRestarted: a leader dies whose clients, together with those of the two survivors, need more
// descriptors than these have. The survivors must turn the rest away and keep descriptors for each other, for the
// leader when it restarts, and for health checks. They once did not: clients held all of them, and the leader was not
// back after two minutes.
func TestDescriptors_LeaderRestarted(t *testing.T) {
	e := start(t, 3, cluster.Options{Wrap: limited(fewDescriptors), Config: map[string]string{"tickTime": "2000"}})
	clients := gather(t, e, manySessions, manyTimeout)
	leader, followers := e.Roles()
	leader.Kill()
	killed := time.Now()
	most := 0
	wait.Steadily(t, "the survivors say that they are well", awayFor, func() error {
		away, expired := absent(clients)
		most = max(most, away)
		if expired > 0 {
			return fmt.Errorf("%d sessions have expired", expired)
		}
		if time.Since(killed) < awayFor/2 {
			return nil // the election, and the crowd
		}
		return errors.Join(healthy(followers[0]), healthy(followers[1]))
	})
	away, _ := absent(clients)
	t.Logf("%d sessions were away, %d still are before the leader is back", most, away)
	if room := 2 * fewDescriptors; away < manySessions-room || away == most {
		t.Errorf("%d of %d sessions are away; two servers have room for less than %d", away, manySessions, room)
	}
	leader.Start()
	started := time.Now()
	wait.Within(t, "the leader serves again", soon, func() error { return healthy(leader) })
	serves := time.Now()
	t.Logf("it serves %v after its start", serves.Sub(started))
	wait.Within(t, "all sessions are back", soon, func() error {
		if away, expired := absent(clients); away+expired > 0 {
			return fmt.Errorf("%d are away, %d have expired", away, expired)
		}
		return nil
	})
	t.Logf("all are back %v later", time.Since(serves))
	wait.Steadily(t, "all stay", manyTimeout, func() error {
		if _, expired := absent(clients); expired > 0 {
			return fmt.Errorf("%d sessions have expired", expired)
		}
		return nil
	})
	for _, s := range followers {
		if n := metric(t, s, "descriptors_refused_total"); n == 0 {
			t.Errorf("server %d has counted no refused client", s.ID)
		}
		lines := strings.Count(s.Log(), "limit=RLIMIT_NOFILE")
		if lines == 0 || lines > 3 {
			t.Errorf("server %d has logged %d lines about refused clients in less than two minutes", s.ID, lines)
		}
	}
}

// TestDescriptors_Health: the clients of one server take every descriptor that they get, and it still reports that it
// is healthy.
func TestDescriptors_Health(t *testing.T) {
	const descriptors, crowd = 600, 575
	e := start(t, 1, cluster.Options{Wrap: limited(descriptors)})
	s := e.Server(1)
	for range crowd {
		c, err := client.Connect(t.Context(), s.Addr(), client.WithBackgroundConnect())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Detach() })
	}
	wait.Succeeds(t, "some are refused", func() error {
		if metric(t, s, "descriptors_refused_total") == 0 {
			return errors.New("none")
		}
		return nil
	})
	wait.Steadily(t, "the server says that it is well", notice, func() error { return healthy(s) })
}
