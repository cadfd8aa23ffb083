//go:build interop

package migration_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/zk-lite/zk-lite/api/body"
	"github.com/zk-lite/zk-lite/integration/cluster"
	"github.com/zk-lite/zk-lite/internal/testkit/wait"
)

// beginMirror has an ensemble mirror the servers of ZooKeeper with these peer addresses; it does not wait for more.
func beginMirror(t *testing.T, z *cluster.Ensemble, from string) {
	t.Helper()
	z.AskLeader(http.MethodPost, "/v1/mirror", `{"from":["`+strings.ReplaceAll(from, ",", `","`)+`"]}`)
}

// mirrorOf is the leader's status of its mirror, which must not have stopped.
func mirrorOf(t *testing.T, z *cluster.Ensemble) (m body.Mirror) {
	t.Helper()
	answer := z.AskLeader(http.MethodGet, "/v1/mirror", "")
	if err := json.Unmarshal(answer, &m); err != nil || m.Fault != "" {
		t.Fatalf("the mirror has stopped: %s, %v", answer, err)
	}
	return m
}

// show is the status as clients see it.
func show(m body.Mirror) string {
	text, err := json.Marshal(m)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// following waits until the mirror has what the origin had.
func following(t *testing.T, z *cluster.Ensemble) {
	t.Helper()
	wait.Succeeds(t, "the mirror follows", func() error {
		if m := mirrorOf(t, z); m.State != "following" {
			return errors.New(show(m))
		}
		return nil
	})
}
