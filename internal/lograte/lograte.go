// Package lograte bounds how fast a log grows, whatever it says: package repeats leaves out what is said again and
// again, and does not know of a hundred different messages. It starts no goroutine.
package lograte

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

const (
	// PerSecond is how many lines a second pass in the long run: 20 MB of text an hour at most.
	PerSecond = 20
	// Burst is how many pass at once: a start of a server with all its warnings, several times.
	Burst = 1000
)

// Handler passes lines on as long as they are not too many. Errors have as many again of their own. What was left out
// is counted in the next line that passes.
type Handler struct {
	next  slog.Handler
	limit *limit
}

// limit is what a Handler and those made from it share.
type limit struct {
	mu      sync.Mutex // protects the fields below
	at      time.Time  // of the last line
	room    float64    // lines that may pass now; for errors Burst more
	leftOut int        // since the last line that passed
}

// New returns a Handler before next.
func New(next slog.Handler) *Handler { return &Handler{next, &limit{room: Burst, at: time.Now()}} }

// pass reports whether a line may pass, and how many were left out before it.
func (l *limit) pass(level slog.Level) (ok bool, leftOut int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	l.room = min(l.room+now.Sub(l.at).Seconds()*PerSecond, Burst)
	l.at = now
	least := 1.0
	if level >= slog.LevelError {
		least -= Burst
	}
	if l.room < least {
		l.leftOut++
		return false, 0
	}
	l.room--
	leftOut, l.leftOut = l.leftOut, 0
	return true, leftOut
}

// Enabled implements slog.Handler.
func (h *Handler) Enabled(ctx context.Context, level slog.Level) bool {
	return h.next.Enabled(ctx, level)
}

// Handle implements slog.Handler.
func (h *Handler) Handle(ctx context.Context, r slog.Record) error {
	ok, leftOut := h.limit.pass(r.Level)
	if !ok {
		return nil
	}
	if leftOut > 0 {
		r = r.Clone()
		r.AddAttrs(slog.Int("lines_left_out", leftOut))
	}
	return h.next.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (h *Handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &Handler{h.next.WithAttrs(attrs), h.limit}
}

// WithGroup implements slog.Handler.
func (h *Handler) WithGroup(name string) slog.Handler {
	return &Handler{h.next.WithGroup(name), h.limit}
}
