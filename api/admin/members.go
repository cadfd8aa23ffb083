package admin

import (
	"errors"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/zk-lite/zk-lite/api/body"
	"github.com/zk-lite/zk-lite/api/rest"
	"github.com/zk-lite/zk-lite/consensus"
	"github.com/zk-lite/zk-lite/consensus/membership"
	"github.com/zk-lite/zk-lite/consensus/state"
)

// addMember takes a server into the running ensemble, without a vote until it has
// caught up.
func (h *cluster) addMember(q *rest.Request) error {
	var doc struct {
		ID      *uint64 `json:"id"`
		Address string  `json:"address"`
		Role    string  `json:"role"`
	}
	if err := q.Decode(rest.SmallBody, &doc); err != nil {
		return err
	}
	switch {
	case doc.ID == nil:
		return rest.BadRequest("id", "the new server's id is missing")
	case *doc.ID > state.MaxServerID:
		return rest.BadRequest("id", "%d is not a server id from 0 to %d", *doc.ID, state.MaxServerID)
	}
	m, err := parseMember(doc.Address)
	if err != nil {
		return err
	}
	m.ID = state.ServerID(*doc.ID)
	switch doc.Role {
	case "", "voter":
		m.Vote = true
	case "observer":
	default:
		return rest.BadRequest("role", "%q is neither voter nor observer", doc.Role)
	}
	if err := needLeader(q); err != nil {
		return err
	}
	if err := h.ensemble.AddServer(q.Context, m); err != nil {
		return clusterProblem(err)
	}
	s := q.Core.Server.Status()
	if now, ok := h.ensemble.Members()[m.ID]; ok {
		m = now // a vote that it had already, it keeps
	}
	out := memberOf(&m, &s)
	if m.Key == [32]byte{} && m.Token == [32]byte{} {
		if out.Token, err = h.newToken(q, m.ID); errors.Is(err, membership.ErrNoTokens) {
			out.Token = nil
		} else if err != nil {
			return clusterProblem(err)
		}
	}
	return q.Answer(http.StatusOK, out)
}

// parseMember reads the value of server.N= in a configuration: host:peerPort, then
// perhaps :electionPort, then perhaps ;[clientHost:]clientPort.
func parseMember(text string) (m state.Member, err error) {
	peer, client, hasClient := strings.Cut(text, ";")
	host, ports, ok := state.CutHost(peer)
	list := strings.Split(ports, ":")
	if !ok || len(list) > 2 || !state.IsPort(list[0]) || !state.IsPort(list[len(list)-1]) {
		return m, rest.BadRequest("address", "%q is not host:peerPort or host:peerPort:electionPort, "+
			"perhaps with ;clientPort or ;clientHost:clientPort behind it", text)
	}
	m.Addr = net.JoinHostPort(host, list[0])
	m.Peer = m.Addr + ":" + list[len(list)-1]
	if !hasClient {
		return m, nil
	}
	clientHost, port, ok := state.CutHost(client)
	if state.IsPort(client) {
		clientHost, port, ok = host, client, true
	}
	if !ok || !state.IsPort(port) {
		return m, rest.BadRequest("address", "%q: what follows the semicolon is not clientPort or "+
			"clientHost:clientPort", text)
	}
	if net.ParseIP(clientHost).IsUnspecified() { // it says where the server listens: there, too
		clientHost = host
	}
	m.Client = net.JoinHostPort(clientHost, port)
	return m, nil
}

// removeMember takes a server out of the ensemble. A leader hands over first.
func (h *cluster) removeMember(q *rest.Request) error {
	id, err := serverID(q)
	if err != nil {
		return err
	}
	force, err := q.Query.Flag("force")
	if err != nil {
		return err
	}
	if err := needLeader(q); err != nil {
		return err
	}
	if err := h.ensemble.RemoveServer(q.Context, id, force); err != nil {
		return clusterProblem(err)
	}
	q.Begin(http.StatusNoContent)
	return nil
}

