package admin

import (
	"math"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/zk-lite/zk-lite/api/rest"
	"github.com/zk-lite/zk-lite/consensus"
	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/server/insight"
)

// insights show what was slow, which sessions have expired and who uses the server most.
type insights struct {
	server Server
	port   Port // nil: there is none
}

// newestBody is a page of the newest of something that a server remembers.
type newestBody[T any] struct {
	Server      state.ServerID `json:"server"`
	LeadsTerm   uint64         `json:"leads_term,omitempty"`   // 0: it does not lead
	ThresholdMS *float64       `json:"threshold_ms,omitempty"` // of slow requests
	Items       []T            `json:"items"`                  // the newest first
	Next        uint64         `json:"next,omitempty"`         // before= of the next page; 0: this was the last
}

// slowRequest is an insight.SlowRequest as JSON.
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

// slowEntry is an insight.SlowEntry as JSON.
type slowEntry struct {
	ID       uint64             `json:"id"`
	At       time.Time          `json:"at"`
	Index    uint64             `json:"index"`
	Term     uint64             `json:"term"`
	StagesMS map[string]float64 `json:"stages_ms"`
}

// maxNewest is how many items a page has at most, and what it has when limit= does not say.
const maxNewest = 1000

// listSlowRequests shows the newest requests that were slow on this server.
func listSlowRequests(q *rest.Request) error {
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

// listSlowEntries shows the newest entries that were slow and that this server has proposed.
func listSlowEntries(q *rest.Request) error {
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

// expiredSession is an insight.ExpiredSession as JSON. What the server does not know is left out.
type expiredSession struct {
	ID         uint64         `json:"id"`
	At         time.Time      `json:"at"`
	Session    string         `json:"session"`
	TimeoutMS  float64        `json:"timeout_ms"`
	Server     state.ServerID `json:"server"`
	Ephemerals int            `json:"ephemerals"`
	Paths      []string       `json:"paths,omitempty"`
	Cause      string         `json:"cause"`

	Heard          *time.Time      `json:"heard,omitempty"`
	HeardBy        *state.ServerID `json:"heard_by,omitempty"`
	ServerSilentMS float64         `json:"server_silent_ms,omitempty"`

	Connected bool       `json:"connected,omitempty"`
	LastByte  *time.Time `json:"last_byte,omitempty"`
	Ended     *time.Time `json:"connection_ended,omitempty"`
	EndReason string     `json:"connection_end_reason,omitempty"`
	Watches   int        `json:"watches,omitempty"`
	PausedMS  float64    `json:"paused_ms,omitempty"`
}

// listExpired shows the newest sessions that have expired, and what this server knows of why.
func (h *insights) listExpired(q *rest.Request) error {
	return answerNewest(q, nil, h.server.Expired().Sessions, func(x *insight.ExpiredSession) (expiredSession, uint64) {
		b := expiredSession{
			ID: x.ID, At: x.At.UTC(), Session: x.Session.String(), TimeoutMS: millis(x.Timeout), Server: x.Server,
			Ephemerals: x.Ephemerals, Paths: x.Paths, Cause: x.Cause,
			Heard: known(x.Heard), ServerSilentMS: millis(x.ServerSilent), Connected: x.Connected,
			LastByte: known(x.LastByte), Ended: known(x.Ended), EndReason: x.EndReason, Watches: x.Watches,
			PausedMS: millis(x.Paused),
		}
		if x.HeardBy != state.NoServer {
			b.HeardBy = &x.HeardBy
		}
		return b, x.ID
	})
}

// known is a moment in UTC; nil for the zero Time.
func known(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

// topMeasures are the values of by=.
var topMeasures = []string{"requests", "bytes", "watches"}

// maxTop is how many of each kind are listed at most.
const maxTop = 100

// topBody is an insight.Ranking as JSON.
type topBody struct {
	Server    state.ServerID `json:"server"`
	By        string         `json:"by"`
	Seconds   float64        `json:"seconds"` // that were counted; 0: watches are those of this moment
	Total     int64          `json:"total"`
	Sessions  []topUser      `json:"sessions"`
	Addresses []topUser      `json:"addresses"`
	Paths     []topUser      `json:"paths"`
}

// topUser is an insight.User as JSON.
type topUser struct {
	Name  string `json:"name"`
	Count int64  `json:"count"`
	Over  int64  `json:"over,omitempty"`
}

// top shows who uses this server most.
func (h *insights) top(q *rest.Request) error {
	by := topMeasures[0]
	if q.Query.Has("by") {
		by = q.Query.Text("by")
	}
	measure := slices.Index(topMeasures, by)
	if measure < 0 {
		return rest.BadRequest("by", "%q is none of %s", by, strings.Join(topMeasures, ", "))
	}
	limit, err := q.Query.Integer("limit", 10, 1, maxTop)
	if err != nil {
		return err
	}
	var r insight.Ranking
	if m := insight.Measure(measure); m == insight.ByRequests || m == insight.ByBytes {
		r = q.Core.Config.Usage.Top(m, limit)
	} else {
		r = h.topByWatches(q, limit)
	}
	return q.Answer(http.StatusOK, topBody{
		q.Core.Config.ID, by, r.Seconds, r.Total,
		topUsers(r.Sessions), topUsers(r.Addresses), topUsers(r.Paths),
	})
}

func topUsers(users []insight.User) []topUser {
	list := make([]topUser, 0, len(users))
	for _, u := range users {
		list = append(list, topUser(u))
	}
	return list
}

// topByWatches counts the paths that connections to the ZooKeeper port watch.
func (h *insights) topByWatches(q *rest.Request, limit int) (r insight.Ranking) {
	if h.port == nil {
		return r
	}
	addresses := map[string]int64{}
	for _, c := range h.port.Connections() {
		conn := h.server.Connection(c.Session)
		if conn == nil {
			continue
		}
		n := int64(conn.Watcher().Paths())
		if n == 0 {
			continue
		}
		r.Total += n
		r.Sessions = append(r.Sessions, insight.User{Name: c.Session.String(), Count: n})
		if at, err := netip.ParseAddrPort(c.Remote); err == nil {
			addresses[at.Addr().String()] += n
		}
	}
	for name, n := range addresses {
		r.Addresses = append(r.Addresses, insight.User{Name: name, Count: n})
	}
	for _, p := range watches(q).MostWatched(limit) {
		r.Paths = append(r.Paths, insight.User{Name: p.Path, Count: int64(p.Watchers)})
	}
	r.Sessions, r.Addresses = insight.TopUsers(r.Sessions, limit), insight.TopUsers(r.Addresses, limit)
	return r
}
