package admin

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/zk-lite/zk-lite/api/rest"
	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/server/insight"
)

// topMeasures are the values of by=.
var topMeasures = []string{"requests", "bytes", "watches"}

// maxTop is how many of each kind are listed at most.
const maxTop = 100

// topBody is a insight.Ranking as JSON.
type topBody struct {
	Server    state.ServerID `json:"server"`
	By        string         `json:"by"`
	Seconds   float64        `json:"seconds"` // that were counted; 0: watches are those of this moment
	Total     int64          `json:"total"`
	Sessions  []topUser      `json:"sessions"`
	Addresses []topUser      `json:"addresses"`
	Paths     []topUser      `json:"paths"`
}

// topUser is a insight.User as JSON.
type topUser struct {
	Name  string `json:"name"`
	Count int64  `json:"count"`
	Over  int64  `json:"over,omitempty"`
}

// getTop shows who uses this server most.
func (h *handlers) getTop(q *rest.Request) error {
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
func (h *handlers) topByWatches(q *rest.Request, limit int) (r insight.Ranking) {
	if h.cfg.Port == nil {
		return r
	}
	addresses := map[string]int64{}
	for _, c := range h.cfg.Port.Connections() {
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
