package learner

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
)

// Member is a server of an ensemble's configuration.
type Member struct {
	ID       int64
	Peers    []string // host:port of its quorum port; several with ZooKeeper's multiAddress
	Observer bool
	Client   string // host:port of its client port, maybe of a wildcard host, or only the port; "" if it is not known
}

// ParseMembers reads the servers of a configuration, as NEWLEADER and reconfigurations carry it, and as files of
// ZooKeeper's dynamic configuration have it (QuorumPeer.QuorumServer):
//
//	server.<id>=<host>:<quorum port>:<election port>[|<another>...][:participant|:observer][;[<host>:]<client port>]
//
// Other lines are not read. Errors name the line.
func ParseMembers(text string) ([]Member, error) {
	var members []Member
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		rest, isServer := strings.CutPrefix(line, "server.")
		if !isServer {
			continue
		}
		m, ok := parseMember(rest)
		if !ok {
			return nil, fmt.Errorf("%.200q is not server.<id>=<host>:<port>:<port>[:<role>][;<client port>]", line)
		}
		members = append(members, m)
	}
	return members, nil
}

func parseMember(text string) (m Member, ok bool) {
	number, rest, isPair := strings.Cut(text, "=")
	id, err := strconv.ParseInt(strings.TrimSpace(number), 10, 64)
	if !isPair || err != nil {
		return m, false
	}
	m.ID = id
	peers, client, _ := strings.Cut(rest, ";")
	m.Client = strings.TrimSpace(client)
	if m.Client != "" && !isPort(m.Client[strings.LastIndex(m.Client, ":")+1:]) {
		return m, false
	}
	for one := range strings.SplitSeq(peers, "|") {
		address := strings.TrimSpace(one)
		for _, role := range []string{"participant", "observer"} {
			if cut, has := strings.CutSuffix(strings.ToLower(address), ":"+role); has {
				address, m.Observer = address[:len(cut)], role == "observer"
			}
		}
		end := strings.LastIndex(address, ":")
		if end < 1 || !isPort(address[end+1:]) {
			return m, false
		}
		peer := address[:end]
		if at := strings.LastIndex(peer, ":"); at < 1 || !isPort(peer[at+1:]) {
			return m, false
		}
		m.Peers = append(m.Peers, peer)
	}
	return m, true
}

func isPort(text string) bool {
	n, err := strconv.ParseUint(text, 10, 16)
	return err == nil && n > 0
}

// refuseListed reports ErrListed if a configuration, or the transaction that holds one, has a server with this id.
func refuseListed(text []byte, id int64) error {
	if bytes.Contains(text, fmt.Appendf(nil, "server.%d=", id)) {
		return fmt.Errorf("%w: %d", ErrListed, id)
	}
	return nil
}
