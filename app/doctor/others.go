package doctor

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"syscall"

	"github.com/zk-lite/zk-lite/app"
	"github.com/zk-lite/zk-lite/app/config"
	"github.com/zk-lite/zk-lite/internal/tlsfiles"
)

// others looks at the names and peer ports of the ensemble.
func (d *doctor) others() {
	s := &d.Settings
	if len(s.Servers) < 2 {
		return
	}
	addresses := make([][]string, len(s.Servers)) // nil: none
	atOnce(len(s.Servers), func(i int) {
		ctx, cancel := context.WithTimeout(d.ctx, d.Limits.Answer)
		defer cancel()
		addresses[i], _ = net.DefaultResolver.LookupHost(ctx, s.Servers[i].Host)
	})
	for i, srv := range s.Servers {
		if addresses[i] == nil {
			d.fail("names", fmt.Sprintf("server.%d: the name %s leads to no address", srv.ID, srv.Host),
				"correct the name, or make it known (DNS, /etc/hosts) on every server")
			continue
		}
		d.distinct(i, addresses)
	}
	d.ownName(addresses)
	d.peerPorts()
}

// distinct compares a server with those before it.
func (d *doctor) distinct(i int, addresses [][]string) {
	a := d.Settings.Servers[i]
	for j, b := range d.Settings.Servers[:i] {
		if !slices.ContainsFunc(addresses[i], func(x string) bool { return slices.Contains(addresses[j], x) }) {
			continue
		}
		if a.PeerPort == b.PeerPort && a.Host != b.Host {
			d.fail("names", fmt.Sprintf("server.%d and server.%d: %s and %s lead to the same address %s", b.ID, a.ID,
				b.Host, a.Host, addresses[i][0]), "correct the names, so that each leads to its own machine")
			continue
		}
		d.warn("names", fmt.Sprintf("server.%d and server.%d are on the same machine %s, and fail together",
			b.ID, a.ID, a.Host), "give every server a machine of its own")
	}
}

// ownName finds the entry of /etc/hosts that some installations make: the machine's own name leads to 127.0.1.1.
func (d *doctor) ownName(addresses [][]string) {
	s := &d.Settings
	for i, srv := range s.Servers {
		if srv.ID == s.MyID && !loopback(srv.Host) && slices.ContainsFunc(addresses[i], loopback) && d.distant() {
			d.fail("names", fmt.Sprintf("server.%d: on this machine its own name %s leads to %s, where the others "+
				"cannot reach it", srv.ID, srv.Host, addresses[i][0]),
				"correct /etc/hosts, or set quorumListenOnAllIPs=true")
		}
	}
}

// peerPorts asks each of the others for a connection.
func (d *doctor) peerPorts() {
	s := &d.Settings
	files, err := app.PeerTLS(s)
	if err != nil || !s.PeerTLS.Wanted {
		files = nil // start has found why
	}
	errs := make([]error, len(s.Servers))
	atOnce(len(s.Servers), func(i int) {
		if srv := s.Servers[i]; srv.ID != s.MyID {
			errs[i] = d.connect(srv, files)
		}
	})
	for i, srv := range s.Servers {
		where := fmt.Sprintf("server.%d does not answer at %s: ", srv.ID, srv.PeerAddress())
		var name *net.DNSError
		var handshake *handshakeError
		switch err := errs[i]; {
		case err == nil || errors.As(err, &name): // names has been found
		case errors.As(err, &handshake):
			d.fail("peers", where+err.Error(),
				"compare ssl.quorum.* and sslQuorum of both servers; the log of the other one says more")
		case errors.Is(err, syscall.ECONNREFUSED):
			d.warn("peers", where+"no one listens there",
				"start it; if it runs, correct the address in server.N, or set quorumListenOnAllIPs=true there")
		default:
			d.warn("peers", where+err.Error(), "let firewalls pass its peer port, both ways; or start its machine")
		}
	}
}

// handshakeError is a connection that no TLS could be spoken on.
type handshakeError struct{ error }

func (d *doctor) connect(srv config.Server, files *tlsfiles.Files) error {
	ctx, cancel := context.WithTimeout(d.ctx, d.Limits.Answer)
	defer cancel()
	c, err := new(net.Dialer).DialContext(ctx, "tcp", srv.PeerAddress())
	if err != nil {
		return err
	}
	defer c.Close()
	if files == nil {
		return nil
	}
	if err := tls.Client(c, files.Client(srv.Host)).HandshakeContext(ctx); err != nil {
		return &handshakeError{fmt.Errorf("TLS: %w", err)}
	}
	return nil
}

// atOnce calls f for each number below n, and returns when all calls have.
func atOnce(n int, f func(i int)) {
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { f(i) })
	}
	wg.Wait()
}
