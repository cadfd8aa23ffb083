package admin

import (
	"math"
	"net/http"
	"time"

	"github.com/zk-lite/zk-lite/api/rest"
	"github.com/zk-lite/zk-lite/consensus"
	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/server/insight"
)

// newestBody is a page of the newest of something that a server remembers.
type newestBody[T any] struct {
	Server      state.ServerID `json:"server"`
	LeadsTerm   uint64         `json:"leads_term,omitempty"`   // 0: it does not lead
	ThresholdMS *float64       `json:"threshold_ms,omitempty"` // of slow requests
	Items       []T            `json:"items"`                  // the newest first
	Next        uint64         `json:"next,omitempty"`         // before= of the next page; 0: this was the last
}

// slowRequest is a insight.SlowRequest as JSON.
type slowRequest struct {
	ID          uint64             `json:"id"`
	At          time.Time          `json:"at"`
	Port        string             `json:"port"`
	Operation   string             `json:"operation"`
	Path        string             `json:"path,omitempty"`
	Session     string             `json:"session,omitempty"`
	Address     string             `json:"address"`
	Traceparent string             `json:"traceparent,omitempty"`
	TookMS      float64            `json:"took_ms"`
	StagesMS    map[string]float64 `json:"stages_ms"`
	Index       uint64             `json:"index,omitempty"`
	Term        uint64             `json:"term,omitempty"`
	ProcessorMS float64            `json:"processor_wait_ms"`
	Changed     bool               `json:"leader_changed"`
	Cause       string             `json:"cause"`
}

// slowEntry is a insight.SlowEntry as JSON.
type slowEntry struct {
	ID       uint64             `json:"id"`
	At       time.Time          `json:"at"`
	Index    uint64             `json:"index"`
	Term     uint64             `json:"term"`
	StagesMS map[string]float64 `json:"stages_ms"`
}

// maxNewest is how many items a page has at most, and what it has when limit= does not say.
const maxNewest = 1000

// getSlowRequests shows the newest requests that were slow on this server.
func (h *handlers) getSlowRequests(q *rest.Request) error {
	return answerNewest(q, threshold(q), q.Core.Config.Slow.Requests, func(r *insight.SlowRequest) (slowRequest, uint64) {
		b := slowRequest{
			ID: r.ID, At: r.At.UTC(), Port: r.Port, Operation: r.Operation, Path: r.Path, Address: r.Address,
			Traceparent: r.Trace, TookMS: millis(r.Took), StagesMS: map[string]float64{}, Index: r.Index, Term: r.Term,
			ProcessorMS: millis(r.ProcessorWait), Changed: r.LeaderChanged, Cause: r.Cause(),
		}
		if r.Session != 0 {
			b.Session = r.Session.String()
		}
		for _, s := range r.Stages.List() {
			b.StagesMS[s.Name] = millis(s.Took)
		}
		return b, r.ID
	})
}

// getSlowEntries shows the newest entries that were slow and that this server has proposed.
func (h *handlers) getSlowEntries(q *rest.Request) error {
	return answerNewest(q, threshold(q), q.Core.Config.Slow.Entries, func(e *insight.SlowEntry) (slowEntry, uint64) {
		return slowEntry{e.ID, e.At.UTC(), e.Index, e.Term, map[string]float64{
			"propose": millis(e.Propose), "disk": millis(e.Disk),
			"majority": millis(e.Majority), "apply": millis(e.Apply),
		}}, e.ID
	})
}

// threshold is what a request must take to be slow.
func threshold(q *rest.Request) *float64 {
	ms := millis(q.Core.Config.Slow.Threshold())
	return &ms
}

// answerNewest answers with a page of what list returns; threshold may be nil.
func answerNewest[T, B any](
	q *rest.Request, threshold *float64, list func(before uint64, limit int) []T, body func(*T) (b B, id uint64),
) error {
	before, err := q.Query.Integer("before", 0, 0, math.MaxInt)
	if err != nil {
		return err
	}
	limit, err := q.Query.Integer("limit", maxNewest, 1, maxNewest)
	if err != nil {
		return err
	}
	page := newestBody[B]{Server: q.Core.Config.ID, ThresholdMS: threshold, Items: []B{}}
	if s := q.Core.Server.Status(); s.Role == consensus.RoleLeader {
		page.LeadsTerm = s.Term
	}
	for _, x := range list(uint64(before), limit) {
		b, id := body(&x)
		page.Items, page.Next = append(page.Items, b), id
	}
	if len(page.Items) < limit || page.Next == 1 {
		page.Next = 0
	}
	return q.Answer(http.StatusOK, page)
}

// millis is a duration in milliseconds, to the microsecond.
func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
