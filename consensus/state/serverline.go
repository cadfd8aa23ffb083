package state

import (
	"fmt"
	"net"
	"strconv"
	"strings"
)

// ParseServer reads the value of a line server.N of ZooKeeper's configurations:
// host:port:port[:participant|:observer][;[clientHost:]clientPort]. A client port without a host is on 0.0.0.0.
// Errors say what is wrong with the text.
func ParseServer(text string) (x PlannedServer, err error) {
	if strings.Contains(text, "|") {
		return x, fmt.Errorf("%.200q has several addresses for one server (|); name one", text)
	}
	peer, client, hasClient := strings.Cut(strings.TrimSpace(text), ";")
	host, rest, ok := CutHost(strings.TrimSpace(peer))
	parts := strings.Split(rest, ":")
	if !ok || len(parts) < 2 || len(parts) > 3 || !IsPort(parts[0]) || !IsPort(parts[1]) {
		return x, fmt.Errorf("%.200q is not host:peerPort:electionPort, perhaps with :participant or :observer, and "+
			"with ;clientPort or ;clientHost:clientPort behind it", text)
	}
	x.Voter = true
	if len(parts) == 3 {
		switch role := strings.ToLower(strings.TrimSpace(parts[2])); role {
		case "participant":
		case "observer":
			x.Voter = false
		default:
			return x, fmt.Errorf("%.200q: %.50q is no role; want participant or observer", text, role)
		}
	}
	x.Peer = net.JoinHostPort(host, parts[0]) + ":" + parts[1]
	if !hasClient {
		return x, nil
	}
	if client = strings.TrimSpace(client); IsPort(client) {
		client = "0.0.0.0:" + client
	}
	host, port, ok := CutHost(client)
	if !ok || !IsPort(port) {
		return x, fmt.Errorf("%.200q: what follows the semicolon is not clientPort or clientHost:clientPort", text)
	}
	x.Client = net.JoinHostPort(host, port)
	return x, nil
}

// maxHost bounds a host's name, in bytes (RFC 1035, 2.3.4).
const maxHost = 255

// CutHost cuts the host, in brackets if it has colons, off the rest; ok is false if it is no name or address.
func CutHost(text string) (host, rest string, ok bool) {
	if after, ipv6 := strings.CutPrefix(text, "["); ipv6 {
		host, rest, ok = strings.Cut(after, "]:")
		return host, rest, ok && net.ParseIP(host) != nil
	}
	host, rest, ok = strings.Cut(text, ":")
	const letters = "abcdefghijklmnopqrstuvwxyz0123456789._-"
	return host, rest, ok && host != "" && len(host) <= maxHost && strings.Trim(strings.ToLower(host), letters) == ""
}

// IsPort reports whether a text is the number of a port.
func IsPort(text string) bool {
	n, err := strconv.ParseUint(text, 10, 16)
	return err == nil && n > 0
}
