// Package insight remembers what an operator asks afterwards: which requests were slow, and on which part of their way
// (SlowLog), and who uses the server most (Usage). It measures nothing: the two ports and the goroutine that applies
// the log hand in what they have measured. Everything in it is bounded.
//
// It starts no goroutine. The server's housekeeping calls Report, which logs what is new.
package insight

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zk-lite/zk-lite/internal/repeats"
	"github.com/zk-lite/zk-lite/znode"
)

const (
	// keepSlow is how many requests and how many entries are kept: about 400 KB.
	keepSlow = 1000
	// maxPath bounds what is kept of a path, in bytes.
	maxPath = 256
	// entryPart of the threshold is what an entry must take to be kept: if it took less, it is not what made a request
	// slow.
	entryPart = 4
	// maxLines is how many slow requests are logged in repeats.Every.
	maxLines = 20
)

// SlowRequest is a request that was slow.
type SlowRequest struct {
	ID        uint64    // its number on this server; they rise
	At        time.Time // when it came
	Port      string    // PortZooKeeper or PortHTTP
	Operation string    // as in getData; of HTTP method and route; OnlyReply: nothing but the reply was slow
	Path      string    // of the znode; of a transaction, its first one's; cut off if it is long
	Session   znode.SessionID
	Address   string // the client's
	Trace     string // W3C traceparent of an HTTP request
	Took      time.Duration
	Stages    Stages

	Index, Term uint64 // of the entry with its (last) command; 0: it was only a read
	// ProcessorWait is about how long something on this server that was ready to run has waited for a processor,
	// meanwhile.
	ProcessorWait time.Duration
	LeaderChanged bool // meanwhile
}

// The ports, and the operation of a reply that a client did not read.
const (
	PortZooKeeper = "zookeeper"
	PortHTTP      = "http"
	OnlyReply     = "reply"
)

// SlowEntry is an entry of Raft's log that this server has proposed, and that was slow. Its times are in Stages of the
// requests in it, too, if they were this server's; other servers' requests have its Index.
type SlowEntry struct {
	ID                             uint64
	At                             time.Time // when its first command came to the leader
	Index, Term                    uint64
	Propose, Disk, Majority, Apply time.Duration // as in Stages
}

// SlowConfig is what a SlowLog is made of.
type SlowConfig struct {
	Threshold time.Duration // from which on a request is slow; 0: none is
	Logger    *slog.Logger
	// LeaderChanged is when the leader last changed, as this server knows it.
	LeaderChanged func() time.Time
}

// SlowLog is a server's. A nil SlowLog takes nothing.
type SlowLog struct {
	cfg       SlowConfig
	count     atomic.Int64
	processor processorWaits
	repeats   repeats.Filter

	mu       sync.Mutex // protects the fields below
	requests ring[SlowRequest]
	entries  ring[SlowEntry]
	reported uint64 // the last request that was logged, or left out
}

// NewSlowLog returns an empty SlowLog.
func NewSlowLog(cfg SlowConfig) *SlowLog { return &SlowLog{cfg: cfg} }

// Threshold is how long a request must take to be slow; 0: none is.
func (l *SlowLog) Threshold() time.Duration {
	if l == nil {
		return 0
	}
	return l.cfg.Threshold
}

// Slow reports whether a request was slow that took so long.
func (l *SlowLog) Slow(took time.Duration) bool {
	return l != nil && l.cfg.Threshold > 0 && took >= l.cfg.Threshold
}

// Count is how many requests were slow since the start.
func (l *SlowLog) Count() int64 { return l.count.Load() }

// Leave counts requests that were slow and are not added, because there are too many.
func (l *SlowLog) Leave(n int) { l.count.Add(int64(n)) }

// Add keeps a request; its ID, ProcessorWait and LeaderChanged are filled in. It takes no lock of the server's, and
// must not be called under one.
func (l *SlowLog) Add(r SlowRequest) {
	r.Path = strings.Clone(r.Path[:min(len(r.Path), maxPath)]) // the rest of a frame is not to live on
	r.ProcessorWait = l.processor.longest(r.At, r.At.Add(r.Took))
	r.LeaderChanged = l.cfg.LeaderChanged().After(r.At)
	l.count.Add(1)
	l.mu.Lock()
	defer l.mu.Unlock()
	r.ID = l.requests.last + 1
	l.requests.add(r)
}

// AddEntry keeps an entry that this server has proposed, if it was slow: if it ended so long after its first command.
func (l *SlowLog) AddEntry(e SlowEntry) {
	whole := e.Propose + e.Disk + e.Majority + e.Apply
	if l.cfg.Threshold <= 0 || whole < l.cfg.Threshold/entryPart {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	e.ID = l.entries.last + 1
	l.entries.add(e)
}

// Requests returns at most so many requests with an ID below before (0: all), the newest first.
func (l *SlowLog) Requests(before uint64, limit int) []SlowRequest {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.requests.page(before, limit)
}

// Entries does for entries what Requests does for requests.
func (l *SlowLog) Entries(before uint64, limit int) []SlowEntry {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.entries.page(before, limit)
}

// Report logs the requests that are new since the last call, as far as they are not too many. late is by how much the
// caller was woken too late.
func (l *SlowLog) Report(late time.Duration) {
	l.processor.sample(late)
	l.mu.Lock()
	fresh := l.requests.page(0, int(min(l.requests.last-l.reported, keepSlow)))
	l.reported = l.requests.last
	l.mu.Unlock()
	for i := len(fresh) - 1; i >= 0; i-- {
		pass, leftOut := l.repeats.PassSome(maxLines, "")
		if pass {
			l.cfg.Logger.LogAttrs(context.Background(), slog.LevelInfo, "slow request", fresh[i].attributes(leftOut)...)
		}
	}
}

// attributes are a request's in the log.
func (r *SlowRequest) attributes(leftOut int) []slog.Attr {
	list := []slog.Attr{
		slog.Duration("took", r.Took), slog.String("cause", r.Cause()), slog.String("port", r.Port),
		slog.String("operation", r.Operation), slog.String("path", r.Path), slog.String("remote", r.Address),
	}
	if r.Session != 0 {
		list = append(list, slog.Any("session", r.Session))
	}
	for _, s := range r.Stages.List() {
		if s.Took > 0 {
			list = append(list, slog.Duration(s.Name, s.Took))
		}
	}
	list = append(list, slog.Duration("processor_wait", r.ProcessorWait))
	if r.Index != 0 {
		list = append(list, slog.Uint64("index", r.Index))
	}
	if r.Trace != "" {
		list = append(list, slog.String("traceparent", r.Trace))
	}
	if leftOut > 0 {
		list = append(list, slog.Int("left_out", leftOut))
	}
	return list
}
