package server

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/internal/testkit/clock"
	"github.com/zk-lite/zk-lite/session"
	"github.com/zk-lite/zk-lite/znode"
)

func createCommand(path string) *state.Command {
	return &state.Command{Op: state.OpCreate, Path: path, ACL: znode.OpenACL}
}

func TestServer_Do_EndedContextSendsNothing(t *testing.T) {
	k := newKit(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := k.srv.Do(ctx, createCommand("/a")); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want context.Canceled", err)
	}
	if ops := k.log.pending(); len(ops) != 0 {
		t.Errorf("%v was proposed", ops)
	}
}

func TestServer_Do_ContextEndsMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t, nil)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := k.srv.Do(ctx, createCommand("/a")); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v, want context.DeadlineExceeded", err)
		}
		k.log.drain() // no one waits for the result now
		k.srv.View(func(v *View) {
			if _, code := v.Tree().Exists("/a", nil); code != znode.OK {
				t.Errorf("the command was sent, but has this effect: %v", code)
			}
		})
	})
}

func TestServer_Do_ReturnsACopyOfTheResult(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t, nil)
		do := func(c *state.Command) state.Result {
			var r state.Result
			var err error
			over := false
			go func() {
				r, err = k.srv.Do(t.Context(), c)
				over = true
			}()
			synctest.Wait()
			k.log.drain()
			synctest.Wait()
			if !over || err != nil || r.Code != znode.OK {
				t.Fatalf("over %v: %v, %v", over, r.Code, err)
			}
			return r
		}
		multi := do(&state.Command{Op: state.OpMulti, Ops: []state.Command{*createCommand("/a"), *createCommand("/b")}})
		open := state.Command{Op: state.OpCreateSession, Session: 7, Timeout: 4 * time.Second}
		opened := do(&open)
		do(&state.Command{Op: state.OpAttach, Session: 7, Timeout: 9 * time.Second})
		do(&state.Command{Op: state.OpMulti, Ops: []state.Command{*createCommand("/c"), *createCommand("/d")}})
		if len(multi.Multi) != 2 || multi.Multi[0].Path != "/a" || multi.Multi[1].Path != "/b" {
			t.Errorf("the result of a multi changed afterwards: %+v", multi.Multi)
		}
		if s := opened.Session; s == nil || s.ID != 7 || s.Timeout != 4*time.Second {
			t.Errorf("the session of a result changed afterwards: %+v", s)
		}
	})
}

func TestServer_Do_Lost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t, nil)
		var err error
		go func() { _, err = k.srv.Do(t.Context(), createCommand("/a")) }()
		synctest.Wait()
		k.log.lose(1)
		synctest.Wait()
		if !errors.Is(err, znode.ErrConnectionLoss) {
			t.Errorf("%v, want CONNECTIONLOSS", err)
		}
		k.log.stop()
		if _, err := k.srv.Do(t.Context(), createCommand("/a")); err == nil {
			t.Error("Do of a stopped consensus succeeded")
		}
	})
}

func TestServer_Restored_KicksEverybody(t *testing.T) {
	k := newKit(t, nil)
	a, b := k.connect(), k.connect()
	a.open(4 * time.Second)
	b.create("/old", "")
	k.log.drain()
	m := state.New()
	k.srv.Handler().BeginApply()
	k.srv.Handler().StateReplaced(m)
	k.srv.Handler().EndApply()
	a.expectKicks(ReasonReset)
	b.expectKicks(ReasonReset)
	k.srv.View(func(v *View) {
		if v.Machine() != m || v.Zxid() != 0 {
			t.Error("the old state is shown still")
		}
	})
}

func TestServer_Digest_SameStateSameDigest(t *testing.T) {
	digest := func(paths ...string) uint64 {
		k := newKit(t, nil)
		for _, p := range paths {
			k.log.from(1, &state.Command{Op: state.OpCreate, Path: p, ACL: znode.OpenACL})
		}
		zxid, d := k.srv.Digest()
		if low := uint32(zxid); int(low) != len(paths) {
			t.Errorf("zxid %v after %d transactions", zxid, len(paths))
		}
		return d
	}
	synctest.Test(t, func(t *testing.T) { // the same clock for both
		if a, b := digest("/a", "/b"), digest("/a", "/b"); a != b {
			t.Errorf("the same log gave %x and %x", a, b)
		}
		if a, b := digest("/a", "/b"), digest("/a", "/c"); a == b {
			t.Errorf("different logs gave %x", a)
		}
	})
}

func TestServer_QuotaExceeded_SaidOnceAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		k := newKit(t, func(c *Config) { c.Logger = slog.New(slog.NewTextHandler(&out, nil)) })
		for range 61 { // a second apart
			k.srv.Handler().QuotaExceeded("/a")
			k.srv.Handler().QuotaExceeded("/b")
			clock.Sleep(time.Second)
		}
		for _, p := range []string{"path=/a", "path=/b"} {
			if n := strings.Count(out.String(), p); n != 2 {
				t.Errorf("%s was logged %d times in 61 s, want 2", p, n)
			}
		}
	})
}

func TestServer_NewSessionID_NeverTwice(t *testing.T) {
	seen := map[znode.SessionID]bool{}
	for _, id := range []state.ServerID{1, 2, 254} {
		s := New(Config{ID: id, Tick: time.Second})
		for range 1000 {
			x := s.NewSession(0).Session
			if seen[x] || byte(uint64(x)>>56) != byte(id) {
				t.Fatalf("server %d gave %v (seen before: %v)", id, x, seen[x])
			}
			seen[x] = true
			if !session.NewTable().Add(session.Session{ID: x}) {
				t.Fatalf("the table refuses %v", x)
			}
		}
	}
}

func TestServer_Stop_KicksEverybody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t, nil)
		k.srv.Start(k.log, k.log)
		c := k.connect()
		k.srv.Stop()
		c.expectKicks(ReasonStopping)
	})
}
