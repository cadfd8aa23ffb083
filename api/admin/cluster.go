package admin

import (
	"context"
	"encoding/hex"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/zk-lite/zk-lite/api/body"
	"github.com/zk-lite/zk-lite/api/metrics"
	"github.com/zk-lite/zk-lite/api/rest"
	"github.com/zk-lite/zk-lite/consensus"
	"github.com/zk-lite/zk-lite/consensus/membership"
	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/migration/mirror"
	"github.com/zk-lite/zk-lite/znode"
)

// cluster is the ensemble: its members, who leads, and whether this server can be stopped.
type cluster struct {
	server   Server
	ensemble *membership.Ensemble
	mirror   Mirror
}

// statusTimeout is how long a request for the ensemble's state waits for the leader: that no server leads should be
// reported soon.
const statusTimeout = 3 * time.Second

// asMember is an operation on the ensemble that only its members answer: a client of another server goes to the next.
func asMember(handle func(*rest.Request) error) func(*rest.Request) error {
	return func(q *rest.Request) error {
		s := q.Core.Server.Status()
		p := &rest.Problem{Status: http.StatusServiceUnavailable, Hint: "ask another server"}
		switch {
		case s.Halt != nil:
			p.Title, p.Detail = "halted: "+string(s.Halt.Kind), s.Halt.Reason
		case s.Ensemble == [16]byte{}:
			p.Title, p.Detail = "no ensemble yet", "this server belongs to no ensemble yet"
			if s.Waiting != "" {
				p.Detail += "; it waits " + s.Waiting
			}
		default:
			return handle(q)
		}
		return p // without Retry-After: it is no use to ask this server again
	}
}

// get shows the ensemble.
func (h *cluster) get(q *rest.Request) error {
	ctx, cancel := context.WithTimeout(q.Context, statusTimeout)
	defer cancel()
	ensemble, err := h.ensemble.Status(ctx)
	srv := q.Core.Server
	s := srv.Status()
	now, highest := h.ensemble.Levels()
	out := body.Cluster{
		Ensemble: hex.EncodeToString(s.Ensemble[:]), Members: []body.Member{}, Leader: number(s.Leader), Term: s.Term,
		Level: int(now), HighestLevel: int(highest),
		Voters: s.Voters, FailuresTolerated: max(s.Voters-1, 0) / 2,
		Server: body.Server{
			ID: number(q.Core.Config.ID), Role: string(s.Role), Serving: srv.Serving(), Draining: srv.Draining(),
			LastIndex: s.LastIndex, AppliedIndex: s.AppliedIndex, Pending: s.Pending,
			DiskFault: s.DiskFault, LastContact: contactText(s.Contact),
		},
	}
	if m := h.mirror.Status(); m.Phase != mirror.Off {
		out.Mirror = mirrorOf(m, q.Core.Config.ID)
	}
	known := map[state.ServerID]*body.Known{}
	if err != nil {
		out.Incomplete = "no leader has answered, so how the members stand is not known: " + err.Error()
	} else {
		n := ensemble.FailuresToleratedNow()
		out.FailuresToleratedNow = &n
		known, out.Reconfiguring = knownOf(&ensemble), ensemble.Reconfiguring
	}
	for _, m := range h.ensemble.Members() {
		one := memberOf(&m, &s)
		one.Known = known[m.ID]
		out.Members = append(out.Members, one)
	}
	slices.SortFunc(out.Members, func(a, b body.Member) int { return a.ID - b.ID })
	return q.Answer(http.StatusOK, out)
}

// number is the id of a server in a body; -1: none.
func number(id state.ServerID) int { return int(id.Number()) }

func knownOf(s *membership.Status) map[state.ServerID]*body.Known {
	all := map[state.ServerID]*body.Known{}
	for i := range s.Members {
		m := &s.Members[i]
		k := &body.Known{Connected: m.Connected, LastContact: contactText(m.Contact)}
		if m.Connected {
			lag := s.Lag(m)
			k.LastIndex, k.AppliedIndex, k.Lag = &m.LastIndex, &m.AppliedIndex, &lag
		}
		if p := m.Plan; p != nil {
			k.Plan = &body.Plan{Action: string(p.Action), Waits: p.Waits}
			if p.Waits == "" {
				k.Plan.In = p.In.Round(time.Second).String()
			}
		}
		all[m.ID] = k
	}
	return all
}

// contactText is how long ago there was contact; nil: never.
func contactText(d time.Duration) *string {
	if d >= metrics.ContactNever {
		return nil
	}
	text := d.Round(time.Millisecond).String()
	return &text
}

