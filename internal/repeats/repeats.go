// Package repeats keeps a log readable and small. A Filter decides which repeated messages to leave out, and counts
// them. A Handler bounds how fast the log grows, for messages of any kind. It starts no goroutine.
package repeats

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

const (
	// Every is the interval at which a repeated message passes.
	Every = time.Minute
	// maxKeys bounds the messages that are remembered: some ten kinds, each about a handful of
	// servers.
	maxKeys = 256
)

// Filter remembers the messages that have passed lately. The zero value is ready for use, by several
// goroutines at once.
type Filter struct {
	mu   sync.Mutex // protects the field below
	seen map[string]passed
}

type passed struct {
	at      time.Time
	times   int // since then
	leftOut int // the same
}

// Pass reports whether a message may be logged, and how often one with the same key was
// left out before.
func (f *Filter) Pass(key string) (ok bool, leftOut int) { return f.PassSome(1, key) }

// PassSome is Pass for messages that differ although they have the same key: most of them may be logged.
func (f *Filter) PassSome(most int, key string) (ok bool, leftOut int) {
	now := time.Now()
	f.mu.Lock()
	defer f.mu.Unlock()
	last, known := f.seen[key]
	if known && now.Sub(last.at) < Every {
		if ok = last.times < most; ok {
			last.times++
		} else {
			last.leftOut++
		}
		f.seen[key] = last
		return ok, 0
	}
	if !known && len(f.seen) >= maxKeys {
		f.sweepLocked(now)
	}
	if f.seen == nil {
		f.seen = map[string]passed{}
	}
	f.seen[key] = passed{at: now, times: 1}
	return true, last.leftOut
}

// sweepLocked makes room. At worst lines are repeated.
func (f *Filter) sweepLocked(now time.Time) {
	for key, x := range f.seen {
		if now.Sub(x.at) >= Every {
			delete(f.seen, key)
		}
	}
	if len(f.seen) >= maxKeys {
		clear(f.seen)
	}
}

const (
	// PerSecond is how many lines per second pass in the long run: 20 MB of text per hour at
	// most.
	PerSecond = 20
	// Burst is how many pass at once: a start of a server with all its warnings, several times.
	Burst = 1000
)

// Handler passes lines on up to a limit. Errors have a limit of their own, of the same size. Lines that were left
// out are counted in the next line that passes.
type Handler struct {
	next  slog.Handler
	limit *limit
}

// limit is shared by a Handler and those made from it.
type limit struct {
	mu      sync.Mutex // protects the fields below
	at      time.Time  // of the last line
	room    float64    // lines that may pass now; for errors Burst more
	leftOut int        // since the last line that passed
}

// NewHandler returns a Handler before next.
func NewHandler(next slog.Handler) *Handler {
	return &Handler{next, &limit{room: Burst, at: time.Now()}}
}

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
