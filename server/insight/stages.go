package insight

import (
	"context"
	"time"

	"github.com/zk-lite/zk-lite/consensus/forward"
)

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
	Majority time.Duration // until it was on those of a majority, and they had said so
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
	CauseElection  = "election"  // another leader was found meanwhile
	CauseProcessor = "processor" // what was ready to run had to wait for a processor
)

// processorPart of a request's time is what something must have waited for a processor, for that to be the cause: the
// waits of a request's several steps are not known, only about the longest one of the whole server. For a disk, which
// needs no processor while it works, it must be half.
const processorPart, processorPartOfDisk = 4, 2

// Cause names what is most likely to blame: the longest stage, or what explains it.
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
