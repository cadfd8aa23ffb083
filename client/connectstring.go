package client

import (
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/zk-lite/zk-lite/znode"
)

// DefaultPort is that of a host without one in a connect string.
const DefaultPort = "2181"

// maxHosts bounds a connect string: no ensemble has so many servers, and every
// one takes its part of the session timeout when all are tried.
const maxHosts = 256

type hostPort struct{ host, port string }

func (h hostPort) String() string { return net.JoinHostPort(h.host, h.port) }

// parseConnectString splits "host:port,host:port/chroot" (ZooKeeper
// Programmer's Guide, "ZooKeeper Sessions"). The chroot is "" if it is missing
// or /. IPv6 addresses stand in brackets.
func parseConnectString(s string) (hosts []hostPort, chroot string, err error) {
	list := s
	if i := strings.IndexByte(s, '/'); i >= 0 {
		list, chroot = s[:i], s[i:]
		if chroot == "/" {
			chroot = ""
		} else if err := znode.ValidatePath(chroot); err != nil {
			return nil, "", fmt.Errorf("chroot of connect string %q: %w", s, err)
		}
	}
	for item := range strings.SplitSeq(list, ",") {
		h, err := parseHost(strings.TrimSpace(item))
		if err != nil {
			return nil, "", fmt.Errorf("connect string %q: %w", s, err)
		}
		hosts = append(hosts, h)
	}
	if len(hosts) > maxHosts {
		return nil, "", fmt.Errorf("connect string with %d hosts: want at most %d",
			len(hosts), maxHosts)
	}
	return hosts, chroot, nil
}

func parseHost(s string) (hostPort, error) {
	if s == "" {
		return hostPort{}, fmt.Errorf("empty host; want host:port,host:port/chroot")
	}
	h := hostPort{host: s, port: DefaultPort}
	bracketed := strings.HasPrefix(s, "[")
	switch {
	case bracketed && strings.HasSuffix(s, "]"):
		h.host = s[1 : len(s)-1]
	case bracketed || strings.Count(s, ":") == 1:
		host, port, err := net.SplitHostPort(s)
		if err != nil {
			return hostPort{}, fmt.Errorf("host %q: %w", s, err)
		}
		h = hostPort{host, port}
	case strings.Count(s, ":") > 1:
		return hostPort{}, fmt.Errorf("host %q: an IPv6 address stands in brackets: [::1]:2181", s)
	}
	if h.host == "" {
		return hostPort{}, fmt.Errorf("host %q: the name is empty", s)
	}
	if n, err := strconv.ParseUint(h.port, 10, 16); err != nil || n == 0 {
		return hostPort{}, fmt.Errorf("host %q: port %q is not a number from 1 to 65535", s, h.port)
	}
	return h, nil
}

// abs is the path at the server.
func (c *Client) abs(path string) string {
	switch {
	case c.chroot == "":
		return path
	case path == "/":
		return c.chroot
	}
	return c.chroot + path
}

// rel is the path below the chroot, for a path at or below the chroot.
func (c *Client) rel(path string) string {
	if c.chroot == "" {
		return path
	}
	rest, ok := strings.CutPrefix(path, c.chroot)
	switch {
	case ok && rest == "":
		return "/"
	case ok && rest[0] == '/':
		return rest
	}
	return path
}
