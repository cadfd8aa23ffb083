package sim

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/integration/check"
	"github.com/zk-lite/zk-lite/znode"
)

// votedForSelf is what raft logs when a server begins a real election, and not a pre-vote only.
const votedForSelf = "voting for self"

// campaigns is the handler of the servers' logs, which notes who campaigns.
type campaigns struct {
	slog.Handler
	server int // the server that wrote it; -1: none
	voted  *voted
}

// Enabled implements slog.Handler: raft's line is for debugging.
func (h *campaigns) Enabled(context.Context, slog.Level) bool { return true }

// Handle implements slog.Handler.
func (h *campaigns) Handle(ctx context.Context, r slog.Record) error {
	if r.Message == votedForSelf {
		h.voted.add(h.server)
	}
	if !h.Handler.Enabled(ctx, r.Level) {
		return nil
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (h *campaigns) WithAttrs(attrs []slog.Attr) slog.Handler {
	c := *h
	c.Handler = h.Handler.WithAttrs(attrs)
	for _, a := range attrs {
		if a.Key == "server" && c.server < 0 {
			c.server = int(a.Value.Int64())
		}
	}
	return &c
}

// voted are the servers that have campaigned.
type voted struct {
	mu  sync.Mutex // protects the field below
	all map[int]bool
}

func (v *voted) add(server int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.all[server] = true
}

func (v *voted) reset() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.all = map[int]bool{}
}

func (v *voted) servers() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return len(v.all)
}

// acks are the answers to a client that writes.
type acks struct {
	mu      sync.Mutex // protects the fields below
	last    time.Time
	first   time.Time     // the first one after mark; zero: none
	longest time.Duration // between two of them, of which the second came after mark
}

func (a *acks) mark() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.longest, a.first = 0, time.Time{}
}

func (a *acks) came() {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := time.Now()
	if !a.last.IsZero() {
		a.longest = max(a.longest, now.Sub(a.last))
	}
	a.last = now
	if a.first.IsZero() {
		a.first = now
	}
}

// since is how long ago the first answer came after mark.
func (a *acks) since() time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.first.IsZero() {
		return 0
	}
	return time.Since(a.first)
}

// longestNow counts the time without an answer that has not ended.
func (a *acks) longestNow() time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	return max(a.longest, time.Since(a.last))
}

// write sets a znode over and over, first at one server and later at any, until the client is stopped.
func (a *acks) write(c *client, server int) {
	for !c.stopped() {
		x := c.connect(server)
		if x == nil {
			return
		}
		for !c.stopped() {
			k, ok := x.send(check.Op{Kind: check.Set, Path: "/q0"}, &state.Command{
				Op: state.OpSetData, Path: "/q0", Data: []byte(c.value()), Version: znode.AnyVersion})
			if !ok || !x.await(k) {
				break
			}
			a.came()
		}
		x.close()
		server = -1
	}
}