// makeToken makes a one-time token with which a member may join with a new key.
func (h *cluster) makeToken(q *rest.Request) error {
	id, err := serverID(q)
	if err != nil {
		return err
	}
	if err := needLeader(q); err != nil {
		return err
	}
	t, err := h.newToken(q, id)
	if err != nil {
		return clusterProblem(err)
	}
	return q.Answer(http.StatusOK, t)
}

func (h *cluster) newToken(q *rest.Request, id state.ServerID) (*body.Token, error) {
	secret, until, err := h.ensemble.NewToken(q.Context, id)
	return &body.Token{Token: secret, Until: until.UTC().Truncate(time.Second)}, err
}

// serverID is the server that the path names.
func serverID(q *rest.Request) (state.ServerID, error) {
	id, err := strconv.ParseUint(q.Vars["id"], 10, 8)
	if err != nil || id > state.MaxServerID {
		return 0, rest.BadRequest("id", "%q is not a server id from 0 to %d", q.Vars["id"], state.MaxServerID)
	}
	return state.ServerID(id), nil
}

// raiseLevel raises the ensemble's feature level.
func (h *cluster) raiseLevel(q *rest.Request) error {
	var doc struct {
		Level state.Level `json:"level"`
	}
	if err := q.Decode(rest.SmallBody, &doc); err != nil {
		return err
	}
	if doc.Level == 0 {
		return rest.BadRequest("level", "is missing; want a level as GET /v1/cluster shows it")
	}
	if err := needLeader(q); err != nil {
		return err
	}
	if err := h.ensemble.RaiseLevel(q.Context, doc.Level); err != nil {
		return clusterProblem(err)
	}
	now, highest := h.ensemble.Levels()
	return q.Answer(http.StatusOK, map[string]any{"level": now, "highest_level": highest})
}

const (
	// newsTimeout is how long the answer to a transfer waits until this server knows
	// the new leader, and newsInterval how often it looks: a few times in a heartbeat.
	newsTimeout  = 2 * time.Second
	newsInterval = 10 * time.Millisecond
)

// transfer hands leadership to a voter, or to the one that is most up to date.
func (h *cluster) transfer(q *rest.Request) error {
	var doc struct {
		To *uint64 `json:"to"`
	}
	if err := q.Decode(rest.SmallBody, &doc); err != nil {
		return err
	}
	to := state.NoServer
	if doc.To != nil {
		if *doc.To > state.MaxServerID {
			return rest.BadRequest("to", "%d is not a server id from 0 to %d", *doc.To, state.MaxServerID)
		}
		to = state.ServerID(*doc.To)
	}
	if err := needLeader(q); err != nil {
		return err
	}
	if err := h.ensemble.TransferTo(q.Context, to); err != nil {
		return clusterProblem(err)
	}
	s := awaitLeader(q, to)
	return q.Answer(http.StatusOK, map[string]any{"leader": s.Leader, "term": s.Term})
}

// needLeader reports that this server knows no leader, and hears of none for a moment: a change would wait for one
// longer than its sender, who would not know then whether it has happened.
func needLeader(q *rest.Request) error {
	if awaitLeader(q, state.NoServer).Leader == state.NoServer {
		return clusterProblem(membership.ErrNoLeader)
	}
	return nil
}

// awaitLeader waits a moment until this server knows that server to lead, or with
// NoServer any.
func awaitLeader(q *rest.Request, to state.ServerID) consensus.Status {
	late := time.NewTimer(newsTimeout)
	defer late.Stop()
	look := time.NewTicker(newsInterval)
	defer look.Stop()
	for {
		s := q.Core.Server.Status()
		if s.Leader != state.NoServer && (to == state.NoServer || s.Leader == to) {
			return s
		}
		select {
		case <-look.C:
		case <-late.C:
			return s
		case <-q.Context.Done():
			return s
		}
	}
}
