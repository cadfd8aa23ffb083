package client

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/zk-lite/zk-lite/znode"
)

// run is the goroutine that connects. It alone decides when and where, and
// starts the two goroutines of a connection. It continues when both have ended,
// so nothing of an old connection can be mistaken for part of the next.
func (c *Client) run() {
	for c.ctx.Err() == nil {
		l := c.connect()
		if l == nil {
			return
		}
		c.serve(l)
		c.hosts.preferred = l.target
		leaves := errors.Is(l.err, errServerLeaves)
		if leaves || isTimeout(l.err) {
			// It is stopping or silent: ask the others first.
			c.hosts.preferred = target{}
		}
		if leaves {
			continue
		}
		if c.clock()-l.since > c.backoff.max {
			c.backoff.reset()
		} else if !c.rest() {
			// It accepts sessions and drops them: slow down.
			return
		}
	}
}

// connect tries the servers until one accepts. It returns nil if the client
// stops first.
func (c *Client) connect() *link {
	begun, warnAt := c.clock(), time.Duration(0)
	for {
		other := portsMet{}
		for t, err := range c.hosts.round(c.ctx, c.attemptTime()) {
			var l *link
			if err == nil {
				l, err = c.attempt(t)
			}
			if err == nil {
				return l
			}
			if c.ctx.Err() != nil {
				return nil
			}
			c.cfg.logger.Info("connecting failed", "server", t.address, "error", err)
			c.mu.Lock()
			c.connectErr = err
			c.mu.Unlock()
			if errors.Is(err, ErrAuthFailed) && c.giveUp(err) {
				return nil
			}
			other.note(t, err)
			if c.hosts.preferred == t {
				c.hosts.preferred = target{}
			}
		}
		if err := other.all(); err != nil && c.giveUp(err) {
			return nil
		}
		if down := c.clock() - begun; down >= warnAt {
			warnAt = max(2*down, warnPause)
			c.warn(down)
		}
		if !c.rest() {
			return nil
		}
	}
}

// warnPause is the time to the second warning of an outage; the time between two doubles.
const warnPause = 10 * time.Second

// warn says that a round has found no server.
func (c *Client) warn(down time.Duration) {
	c.mu.Lock()
	err := c.connectErr
	c.mu.Unlock()
	if c.ctx.Err() == nil && !errors.Is(err, ErrSessionExpired) { // that is for the events to say
		c.cfg.logger.Warn("no server opens a session; still trying", "server", c.servers,
			"for", down.Round(time.Millisecond), "error", err)
	}
}

// giveUp ends a client that was never connected, from the goroutine that connects. It reports whether it did.
func (c *Client) giveUp(err error) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.everConnectedLocked() {
		return false
	}
	c.connectErr = err
	c.refuseLocked(err)
	c.failQueueLocked(err)
	c.stop()
	return true
}

func (c *Client) everConnectedLocked() bool {
	select {
	case <-c.first:
		return true
	default:
		return false
	}
}

// rest waits between rounds and reports whether to go on.
func (c *Client) rest() bool {
	t := time.NewTimer(c.backoff.pause())
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-c.ctx.Done():
		return false
	}
}

// attemptTime is how long one server may take: its share of the rest of the
// session timeout, so that a silent server leaves time for the others.
func (c *Client) attemptTime() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	d := c.cfg.timeout
	if s := c.session; s.timeout > 0 {
		d = max(s.aliveAt+s.lifetimeLocked()-c.clock(), minAttempt)
	}
	return max(d/time.Duration(max(len(c.hosts.list), 1)), min(minAttempt, d))
}

// serve runs a connection until it ends.
func (c *Client) serve(l *link) {
	var wg sync.WaitGroup
	wg.Go(func() { l.fail(c.write(l)) })
	wg.Go(func() { l.fail(c.readAll(l)) })
	<-l.gone
	c.mu.Lock()
	c.detachLocked(l, l.err)
	c.mu.Unlock()
	wg.Wait()
	if c.ctx.Err() == nil {
		c.cfg.logger.Info("connection lost", "server", l.target.address, "error", l.err)
	}
}

func isTimeout(err error) bool {
	var t interface{ Timeout() bool }
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &t) && t.Timeout()
}

// target is one address to try. The host is that of the connect string: TLS
// checks the certificate against it.
type target struct {
	host    string
	address string // ip:port
}

// hosts yields the servers in the order in which to try them. The goroutine
// that connects owns it.
type hosts struct {
	list      []hostPort
	service   string // whose SRV records are the list; empty: the connect string has it
	lookup    LookupFunc
	lookupSRV ServiceLookupFunc
	random    *rand.Rand

	preferred target // the last server that worked, "" if it went silent
}

