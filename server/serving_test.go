package server

import (
	"bytes"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zk-lite/zk-lite/consensus"
	"github.com/zk-lite/zk-lite/consensus/membership"
	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/internal/testkit/clock"
)

// A server that has started serves as soon as it can, although no one asks it, and its next round is far away.
func TestServing_SoonAfterTheStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		k := newKit(t, func(c *Config) {
			c.Tick, c.Logger = time.Hour, slog.New(slog.NewTextHandler(&out, nil))
		})
		k.setCaughtUp(false)
		k.srv.Start(k.log, k.log)
		defer k.srv.Stop()
		for range 2 {
			clock.Sleep(startPoll)
			synctest.Wait()
			k.log.drain()
		}
		if !strings.Contains(out.String(), "serving clients") {
			t.Errorf("it does not serve %v after its start, want that it does: %s", 2*startPoll, &out)
		}
	})
}

// A server that was wiped and added again reported itself ready, and answered over HTTP that a znode did not exist,
// while the snapshot was still on its way: it served as soon as it had contact with the leader.
func TestRegression_Serving_OnlyWhenCaughtUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		k := newKit(t, func(c *Config) { c.Logger = slog.New(slog.NewTextHandler(&out, nil)) })
		k.setCaughtUp(false) // as after a start
		serves := func(want bool, when string) {
			t.Helper()
			got := k.srv.Serving()
			synctest.Wait()
			if got != want {
				t.Fatalf("serving is %v %s", got, when)
			}
		}
		sent := func(n int) {
			t.Helper()
			if got := k.log.pending(); !slices.Equal(got, slices.Repeat([]state.Op{state.OpSync}, n)) {
				t.Fatalf("proposed %v, want %d syncs", got, n)
			}
		}
		k.log.setContact(membership.NoContact)
		serves(false, "without a leader")
		sent(0)
		k.log.setContact(0)
		serves(false, "when it has just heard the leader")
		serves(false, "with its sync on its way")
		sent(1)
		k.log.lose(1)
		serves(false, "when its sync was lost")
		sent(1)
		k.log.step(1)
		serves(true, "when it has caught up")

		k.log.setContact(membership.NoContact)
		serves(false, "when it has lost the leader")
		k.log.setContact(0)
		serves(false, "when it is back")
		sent(1)
		k.log.setContact(membership.NoContact)
		serves(false, "when it is away again")
		k.log.setContact(0)
		serves(false, "when it is back again")
		sent(2)
		k.log.step(1) // a request sent before the lapse proves nothing about changes in it
		serves(false, "by the answer to its first sync")
		k.log.step(1)
		serves(true, "when it has caught up again")
		sent(0)
		var said []string
		for line := range strings.Lines(out.String()) {
			_, msg, _ := strings.Cut(line, "msg=")
			said = append(said, strings.Trim(msg, `"`)[:len("not serving")])
		}
		if !slices.Equal(said, []string{"serving cli", "not serving", "serving cli"}) {
			t.Errorf("the log does not say each once: %s", &out)
		}
	})
}

// A server was ready while the disks of a majority were full: there was a leader, but clients got no answer.
func TestRegression_Stalled_WhenNothingIsApplied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := started(t, nil)
		look := func(want bool, when string) {
			t.Helper()
			clock.Sleep(2 * k.srv.cfg.Grace)
			synctest.Wait()
			if got := k.srv.Stalled(); got != want {
				t.Errorf("stalled is %v %s", got, when)
			}
		}
		set := func(pending int, applied uint64) {
			k.log.mu.Lock()
			defer k.log.mu.Unlock()
			k.log.status.Pending, k.log.status.AppliedIndex = pending, applied
		}
		look(false, "when nothing is asked")
		set(1, 7)
		look(true, "when a command waits")
		set(1, 8)
		clock.Sleep(k.srv.cfg.Tick)
		synctest.Wait()
		if k.srv.Stalled() {
			t.Error("stalled after something was applied")
		}
		look(true, "when the next one waits")
		set(0, 9)
		look(false, "when none waits")
	})
}

func TestServer_Drain_SendsClientsAway(t *testing.T) {
	k := newKit(t, nil)
	c := k.connect()
	k.log.spare = membership.ErrTooFew
	if err := k.srv.Drain(t.Context()); !errors.Is(err, membership.ErrTooFew) || k.srv.Draining() {
		t.Errorf("a server that is needed: %v", err)
	}
	c.expectKicks()
	k.log.spare = nil
	k.log.setRole(consensus.RoleLeader)
	if err := k.srv.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.expectKicks(ReasonStopping)
	if k.srv.Serving() || k.srv.Status().Role == consensus.RoleLeader {
		t.Errorf("serving %v, %+v", k.srv.Serving(), k.srv.Status())
	}
	k.srv.Undrain()
	if !k.srv.Serving() {
		t.Error("does not serve again")
	}
}
