package config

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/zk-lite/zk-lite/consensus/state"
)

// Role is what a server of the ensemble takes part in.
type Role string

// The roles of a server line and of peerType.
const (
	Participant Role = "participant" // votes
	Observer    Role = "observer"    // follows and serves, without a vote
)

// Server is one line server.N of the list.
type Server struct {
	ID           int
	Host         string // name or address, without brackets
	PeerPort     int    // all traffic among servers
	ElectionPort int    // ZooKeeper's second port; accepted and unused
	Role         Role
	ClientHost   string // "" unless the line names one
	ClientPort   int    // -1 unless the line names one
}

// PeerAddress is where the others reach the server.
func (s Server) PeerAddress() string {
	return net.JoinHostPort(s.Host, strconv.Itoa(s.PeerPort))
}

// String is the value of the line in ZooKeeper's own form, as it stands in
// /zookeeper/config.
func (s Server) String() string {
	text := fmt.Sprintf("%s:%d:%s", s.PeerAddress(), s.ElectionPort, s.Role)
	if s.ClientPort >= 0 {
		host := s.ClientHost
		if host == "" {
			host = "0.0.0.0"
		}
		text += ";" + net.JoinHostPort(host, strconv.Itoa(s.ClientPort))
	}
	return text
}

const serverForm = "host:peerPort:electionPort[:participant|observer][;[clientHost:]clientPort]"

// parseServer reads the value of server.N (ZooKeeper's QuorumPeer.QuorumServer).
func parseServer(id int, value string) (Server, error) {
	srv := Server{ID: id, Role: Participant, ClientPort: -1}
	if strings.Contains(value, "|") {
		return srv, errors.New("several addresses for one server (|) are not supported; name one")
	}
	server, client, hasClient := strings.Cut(value, ";")
	client, secure, _ := strings.Cut(client, ";")
	if strings.TrimSpace(secure) != "" {
		return srv, errors.New("the secure client port has a key of its own; " +
			"remove the part after the second ;, and set secureClientPort")
	}
	parts, err := splitAddress(server)
	if err != nil {
		return srv, err
	}
	if len(parts) < 3 || len(parts) > 4 {
		return srv, fmt.Errorf("%q is not of the form %s", value, serverForm)
	}
	if srv.Host = parts[0]; srv.Host == "" {
		return srv, fmt.Errorf("%q has no host; the form is %s", value, serverForm)
	}
	if srv.PeerPort, err = parsePort("peer port", parts[1], 1); err != nil {
		return srv, err
	}
	if srv.ElectionPort, err = parsePort("election port", parts[2], 0); err != nil {
		return srv, err
	}
	if len(parts) == 4 {
		if srv.Role, err = parseRole(parts[3]); err != nil {
			return srv, err
		}
	}
	if !hasClient || strings.TrimSpace(client) == "" {
		return srv, nil
	}
	return srv, parseClientPart(&srv, client)
}

func parseClientPart(srv *Server, client string) error {
	parts, err := splitAddress(client)
	if err != nil {
		return err
	}
	if len(parts) > 2 {
		return fmt.Errorf("client part %q is not of the form [host:]port", client)
	}
	if len(parts) == 2 {
		srv.ClientHost = parts[0]
	}
	srv.ClientPort, err = parsePort("client port", parts[len(parts)-1], 0)
	return err
}

func parseRole(s string) (Role, error) {
	switch r := Role(strings.ToLower(strings.TrimSpace(s))); r {
	case Participant, Observer:
		return r, nil
	}
	return "", fmt.Errorf("%q is no role; want participant or observer", s)
}

func parsePort(what, s string, least int) (int, error) {
	n, err := strconv.Atoi(s)
	if err != nil || n < least || n > 65535 {
		return 0, fmt.Errorf("%s %q is not a number between %d and 65535", what, s, least)
	}
	return n, nil
}

// splitAddress cuts at colons. A host in brackets, which an IPv6 address
// needs, is one part and loses them.
func splitAddress(s string) ([]string, error) {
	s = strings.TrimSpace(s)
	if !strings.HasPrefix(s, "[") {
		parts := strings.Split(s, ":")
		for i := range parts {
			parts[i] = strings.TrimSpace(parts[i])
		}
		if len(parts) > 4 {
			return nil, fmt.Errorf("%q has too many colons; "+
				"an IPv6 address stands in brackets, as in [2001:db8::1]:2888:3888", s)
		}
		return parts, nil
	}
	end := strings.IndexByte(s, ']')
	if end < 0 {
		return nil, fmt.Errorf("%q has a [ without a ]", s)
	}
	host, rest := s[1:end], s[end+1:]
	if _, err := netip.ParseAddr(host); err != nil {
		return nil, fmt.Errorf("%q in brackets is not an IP address", host)
	}
	if !strings.HasPrefix(rest, ":") {
		return nil, fmt.Errorf("%q has no :port after the ]", s)
	}
	tail, err := splitAddress(rest[1:])
	return append([]string{host}, tail...), err
}

