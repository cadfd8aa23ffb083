package app

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/zk-lite/zk-lite/api/zk"
	"github.com/zk-lite/zk-lite/app/config"
	"github.com/zk-lite/zk-lite/internal/rawconn"
)

// listeners are the ports of a server. They are opened before anything else,
// so that a port in use is found while nothing has been touched.
type listeners struct {
	client, secure, peer, http, dns net.Listener // some may be nil

	dnsUDP net.PacketConn // beside dns, at the same port

	moving sync.Mutex // protects client once the server runs; the network is not waited for under it
}

func (l *listeners) open(s *config.Settings) (err error) {
	for _, p := range l.ports(s) {
		x, err := p.listen(p.config, p.addr)
		if err != nil {
			return err
		}
		*p.to = accelerate(s, x)
	}
	if l.dns != nil {
		addr := net.JoinHostPort(s.DNSAddress, strconv.Itoa(portOf(l.dns)))
		if l.dnsUDP, err = net.ListenPacket("udp", addr); err != nil {
			return ofDNS.failed(addr, err)
		}
	}
	return nil
}

// port is a port that the settings ask for.
type port struct {
	origin
	config net.ListenConfig
	addr   string
	to     *net.Listener
}

// forClients has no TCP keep-alive, which would cost five system calls a connection: sessions have heartbeats of
// their own.
var forClients = net.ListenConfig{KeepAlive: -1}

func (l *listeners) ports(s *config.Settings) (all []port) {
	own, _ := s.Own()
	line := fmt.Sprintf("server.%d", s.MyID)
	client := origin{port: ClientPortSetting, host: "clientPortAddress"}
	if own.ClientHost != "" {
		client.host = line
	}
	if s.ClientPort != config.NoPort {
		all = append(all, port{client, forClients, s.ClientListen(), &l.client})
	}
	if s.SecureClientPort != config.NoPort {
		secure := origin{port: SecureClientPortSetting, host: "secureClientPortAddress"}
		all = append(all, port{secure, forClients, s.SecureClientListen(), &l.secure})
	}
	if !alone(s) {
		addr := own.PeerAddress()
		if s.QuorumListenOnAllIPs {
			addr = net.JoinHostPort("", strconv.Itoa(own.PeerPort))
		}
		peers := origin{port: line, host: line, or: ", or set quorumListenOnAllIPs=true"}
		all = append(all, port{peers, net.ListenConfig{}, addr, &l.peer})
	}
	if s.AdminEnabled {
		admin := origin{port: HTTPPortSetting, host: "admin.serverAddress"}
		all = append(all, port{admin, net.ListenConfig{}, s.AdminListen(), &l.http})
	}
	if s.DNSPort != config.NoPort {
		all = append(all, port{ofDNS, net.ListenConfig{}, s.DNSListen(), &l.dns})
	}
	return all
}

// httpPort is where HTTP clients of the ZooKeeper ports are sent; nil without an HTTP port.
func httpPort(s *config.Settings, l net.Listener) *zk.HTTPPort {
	if l == nil {
		return nil
	}
	return &zk.HTTPPort{
		Addr: l.Addr().(*net.TCPAddr).AddrPort(),
		TLS:  s.AdminTLS(), Plain: !s.AdminTLS() || s.AdminPortUnification && !s.AdminForceHTTPS,
	}
}

// now returns the listener of clientPort, nil without one.
func (l *listeners) now() net.Listener {
	l.moving.Lock()
	defer l.moving.Unlock()
	return l.client
}

// move replaces the listener of clientPort by one at another port of the same interface, as soon as that is open. It
// returns the new one, or nil if l has that port already, or no such listener.
func (l *listeners) move(s *config.Settings, to int) (net.Listener, error) {
	from := l.now()
	if from == nil || portOf(from) == to {
		return nil, nil
	}
	line := fmt.Sprintf("server.%d of /zookeeper/config", s.MyID)
	x, err := origin{port: line, host: "clientPortAddress"}.listen(forClients,
		net.JoinHostPort(s.ClientPortAddress, strconv.Itoa(to)))
	if err != nil {
		return nil, err
	}
	x = accelerate(s, x)
	l.moving.Lock()
	l.client = x
	l.moving.Unlock()
	_ = from.Close() // its connections stay
	return x, nil
}

// retryPort is how often the port of a reconfiguration is tried that cannot be opened: what uses it may end.
const retryPort = 5 * time.Second

// follower opens, in a goroutine, the client port that a reconfiguration gives this server.
type follower struct {
	cancel context.CancelFunc
	done   chan struct{} // closed when the goroutine has ended
}

func (s *Server) followPort(c *config.Settings) {
	ctx, cancel := context.WithCancel(context.Background())
	f := &follower{cancel, make(chan struct{})}
	s.follower = f
	go func() {
		defer close(f.done)
		s.follow(ctx, c)
	}()
}

