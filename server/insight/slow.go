// Package insight remembers what an operator asks afterwards: which requests were slow, and on which part of their way
// (SlowLog), who uses the server most (Usage), and why sessions have expired (Expirations). It measures nothing: the
// two ports, the server's housekeeping and the goroutine that applies the log hand in what they know. Everything in it
// is bounded.
//
// It starts no goroutine. The server's housekeeping calls the methods Report, which log what is new.
package insight

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zk-lite/zk-lite/consensus"
	"github.com/zk-lite/zk-lite/consensus/forward"
	"github.com/zk-lite/zk-lite/internal/journal"
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
	// maxSlowLines is how many slow requests are logged in repeats.Every.
	maxSlowLines = 20
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

// SlowConfig configures a SlowLog.
type SlowConfig struct {
	Threshold time.Duration // from which on a request is slow; 0: none is
	Logger    *slog.Logger
	Server    Server
}

// Server is what a SlowLog asks of *server.Server.
type Server interface {
	Status() consensus.Status
}

// SlowLog keeps the newest slow requests and entries of a server. A nil SlowLog takes nothing.
type SlowLog struct {
	cfg       SlowConfig
	count     atomic.Int64
	processor processorWaits
	repeats   repeats.Filter

	mu       sync.Mutex // protects the fields below
	requests journal.Journal[SlowRequest]
	entries  journal.Journal[SlowEntry]
}

// NewSlowLog returns an empty SlowLog.
func NewSlowLog(cfg SlowConfig) *SlowLog {
	return &SlowLog{
		cfg: cfg, requests: journal.New[SlowRequest](keepSlow), entries: journal.New[SlowEntry](keepSlow),
	}
}

// Threshold returns how long a request must take to be slow; 0: none is.
func (l *SlowLog) Threshold() time.Duration {
	if l == nil {
		return 0
	}
	return l.cfg.Threshold
}

// Slow reports whether a request that took so long is slow.
func (l *SlowLog) Slow(took time.Duration) bool {
	return l != nil && l.cfg.Threshold > 0 && took >= l.cfg.Threshold
}

// Count returns how many requests were slow since the start.
func (l *SlowLog) Count() int64 { return l.count.Load() }

// Leave counts requests that were slow and are not added, because there are too many.
func (l *SlowLog) Leave(n int) { l.count.Add(int64(n)) }

// Add keeps a request; its ID, ProcessorWait and LeaderChanged are filled in. It takes no lock of the server's, and
// must not be called under one.
func (l *SlowLog) Add(r SlowRequest) {
	r.Path = strings.Clone(r.Path[:min(len(r.Path), maxPath)]) // the rest of a frame can be freed
	r.ProcessorWait = l.processor.longest(r.At, r.At.Add(r.Took))
	r.LeaderChanged = l.cfg.Server.Status().LeaderChanged.After(r.At)
	l.count.Add(1)
	l.mu.Lock()
	defer l.mu.Unlock()
	r.ID = l.requests.Last() + 1
	l.requests.Add(r)
}

