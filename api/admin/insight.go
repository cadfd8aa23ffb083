package admin

import (
	"math"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/zk-lite/zk-lite/api/body"
	"github.com/zk-lite/zk-lite/api/rest"
	"github.com/zk-lite/zk-lite/consensus"
	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/server/insight"
)

// insights show slow requests, expired sessions and the largest users of the server.
type insights struct {
	server Server
	port   Port // nil: there is none
}

// maxNewest is how many items a page has at most, and without limit=.
const maxNewest = 1000

// listSlowRequests shows the newest requests that were slow on this server.
func listSlowRequests(q *rest.Request) error {
	return answerNewest(q, threshold(q), q.Core.Config.Slow.Requests, slowRequest)
}

func slowRequest(r *insight.SlowRequest) (b body.SlowRequest, id uint64) {
	b = body.SlowRequest{
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
}

// listSlowEntries shows the newest entries that were slow and that this server has proposed.
func listSlowEntries(q *rest.Request) error {
	return answerNewest(q, threshold(q), q.Core.Config.Slow.Entries, slowEntry)
}

func slowEntry(e *insight.SlowEntry) (b body.SlowEntry, id uint64) {
	stages := map[string]float64{
		"propose": millis(e.Propose), "disk": millis(e.Disk), "majority": millis(e.Majority), "apply": millis(e.Apply),
	}
	return body.SlowEntry{ID: e.ID, At: e.At.UTC(), Index: e.Index, Term: e.Term, StagesMS: stages}, e.ID
}

// threshold is the time from which on a request is slow.
func threshold(q *rest.Request) *float64 {
	ms := millis(q.Core.Config.Slow.Threshold())
	return &ms
}

// answerNewest answers with a page of the items that list returns; threshold may be nil.
func answerNewest[T, B any](
	q *rest.Request, threshold *float64, list func(before uint64, limit int) []T, item func(*T) (b B, id uint64),
) error {
	before, err := q.Query.Integer("before", 0, 0, math.MaxInt)
	if err != nil {
		return err
	}
	limit, err := q.Query.Integer("limit", maxNewest, 1, maxNewest)
	if err != nil {
		return err
	}
	page := body.Newest[B]{Server: number(q.Core.Config.ID), ThresholdMS: threshold, Items: []B{}}
	if s := q.Core.Server.Status(); s.Role == consensus.RoleLeader {
		page.LeadsTerm = s.Term
	}
	for _, x := range list(uint64(before), limit) {
		b, id := item(&x)
		page.Items, page.Next = append(page.Items, b), id
	}
	if len(page.Items) < limit || page.Next == 1 {
		page.Next = 0
	}
	return q.Answer(http.StatusOK, page)
}

// millis is a duration in milliseconds, to the microsecond.
func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// listExpired shows the newest sessions that have expired, and what this server knows of why.
func (h *insights) listExpired(q *rest.Request) error {
	return answerNewest(q, nil, h.server.Expired().Sessions, expiredSession)
}

func expiredSession(x *insight.ExpiredSession) (b body.ExpiredSession, id uint64) {
	b = body.ExpiredSession{
		ID: x.ID, At: x.At.UTC(), Session: x.Session.String(), TimeoutMS: millis(x.Timeout), Server: number(x.Server),
		Ephemerals: x.Ephemerals, Paths: x.Paths, Cause: x.Cause,
		Heard: known(x.Heard), ServerSilentMS: millis(x.ServerSilent), Connected: x.Connected,
		LastByte: known(x.LastByte), Ended: known(x.Ended), EndReason: x.EndReason, Watches: x.Watches,
		PausedMS: millis(x.Paused),
	}
	b.Who = whoOf(x.Client)
	if x.HeardBy != state.NoServer {
		by := number(x.HeardBy)
		b.HeardBy = &by
	}
	return b, x.ID
}

// known is a moment in UTC; nil for the zero Time.
func known(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

// byWatches is the value of by= that no insight.Measure has.
const byWatches = "watches"

// topMeasures are the values of by=, in the order of insight.Measure.
var topMeasures = []string{"requests", "bytes", "held", byWatches}

// maxTop is how many of each kind are listed at most.
const maxTop = 100

// top shows the sessions, addresses and paths with the most requests, bytes, time held back or watches.
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
	if by == byWatches {
		r = h.topByWatches(q, limit)
	} else {
		r = q.Core.Config.Usage.Top(insight.Measure(measure), limit)
	}
	return q.Answer(http.StatusOK, body.Top{
		Server: number(q.Core.Config.ID), By: by, Seconds: r.Seconds, Total: r.Total,
		Sessions: topUsers(r.Sessions), Addresses: topUsers(r.Addresses), Paths: topUsers(r.Paths),
	})
}

func topUsers(users []insight.User) []body.User {
	list := make([]body.User, 0, len(users))
	for _, u := range users {
		list = append(list, body.User(u))
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
