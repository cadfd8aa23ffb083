package admin

import (
	"errors"
	"net"
	"net/http"
	"strconv"
	"strings"

	"github.com/zk-lite/zk-lite/api/rest"
	"github.com/zk-lite/zk-lite/consensus/membership"
	"github.com/zk-lite/zk-lite/consensus/state"
)

// addMember takes a server into the running ensemble, without a vote until it has
// caught up.
func (h *handlers) addMember(q *rest.Request) error {
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
	body := memberOf(&m, &s)
	if m.Key == [32]byte{} && m.Token == [32]byte{} {
		if body.tokenBody, err = h.newToken(q, m.ID); errors.Is(err, membership.ErrNoTokens) {
			body.tokenBody = nil
		} else if err != nil {
			return clusterProblem(err)
		}
	}
	return q.Answer(http.StatusOK, body)
}

// parseMember reads what follows server.N= in a configuration: host:peerPort, then
// perhaps :electionPort, then perhaps ;[clientHost:]clientPort.
func parseMember(text string) (m state.Member, err error) {
	peer, client, hasClient := strings.Cut(text, ";")
	host, ports, ok := cutHost(peer)
	list := strings.Split(ports, ":")
	if !ok || len(list) > 2 || !isPort(list[0]) || !isPort(list[len(list)-1]) {
		return m, rest.BadRequest("address", "%q is not host:peerPort or host:peerPort:electionPort, "+
			"perhaps with ;clientPort or ;clientHost:clientPort behind it", text)
	}
	m.Addr = net.JoinHostPort(host, list[0])
	m.Peer = m.Addr + ":" + list[len(list)-1]
	if !hasClient {
		return m, nil
	}
	if isPort(client) {
		client = "0.0.0.0:" + client // as in zoo.cfg
	}
	host, port, ok := cutHost(client)
	if !ok || !isPort(port) {
		return m, rest.BadRequest("address", "%q: what follows the semicolon is not clientPort or "+
			"clientHost:clientPort", text)
	}
	m.Client = net.JoinHostPort(host, port)
	return m, nil
}

// cutHost cuts the host, which is in brackets if it has colons, off what follows it.
func cutHost(text string) (host, rest string, ok bool) {
	if after, ipv6 := strings.CutPrefix(text, "["); ipv6 {
		host, rest, ok = strings.Cut(after, "]:")
		return host, rest, ok && net.ParseIP(host) != nil
	}
	host, rest, ok = strings.Cut(text, ":")
	name := strings.ToLower(host)
	const letters = "abcdefghijklmnopqrstuvwxyz0123456789._-"
	return host, rest, ok && name != "" && strings.Trim(name, letters) == ""
}

func isPort(text string) bool {
	n, err := strconv.ParseUint(text, 10, 16)
	return err == nil && n > 0 && text[0] != '+'
}