// parseServerAssignment reads "1=host:..." or "server.1=host:...", the form of
// the flag and of the environment.
func parseServerAssignment(s string) (Server, error) {
	name, value, ok := strings.Cut(s, "=")
	if !ok {
		return Server{}, fmt.Errorf("%q is not of the form N=%s", s, serverForm)
	}
	id, err := parseServerID(strings.TrimPrefix(strings.TrimSpace(name), "server."))
	if err != nil {
		return Server{}, err
	}
	return parseServer(id, value)
}

// noID is the MyID of a server that has none yet, and what ZooKeeper lets a standalone server's file say.
const noID = -1

// parseServerID reads the N of server.N and the contents of a myid file.
func parseServerID(s string) (int, error) {
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 || n > state.MaxServerID {
		return 0, fmt.Errorf("%q is not a server id; want a number from 0 to %d",
			shorten(s), state.MaxServerID)
	}
	return n, nil
}

// unspecified reports whether a host means all interfaces.
func unspecified(host string) bool {
	addr, err := netip.ParseAddr(host)
	return host == "" || err == nil && addr.IsUnspecified()
}

// shorten keeps a value from flooding a message.
func shorten(s string) string {
	if r := []rune(s); len(r) > 60 {
		return string(r[:60]) + "..."
	}
	return s
}

// ownSource is the place of a server's line.
func (l *loader) ownSource(id int) string {
	if src := l.source[fmt.Sprintf("server.%d", id)]; src != "" {
		return src
	}
	return l.source["server"] // a flag or variable has the whole list
}

// checkServers checks the list as a whole.
func (l *loader) checkServers() {
	at := l.where("server")
	ids, peers, clients := map[int]bool{}, map[string]int{}, map[string]int{}
	voters := 0
	for _, srv := range l.s.Servers {
		key := fmt.Sprintf("server.%d", srv.ID)
		if ids[srv.ID] {
			l.fail(at, key, "stands more than once", "give every server an id of its own")
		}
		ids[srv.ID] = true
		if !unspecified(srv.Host) {
			l.checkTaken(at, key, "peer address "+strings.ToLower(srv.PeerAddress()), srv.ID, peers)
		}
		if srv.ClientPort > 0 && !unspecified(srv.ClientHost) {
			_, client, _ := strings.Cut(srv.String(), ";")
			l.checkTaken(at, key, "client address "+strings.ToLower(client), srv.ID, clients)
		}
		if srv.Role == Participant {
			voters++
		}
	}
	switch {
	case len(l.s.Servers) == 0 && !l.s.StandaloneEnabled:
		l.fail(l.where("standalone-enabled"), "standaloneEnabled",
			"false asks for an ensemble, but no server is listed",
			"add lines server.N=..., or set standaloneEnabled=true")
	case len(l.s.Servers) > 0 && voters == 0:
		l.fail(at, "server.N", "every server is an observer", "at least one must be a participant")
	case voters == 1 && len(l.s.Servers) > 1:
		l.warn(at, "server.N", "with 1 voting server none may fail, whatever the number of observers")
	case voters == 2:
		l.warn(at, "server.N", "with 2 voting servers none may fail; 3 tolerate the failure of one")
	case voters > 0 && voters%2 == 0:
		l.warn(at, "server.N", "%d voting servers tolerate no more failures than %d",
			voters, voters-1)
	}
}

func (l *loader) checkTaken(at, key, what string, id int, taken map[string]int) {
	if other, ok := taken[what]; ok && other != id {
		l.fail(at, key, fmt.Sprintf("%s is also that of server.%d", what, other),
			"give every server an address of its own")
	}
	taken[what] = id
}

