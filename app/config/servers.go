package config

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
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
				"an IPv6 address needs brackets, as in [2001:db8::1]:2888:3888", s)
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

// parseHost reads an address to listen on. Brackets around an IPv6 address are
// taken off, and an address that means all interfaces becomes "", so that both IPv4
// and IPv6 are served, as by Java.
func parseHost(text string) (string, error) {
	host := text
	if inner, ok := strings.CutPrefix(text, "["); ok {
		host = strings.TrimSuffix(inner, "]")
	}
	_, err := netip.ParseAddr(host)
	if err != nil && strings.ContainsAny(host, ":/[]* \t") && host != "*" {
		return "", fmt.Errorf("%q is neither a host name nor an IP address; want one without a port",
			shorten(text))
	}
	if host == "*" || unspecified(host) {
		return "", nil
	}
	return host, nil
}

// parseHosts reads names without ports, or "*".
func parseHosts(text string) ([]string, error) {
	const letters = "abcdefghijklmnopqrstuvwxyz0123456789._-"
	var hosts []string
	for h := range strings.SplitSeq(text, ",") {
		if h = strings.ToLower(strings.TrimSpace(h)); h == "" {
			continue
		}
		if h != "*" && strings.Trim(h, letters) != "" {
			return nil, fmt.Errorf("%q is no host name; want one without a port, such as zk.example.org, or *",
				shorten(h))
		}
		hosts = append(hosts, strings.TrimSuffix(h, "."))
	}
	return hosts, nil
}

// parseOrigins reads web origins, separated by commas: scheme, host and port if it
// is not the scheme's own (RFC 6454, section 6.2).
func parseOrigins(text string) ([]string, error) {
	var origins []string
	for o := range strings.SplitSeq(text, ",") {
		if o = strings.TrimSpace(o); o == "" {
			continue
		}
		u, err := url.Parse(o)
		if err != nil || u.Host == "" || u.Scheme+"://"+u.Host != o {
			return nil, fmt.Errorf("%q is no web origin; want some like https://example.org:8443", shorten(o))
		}
		origins = append(origins, o)
	}
	return origins, nil
}

// shorten keeps a value from flooding a message.
func shorten(s string) string {
	if r := []rune(s); len(r) > 60 {
		return string(r[:60]) + "..."
	}
	return s
}