// AddEntry keeps an entry that this server has proposed if it was slow, from its first command to its end.
func (l *SlowLog) AddEntry(e SlowEntry) {
	whole := e.Propose + e.Disk + e.Majority + e.Apply
	if l.cfg.Threshold <= 0 || whole < l.cfg.Threshold/entryPart {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	e.ID = l.entries.Last() + 1
	l.entries.Add(e)
}

// Requests returns at most limit requests with an ID below before (0: of all), the newest first.
func (l *SlowLog) Requests(before uint64, limit int) []SlowRequest {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.requests.Page(before, limit)
}

// Entries does for entries what Requests does for requests.
func (l *SlowLog) Entries(before uint64, limit int) []SlowEntry {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.entries.Page(before, limit)
}

// Report logs the requests that are new since the last call, up to maxSlowLines in repeats.Every. late is by how much
// the caller was woken too late.
func (l *SlowLog) Report(late time.Duration) {
	l.processor.sample(late)
	l.mu.Lock()
	fresh := l.requests.Fresh()
	l.mu.Unlock()
	for _, r := range slices.Backward(fresh) {
		if pass, leftOut := l.repeats.PassSome(maxSlowLines, ""); pass {
			l.cfg.Logger.LogAttrs(context.Background(), slog.LevelInfo, "slow request", r.attributes(leftOut)...)
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

// Stages are how long a request was on each part of its way.
type Stages struct {
	// Queue: from its arrival until its command was sent to the leader; all of a read but its reply. What is before it
	// in its session's order, and the time without a leader, is in it.
	Queue time.Duration
	// Leader: from then until this server knew that it was committed, without the three that follow. On the leader
	// itself they are all of it; on another server it is the way to the leader and back, and the leader's part, which
	// only the leader knows (SlowEntry).
	Leader   time.Duration
	Propose  time.Duration // until the leader has proposed the entry: the one before was not through
	Disk     time.Duration // until the entry was on the leader's disk
	Majority time.Duration // until it was on those of a majority, and the leader knew
	Apply    time.Duration // until this server had applied it and had the result
	Reply    time.Duration // until the client had taken it
}

// StagesOf returns the stages until now of a request that came at this time; t is what is known of the entry with its
// command, nil for a read.
func StagesOf(arrived time.Time, t *forward.Times, now time.Time) Stages {
	if t == nil || t.Sent.IsZero() {
		return Stages{Queue: now.Sub(arrived)}
	}
	sent := t.Sent
	if sent.Before(arrived) {
		sent = arrived
	}
	s := Stages{
		Queue: sent.Sub(arrived), Leader: max(t.Committed.Sub(sent), 0), Apply: max(now.Sub(t.Committed), 0),
	}
	if t.Led {
		s.Disk = min(t.Disk, s.Leader)
		s.Majority = min(t.Majority, s.Leader-s.Disk)
		s.Propose = s.Leader - s.Disk - s.Majority
		s.Leader = 0
	}
	return s
}

// add adds the stages of another command of the same request.
func (s *Stages) add(o *Stages) {
	s.Queue += o.Queue
	s.Leader += o.Leader
	s.Propose += o.Propose
	s.Disk += o.Disk
	s.Majority += o.Majority
	s.Apply += o.Apply
	s.Reply += o.Reply
}

// Stage is one of the Stages, with its name.
type Stage struct {
	Name string
	Took time.Duration
}

// List returns the stages in their order.
func (s *Stages) List() []Stage {
	return []Stage{
		{"queue", s.Queue}, {"leader", s.Leader}, {"propose", s.Propose}, {"disk", s.Disk},
		{"majority", s.Majority}, {"apply", s.Apply}, {"reply", s.Reply},
	}
}

// The causes that are no stages.
const (
	CauseElection  = "election"  // the leader changed meanwhile
	CauseProcessor = "processor" // goroutines or threads that were ready to run waited for a processor
)

// processorPart of a request's time is what something must have waited for a processor, for that to be the cause: the
// waits of a request's several steps are not known, only about the longest one of the whole server. For a disk, which
// needs no processor while it works, it must be half.
const processorPart, processorPartOfDisk = 4, 2

// Cause returns the most likely cause: the longest stage, or what explains it.
func (r *SlowRequest) Cause() string {
	var longest Stage
	for _, s := range r.Stages.List() {
		if s.Took > longest.Took {
			longest = s
		}
	}
	part := time.Duration(processorPart)
	if longest.Name == "disk" {
		part = processorPartOfDisk
	}
	switch waits := longest.Name == "queue" || longest.Name == "leader" || longest.Name == "propose"; {
	case r.LeaderChanged && waits:
		return CauseElection
	case r.ProcessorWait >= r.Took/part:
		return CauseProcessor
	}
	return longest.Name
}

// Trace collects the stages of the commands of one request that is not one command. It belongs to the goroutine of the
// request.
type Trace struct {
	Stages      Stages
	Index, Term uint64 // of the last command's entry
}

type traceKey struct{}

// WithTrace returns a context with which commands add their stages to t.
func WithTrace(ctx context.Context, t *Trace) context.Context {
	return context.WithValue(ctx, traceKey{}, t)
}

// TraceOf returns the Trace of a context; nil: it has none.
func TraceOf(ctx context.Context) *Trace {
	t, _ := ctx.Value(traceKey{}).(*Trace)
	return t
}

// Add adds the stages of a command.
func (t *Trace) Add(s *Stages, index, term uint64) {
	t.Stages.add(s)
	if index != 0 {
		t.Index, t.Term = index, term
	}
}