// resolveMyID finds out which of the servers this is.
func (l *loader) resolveMyID() {
	s := &l.s
	path := filepath.Join(s.DataDir, "myid")
	at := l.where("myid")
	inFile, err := readMyID(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		if s.MyID == noID {
			l.fail(path, "", err.Error(), "")
			return
		}
	case s.MyID == noID:
		s.MyID, at = inFile, path
		l.source["myid"] = path
	case inFile != noID && s.MyID != inFile:
		l.warn(at, "myid", "%d counts, not the %d in %s", s.MyID, inFile, path)
	}
	s.Standalone = s.StandaloneEnabled && len(s.Servers) <= 1
	if s.MyID == noID {
		if !s.Standalone {
			l.fail(path, "", "names no server, or is missing, so this server does not know which of the servers it is",
				l.whichID()+fmt.Sprintf(" > %s; or give --myid or ZK_LITE_MYID", path))
			return
		}
		s.MyID = l.anyID()
	}
	if _, ok := s.Own(); !ok && (len(s.Servers) > 0 || !s.Standalone) {
		l.fail(at, "myid", fmt.Sprintf("%d is not in the list of servers (%s)", s.MyID, l.listed()),
			"add the line server."+strconv.Itoa(s.MyID)+", or correct the id")
	}
}

// whichID tells what to write into myid. It is this machine's id only if that is known: users would paste another
// server's.
func (l *loader) whichID() string {
	var own, all []string
	for _, srv := range l.s.Servers {
		all = append(all, fmt.Sprintf("%d for %s", srv.ID, srv.Host))
		if isThisMachine(srv.Host) {
			own = append(own, strconv.Itoa(srv.ID))
		}
	}
	switch {
	case len(own) == 1:
		return "write its id there, as in: echo " + own[0]
	case len(all) == 0:
		return "write its id there, as in: echo 1"
	}
	return "write the id of this machine's line there (" + strings.Join(all, ", ") + "), as in: echo N"
}

// isThisMachine reports whether a host is this machine's name, with or without its domain, or one of its addresses. It
// asks no DNS.
func isThisMachine(host string) bool {
	host = strings.ToLower(host)
	name, err := os.Hostname()
	name = strings.ToLower(name)
	if host == "localhost" || err == nil && (host == name || strings.HasPrefix(host, name+".")) {
		return true
	}
	ip := net.ParseIP(host)
	if ip.IsLoopback() || ip.IsUnspecified() {
		return true
	}
	addrs, _ := net.InterfaceAddrs() // or none
	return ip != nil && slices.ContainsFunc(addrs, func(a net.Addr) bool {
		n, ok := a.(*net.IPNet)
		return ok && n.IP.Equal(ip)
	})
}

// anyID is the first number of the list, and 1 without one.
func (l *loader) anyID() int {
	if len(l.s.Servers) > 0 {
		return l.s.Servers[0].ID
	}
	return 1
}

func (l *loader) listed() string {
	if len(l.s.Servers) == 0 {
		return "which is empty"
	}
	var names []string
	for _, srv := range l.s.Servers {
		names = append(names, strconv.Itoa(srv.ID))
	}
	return strings.Join(names, ", ")
}

func readMyID(path string) (int, error) {
	if info, err := os.Stat(path); err != nil {
		return 0, err
	} else if info.IsDir() {
		return 0, errors.New("is a directory; want a file with this server's id")
	}
	text, err := readBounded(path)
	if err != nil {
		return 0, fmt.Errorf("cannot be read: %w", err)
	}
	line, _, _ := strings.Cut(text, "\n")
	line = strings.TrimSpace(strings.TrimPrefix(line, "\ufeff"))
	if line == strconv.Itoa(noID) {
		return noID, nil
	}
	return parseServerID(line)
}

// resolveRole lets the list decide, as ZooKeeper does (setupPeerType), and
// checks the hosts.
func (l *loader) resolveRole() {
	s := &l.s
	own, ok := s.Own()
	if !ok {
		if s.PeerType == Observer {
			l.fail(l.where("peer-type"), "peerType", "an observer has nobody to follow",
				"list the servers as server.N=..., or remove peerType")
		}
		return
	}
	if own.Role != s.PeerType && l.given("peer-type") {
		l.warn(l.where("peer-type"), "peerType", "%s counts, which server.%d says in the list",
			own.Role, own.ID)
	}
	s.PeerType = own.Role
	l.source["peer-type"] = l.ownSource(own.ID)
	for _, srv := range s.Servers {
		if srv.ID != own.ID && unspecified(srv.Host) {
			l.fail(l.where("server"), fmt.Sprintf("server.%d", srv.ID),
				fmt.Sprintf("%s is no address at which another server can be reached", srv.Host),
				"only this server's own line may stand for all interfaces")
		}
	}
}
