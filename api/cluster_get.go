package api

import (
	"net/http"
	"slices"
	"time"

	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/server"
)

// memberBody is a server of the ensemble as JSON.
type memberBody struct {
	ID     state.ServerID `json:"id"`
	Role   string         `json:"role"` // leader, follower, observer or joining
	Peer   string         `json:"peer,omitempty"`
	Client string         `json:"client,omitempty"`
	HTTP   string         `json:"http,omitempty"`
}

// clusterBody is the ensemble as this server sees it.
type clusterBody struct {
	Members []memberBody   `json:"members"`
	Leader  state.ServerID `json:"leader"` // 0: unknown
	Term    uint64         `json:"term"`
	Voters  int            `json:"voters"`
	// Tolerates is how many voters may fail when all are up.
	Tolerates int `json:"tolerates"`
	// Survives is how many more may fail now; only the leader knows.
	Survives *int       `json:"survives,omitempty"`
	Server   serverBody `json:"server"`
}

// serverBody is how the server that answers stands.
type serverBody struct {
	ID           state.ServerID `json:"id"`
	Role         server.Role    `json:"role"`
	Serving      bool           `json:"serving"`
	Draining     bool           `json:"draining"`
	LastIndex    uint64         `json:"last_index"`
	AppliedIndex uint64         `json:"applied_index"`
	LastContact  *string        `json:"last_contact"` // null: never
	Pending      int            `json:"pending"`
	DiskFault    string         `json:"disk_fault,omitempty"`
}

// getCluster shows the ensemble.
func (q *request) getCluster() error {
	if err := q.needOperator(); err != nil {
		return err
	}
	srv := q.door.srv
	s := srv.Status()
	body := clusterBody{
		Members: []memberBody{}, Leader: s.Leader, Term: s.Term, Voters: s.Voters,
		Tolerates: max(s.Voters-1, 0) / 2, Survives: survives(&s),
		Server: serverBody{
			ID: srv.Config().ID, Role: s.Role, Serving: srv.Serving(), Draining: srv.Draining(),
			LastIndex: s.LastIndex, AppliedIndex: s.AppliedIndex, Pending: s.Pending,
			DiskFault: s.DiskFault,
		},
	}
	if s.Contact < contactNever {
		text := s.Contact.Round(time.Millisecond).String()
		body.Server.LastContact = &text
	}
	for _, m := range srv.Members() {
		body.Members = append(body.Members, memberOf(&m, &s))
	}
	slices.SortFunc(body.Members, func(a, b memberBody) int { return int(a.ID) - int(b.ID) })
	return q.answer(http.StatusOK, body)
}

// contactNever is longer than any server runs: Status.Contact says so when there has
// been no contact.
const contactNever = 100 * 365 * 24 * time.Hour

// survives is how many of the voters that are connected could fail without the loss
// of the majority. Only the leader knows: it is nil elsewhere.
func survives(s *server.Status) *int {
	var n int
	switch s.Role {
	case server.RoleStandalone:
	case server.RoleLeader:
		n = max(s.Followers+1-(s.Voters/2+1), 0)
	default:
		return nil
	}
	return &n
}

func memberOf(m *server.Member, s *server.Status) memberBody {
	b := memberBody{ID: m.ID, Peer: m.Peer, Client: m.Client, HTTP: m.HTTP, Role: "observer"}
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