func (s *Server) follow(ctx context.Context, c *config.Settings) {
	failed := ""
	for {
		addr, moved := s.consensus.Ensemble().ClientAddress()
		var retry <-chan time.Time
		if err := s.movePort(c, addr); err == nil {
			failed = ""
		} else {
			if retry = time.After(retryPort); failed != addr {
				s.logger.Warn("the client port of a reconfiguration cannot be opened; the former one stays until it "+
					"can", "wanted", addr, "serving", s.ClientAddr().String(), "error", err, "retry_in", retryPort)
			}
			failed = addr
		}
		select {
		case <-ctx.Done():
			return
		case <-moved:
		case <-retry:
		}
	}
}

// movePort serves clients at the port of addr, and no longer at the former one. Connections stay.
func (s *Server) movePort(c *config.Settings, addr string) error {
	_, text, err := net.SplitHostPort(addr)
	port, wrong := strconv.Atoi(text)
	if err != nil || wrong != nil { // empty: see ClientAddress
		return nil
	}
	l, err := s.listeners.move(c, port)
	if l == nil || err != nil {
		return err
	}
	s.logger.Info("the client port has changed by a reconfiguration; this server's own configuration counts at its "+
		"next start", "port", port)
	go s.serve("the ZooKeeper port", func() error { return s.zk.Serve(s.tls.client(c, l)) })
	return nil
}

func (f *follower) stop() {
	if f != nil {
		f.cancel()
		<-f.done
	}
}

// clientPort is the number of the port without TLS alone for clients; config.NoPort without one.
func (s *Server) clientPort() int { return portOf(s.listeners.now()) }

// TryPorts opens every port of a server that does not run, and closes it again. The errors are *ListenError.
func TryPorts(s *config.Settings) (errs []error) {
	var l listeners
	for _, p := range l.ports(s) {
		x, err := p.listen(p.config, p.addr)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		_ = x.Close()
	}
	return errs
}

// accelerate has the connections of l use raw system calls, unless that is switched off.
func accelerate(s *config.Settings, l net.Listener) net.Listener {
	if !s.RawSystemCalls {
		return l
	}
	return rawconn.Listener(l)
}

// dialPeer returns the function that connects to another server.
func dialPeer(s *config.Settings) func(ctx context.Context, addr string) (net.Conn, error) {
	return func(ctx context.Context, addr string) (net.Conn, error) {
		c, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
		if err != nil || !s.RawSystemCalls {
			return c, err
		}
		return rawconn.New(c), nil
	}
}

// The settings of ports that a ListenError may name.
const (
	ClientPortSetting       = "clientPort"
	SecureClientPortSetting = "secureClientPort"
	HTTPPortSetting         = "admin.serverPort"
	DNSPortSetting          = "dns.port"
)

// ListenError reports that a port of a server cannot be opened.
type ListenError struct {
	Setting string // that is at fault, as zoo.cfg calls it: of the port, or of its address
	Address string
	Err     error
	Remedy  string // what to do
}

func (e *ListenError) Error() string {
	return e.Problem() + "; " + e.Remedy
}

// Problem is the error without the remedy.
func (e *ListenError) Problem() string {
	return fmt.Sprintf("cannot listen on %s, given by the setting %s: %v", e.Address, e.Setting, e.Err)
}

func (e *ListenError) Unwrap() error { return e.Err }

// origin is where an address to listen on comes from: the settings of its port and its
// host, and what else there is to do about a host that is not this machine's.
type origin struct{ port, host, or string }

var ofDNS = origin{port: DNSPortSetting, host: "dns.address"}

func (o origin) listen(c net.ListenConfig, addr string) (net.Listener, error) {
	l, err := c.Listen(context.Background(), "tcp", addr)
	if err != nil {
		return nil, o.failed(addr, err)
	}
	return l, nil
}

func (o origin) failed(addr string, err error) *ListenError {
	setting, remedy := o.blame(err)
	return &ListenError{Setting: setting, Address: addr, Err: err, Remedy: remedy}
}

// blame finds the setting that is at fault and what to do.
func (o origin) blame(err error) (setting, remedy string) {
	var name *net.DNSError
	switch {
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return o.host, "no interface of this machine has this address: correct " + o.host + o.or
	case errors.As(err, &name):
		return o.host, "the name leads to no address: correct " + o.host + ", or make the name known" + o.or
	case errors.Is(err, syscall.EACCES):
		return o.port, "run with the right to use this port, or change " + o.port
	default:
		return o.port, "stop what uses it or change " + o.port
	}
}

// close closes what is open; the user of a listener may have closed it already.
func (l *listeners) close() {
	for _, x := range []net.Listener{l.client, l.secure, l.peer, l.http, l.dns} {
		if x != nil {
			_ = x.Close()
		}
	}
	if l.dnsUDP != nil {
		_ = l.dnsUDP.Close()
	}
}