func newHosts(list []hostPort, lookup LookupFunc, random *rand.Rand) *hosts {
	h := &hosts{list: append([]hostPort(nil), list...), lookup: lookup, random: random}
	h.random.Shuffle(len(h.list), func(i, j int) { h.list[i], h.list[j] = h.list[j], h.list[i] })
	return h
}

// round yields every address once: first the last server that worked, which still
// knows the session, then the others. It looks names up in every round, each when its
// turn comes, so that one broken name does not delay the others. A name that cannot
// be resolved yields an error instead of a target.
func (h *hosts) round(ctx context.Context, each time.Duration) iter.Seq2[target, error] {
	return func(yield func(target, error) bool) {
		first := h.preferred
		if first.address != "" && !yield(first, nil) {
			return
		}
		if err := h.find(ctx, each); err != nil && !yield(target{}, err) {
			return
		}
		for i, hp := range h.list {
			addresses, err := h.resolve(ctx, hp, each)
			if err != nil && !yield(target{}, err) {
				return
			}
			for _, a := range addresses {
				t := target{host: hp.host, address: net.JoinHostPort(a, hp.port)}
				if t == first {
					continue
				}
				if !yield(t, nil) {
					// The next round starts after this host.
					h.list = append(h.list[i+1:len(h.list):len(h.list)], h.list[:i+1]...)
					return
				}
			}
		}
	}
}

// find brings the list up to date, by what DNS says now. It is in the order of the records' priorities and weights
// (RFC 2782). The list of before stays if there is none.
func (h *hosts) find(ctx context.Context, d time.Duration) error {
	if h.service == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	records, err := h.lookupSRV(ctx, h.service)
	var list []hostPort
	for _, r := range records[:min(len(records), maxHosts)] {
		if host := strings.TrimSuffix(r.Target, "."); host != "" && r.Port != 0 {
			list = append(list, hostPort{host, strconv.Itoa(int(r.Port))})
		}
	}
	switch {
	case len(list) > 0: // an error is about other records
		h.list = list
		return nil
	case err == nil:
		err = errors.New("no SRV records")
	}
	return fmt.Errorf("looking up the servers of %s: %w", h.service, err)
}

func (h *hosts) resolve(ctx context.Context, hp hostPort, d time.Duration) ([]string, error) {
	if _, err := netip.ParseAddr(hp.host); err == nil {
		return []string{hp.host}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	addresses, err := h.lookup(ctx, hp.host)
	if err != nil {
		return nil, fmt.Errorf("looking up %s: %w", hp.host, err)
	}
	h.random.Shuffle(len(addresses), func(i, j int) {
		addresses[i], addresses[j] = addresses[j], addresses[i]
	})
	return addresses, nil
}

// backoff is the pause between rounds: exponential, with jitter.
type backoff struct {
	min, max time.Duration
	random   *rand.Rand
	next     time.Duration
}

func (b *backoff) reset() { b.next = 0 }

// pause returns how long to wait now, and doubles.
func (b *backoff) pause() time.Duration {
	b.next = min(max(2*b.next, b.min), b.max)
	half := b.next / 2
	return b.next - time.Duration(b.random.Int64N(int64(half)+1))
}

// DefaultPort is the port of a host that has none in the connect string.
const DefaultPort = "2181"

// maxHosts bounds a connect string: no ensemble has that many servers, and each
// takes its share of the session timeout when all are tried.
const maxHosts = 256

type hostPort struct{ host, port string }

func (h hostPort) String() string { return net.JoinHostPort(h.host, h.port) }

// ServicePrefix begins a connect string that names a service of DNS instead of servers (ZooKeeper 3.10).
const ServicePrefix = "dns-srv://"

// parseServers parses a connect string: of servers, or of a service.
func parseServers(s string) (list []hostPort, service, chroot string, err error) {
	rest, isService := strings.CutPrefix(s, ServicePrefix)
	list, chroot, err = parseConnectString(rest)
	switch {
	case err != nil || !isService:
		return list, "", chroot, err
	case len(list) != 1 || strings.ContainsAny(rest, ":,"):
		return nil, "", "", fmt.Errorf("connect string %q: want one name of a service, as in "+
			ServicePrefix+"_zookeeper._tcp.example.org/chroot", s)
	}
	return nil, list[0].host, chroot, nil
}

// parseConnectString splits "host:port,host:port/chroot" (ZooKeeper
// Programmer's Guide, "ZooKeeper Sessions"). The chroot is "" if it is missing
// or /. IPv6 addresses are in brackets.
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