func memberOf(m *state.Member, s *consensus.Status) body.Member {
	b := body.Member{
		ID: number(m.ID), Peer: m.Peer, Client: m.Client, HTTP: m.HTTP, Role: "observer",
		Version: m.Version, Commit: m.Commit,
	}
	if m.MaxLevel > 0 {
		b.Levels = []int{int(m.MinLevel), int(m.MaxLevel)}
	}
	if m.Key != [32]byte{} {
		b.Key = hex.EncodeToString(m.Key[:8])
	}
	switch {
	case m.ID == s.Leader:
		b.Role = "leader"
	case m.Voter:
		b.Role = "follower"
	case m.Vote:
		b.Role = "joining"
	}
	return b
}

// drainBody tells whether this server can be stopped.
type drainBody struct {
	Server   state.ServerID `json:"server"`
	Draining bool           `json:"draining"`
	Safe     bool           `json:"safe_to_stop"`
}

// drain makes this server ready to be stopped: it takes no new clients, hands over
// leadership and sends its clients away.
func (h *cluster) drain(q *rest.Request) error {
	if err := h.server.Drain(q.Context); err != nil {
		return clusterProblem(err)
	}
	q.Core.Long.DisconnectAll(rest.ErrDraining)
	return q.Answer(http.StatusOK, drainBody{q.Core.Config.ID, true, true})
}

// undrain takes clients again.
func (h *cluster) undrain(q *rest.Request) error {
	h.server.Undrain()
	q.Begin(http.StatusNoContent)
	return nil
}

// clusterProblem explains why a change of the ensemble has failed.
func clusterProblem(err error) error {
	p := &rest.Problem{
		Status: http.StatusServiceUnavailable, Code: znode.ErrConnectionLoss, RetryAfter: 1,
		Title: "the ensemble did not agree", Detail: err.Error(),
		Hint: "try again; repeating it is safe",
	}
	switch {
	case errors.Is(err, membership.ErrNoMember):
		p.Status, p.Code, p.RetryAfter, p.Title = http.StatusNotFound, znode.OK, 0, "no such server"
		p.Hint = "GET /v1/cluster lists the members, and which of them vote"
	case errors.Is(err, membership.ErrStandalone):
		p.Status, p.Code, p.RetryAfter, p.Title = http.StatusConflict, znode.OK, 0, "stands alone"
		p.Hint = "start it as a member of an ensemble: its configuration needs server.N lines"
	case errors.Is(err, membership.ErrNoTokens):
		p.Status, p.Code, p.RetryAfter, p.Title = http.StatusConflict, znode.OK, 0, "no token is needed"
		p.Hint = "start the server"
	case errors.Is(err, membership.ErrElsewhere):
		p.Status, p.Code, p.RetryAfter = http.StatusConflict, znode.OK, 0
		p.Title = "a member at another address"
		p.Hint = "choose another id; if this server has moved, stop it where it was first"
	case errors.Is(err, membership.ErrReconfiguring):
		p.Status, p.Code, p.RetryAfter, p.Title = http.StatusConflict, znode.OK, 0, "a reconfiguration is in progress"
		p.Hint = "try again when it has ended; the leader's log says what it waits for"
	case errors.Is(err, membership.ErrLevel):
		p.Status, p.Code, p.RetryAfter, p.Title = http.StatusConflict, znode.OK, 0, "not at this level"
		p.Hint = "GET /v1/cluster shows the ensemble's level, and those of its servers"
	case errors.Is(err, membership.ErrNoLeader):
		p.Title = "no leader"
		p.Hint = "start the voters that are down, and try again; GET /v1/cluster shows the members"
	case errors.Is(err, membership.ErrTooFew):
		p.Status, p.Code, p.RetryAfter = http.StatusConflict, znode.OK, 0
		p.Title = "too few would be left"
		p.Hint = "bring another voter back first, or add one; force=true removes a server nevertheless"
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		p.Status, p.Code, p.RetryAfter = http.StatusGatewayTimeout, znode.ErrOperationTimeout, 0
		p.Title = "outcome unknown"
		p.Hint = "GET /v1/cluster shows the result; repeating it is safe"
	}
	return p
}

// listServers lists the members, for clients that may not see their state.
func (h *cluster) listServers(q *rest.Request) error {
	s := q.Core.Server.Status()
	out := body.Servers{Server: number(q.Core.Config.ID), Servers: []body.ServerRow{}}
	if s.Ensemble != [16]byte{} {
		out.Ensemble = hex.EncodeToString(s.Ensemble[:])
	}
	for id, m := range h.ensemble.Members() {
		out.Servers = append(out.Servers, body.ServerRow{ID: number(id), HTTP: m.HTTP, Client: m.Client})
	}
	slices.SortFunc(out.Servers, func(a, b body.ServerRow) int { return a.ID - b.ID })
	if e := s.Election; !e.Ended.IsZero() {
		out.Election = &body.Election{
			Leader: number(e.Leader), Term: e.Term, Ended: e.Ended.UTC(), OutageMS: millis(e.Outage),
		}
	}
	return q.Answer(http.StatusOK, out)
}
