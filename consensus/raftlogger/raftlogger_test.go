package raftlogger

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"github.com/zk-lite/zk-lite/internal/repeats"
	"github.com/zk-lite/zk-lite/internal/testkit/clock"
)

// logBuffer holds the output of a server's logger.
type logBuffer struct {
	mu sync.Mutex // protects the field below
	b  bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

// take returns the output since the last call.
func (l *logBuffer) take() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.b.Reset()
	return l.b.String()
}

func (l *logBuffer) logger() *slog.Logger {
	return slog.New(slog.NewJSONHandler(l, &slog.HandlerOptions{
		Level: slog.LevelInfo,
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		},
	}))
}

// hidden is like values that raft passes for itself: JSON cannot show it.
type hidden struct{ id int }

func (h *hidden) String() string { return fmt.Sprintf("Node at %d [Follower]", h.id) }

func TestLogger_JSON_ShowsAllValues(t *testing.T) {
	var out logBuffer
	l := New(t.Context(), out.logger(), "raft")
	two := raft.Server{Suffrage: raft.Voter, ID: "2", Address: "2"}
	three := raft.Server{Suffrage: raft.Nonvoter, ID: "3", Address: "3"}
	l.Info("m", "follower", &hidden{7}, "peer", two, "at", raft.ServerAddress("2"), "took", time.Second,
		"servers", hclog.Fmt("%+v", []raft.Server{two, three}), "plain", struct{ a int }{1},
		"percent", hclog.Fmt("%d%%", 12), "none", nil, "error", errors.New("bad"))
	want := `{"level":"INFO","msg":"m","subsystem":"raft","follower":"Node at 7 [Follower]","peer":"2",` +
		`"at":"2","took":1000000000,"servers":"2, 3 (no vote)","plain":"{a:1}","percent":"12%",` +
		`"none":null,"error":"bad"}` + "\n"
	if got := out.take(); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestLogger_ShuttingDown_IsNoFault(t *testing.T) {
	ended := &net.OpError{Op: "read", Net: "tcp", Err: net.ErrClosed}
	for _, closing := range []bool{false, true} {
		var out logBuffer
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		if closing {
			cancel()
		}
		transport := New(ctx, out.logger(), Net)
		transport.Error("failed to accept connection", "error", ended)
		transport.Error("failed to decode incoming command", "error", raft.ErrTransportShutdown)
		l := New(ctx, out.logger(), "raft")
		l.Error("failed to appendEntries to", "peer", 2, "error", io.EOF)
		l.Error("failed to appendEntries to", "peer", 3, "error", fmt.Errorf("sending: %w", ended))
		if lines := strings.Count(out.take(), "\n"); closing && lines != 0 || !closing && lines != 4 {
			t.Errorf("closing %v: %d lines", closing, lines)
		}
		l.Error("failed to persist vote", "error", errors.New("the disk is gone"))
		if s := out.take(); !strings.Contains(s, `"level":"WARN"`) {
			t.Errorf("closing %v: a disk's error is %s", closing, s)
		}
	}
}

func TestLogger_Repetitions_ComeOnceAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out logBuffer
		l := New(t.Context(), out.logger(), "raft")
		fail := func(peer int, backoff time.Duration) {
			l.Error("failed to heartbeat to", "peer", peer, "backoff time", backoff,
				"error", fmt.Errorf("dialling took %v", backoff))
		}
		for i := range 50 { // of a server that is away for a minute
			fail(2, time.Duration(i))
			clock.Sleep(repeats.Every / 50)
		}
		fail(3, 0) // another one is another matter
		l.Warn("failed to contact", "server-id", 2, "time", time.Second)
		if s := out.take(); strings.Count(s, "\n") != 3 || strings.Contains(s, "left_out") {
			t.Errorf("three different messages: %s", s)
		}
		fail(2, 0)
		if s := out.take(); strings.Count(s, "\n") != 1 || !strings.Contains(s, `"left_out":49`) {
			t.Errorf("after a minute: %s", s)
		}
		fail(2, 0)
		if s := out.take(); s != "" {
			t.Errorf("at once again: %s", s)
		}
		for range 3 {
			l.Info("entering candidate state", "node", &hidden{1}, "term", 4)
			l.Info("entering follower state", "follower", &hidden{1})
		}
		if s := out.take(); strings.Count(s, "\n") != 2 {
			t.Errorf("two messages, three times each: %s", s)
		}
		l.Info("entering candidate state", "node", &hidden{1}, "term", 5)
		if s := out.take(); strings.Count(s, "\n") != 1 {
			t.Errorf("another term is another matter: %s", s)
		}
	})
}

// Anyone who reached the peer port filled the log with requests for votes under changing names: 83,700 lines
// in 4 s.
func TestRegression_ChangingNames_AreOneMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out logBuffer
		l := New(t.Context(), out.logger(), "raft")
		reject := func(i int) {
			l.Warn("rejecting vote request since node is not in configuration", "from", fmt.Sprint("stranger", i))
		}
		for i := range 1000 {
			reject(i)
		}
		l.Warn("failed to contact", "server-id", 2)
		if n := strings.Count(out.take(), "\n"); n != linesOfMessage+1 {
			t.Errorf("%d lines, want %d and another", n, linesOfMessage)
		}
		clock.Sleep(repeats.Every)
		reject(0)
		if s := out.take(); !strings.Contains(s, fmt.Sprintf(`"left_out":%d`, 1000-linesOfMessage)) {
			t.Errorf("after a minute: %s", s)
		}
	})
}
