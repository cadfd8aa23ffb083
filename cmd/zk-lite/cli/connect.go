package cli

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/cmd/zk-lite/cli/locate"
)

// withClient runs f with a connection: the shell's, or one that is closed
// afterwards. The context of f ends when no server has been reached for
// --timeout.
func (g *globals) withClient(
	c *cobra.Command, f func(context.Context, *client.Client) error,
) error {
	ctx := c.Context()
	var cl *client.Client
	if g.shell != nil {
		cl = g.shell.client
	} else {
		var err error
		if cl, err = g.connect(ctx); err != nil {
			return err
		}
		defer hangUp(cl)
	}
	return g.chrootError(ctx, cl, "--server", g.server, g.watched(ctx, cl, f))
}

// withSession runs f with a connection that it may keep for long: the loss of
// the connection is the business of f.
func (g *globals) withSession(
	c *cobra.Command, f func(context.Context, *client.Client) error,
) error {
	cl, err := g.connect(c.Context())
	if err != nil {
		return err
	}
	defer hangUp(cl)
	return g.chrootError(c.Context(), cl, "--server", g.server, f(c.Context(), cl))
}

// rememberTime bounds how long a command that has connected asks for the other servers, to know them later.
const rememberTime = time.Second

// connect opens a session. It does not wait for servers where nothing listens. If one server is named, and does not
// serve, those that it has named before are asked.
func (g *globals) connect(ctx context.Context, more ...client.Option) (*client.Client, error) {
	f, err := g.finder()
	if err != nil {
		return nil, err
	}
	addresses, chroot := strings.Split(hostsOf(g.server), ","), strings.TrimPrefix(g.server, hostsOf(g.server))
	if len(addresses) > 1 || strings.HasPrefix(g.server, client.ServicePrefix) {
		return g.connectTo(ctx, "--server", g.server, more...)
	}
	first := *g
	if known := f.Recall(addresses); known != nil && known.ID != "" {
		first.timeout = min(g.timeout, locate.Patience)
	}
	cl, err := first.connectTo(ctx, "--server", g.server, more...)
	switch {
	case err == nil && !f.Fresh(addresses):
		brief, cancel := context.WithTimeout(ctx, rememberTime)
		defer cancel()
		_, _ = f.Find(brief, addresses) // it is for later
	case errors.Is(err, errNoServer):
		patient, cancel := context.WithTimeout(ctx, g.timeout)
		defer cancel()
		if e := f.Others(patient, addresses); e != nil {
			return g.connectTo(ctx, "--server", strings.Join(e.Clients(), ",")+chroot, more...)
		}
	}
	return cl, err
}

// Reach reports whether a session can be opened on the servers that flag names, with the
// error of the commands that need one.
func Reach(ctx context.Context, flag, servers string) error {
	cl, err := (&globals{timeout: defaultTimeout}).connectTo(ctx, flag, servers)
	if err == nil {
		hangUp(cl)
	}
	return err
}

// connectTo opens a session on the servers that flag names.
func (g *globals) connectTo(
	ctx context.Context, flag, server string, more ...client.Option,
) (*client.Client, error) {
	opts, err := g.options()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	late := time.AfterFunc(g.timeout, func() {
		cancel(&noServerError{fmt.Sprintf("no server of %s has opened a session within %v; "+
			"see `zk-lite status --server %s`", server, g.timeout, server)})
	})
	defer late.Stop()
	d := &dialer{tried: map[string]bool{}, giveUp: func(cause error) {
		cancel(&noServerError{fmt.Sprintf("no server at %s (%v); start one with `zk-lite dev`, "+
			"or name another with %s", hostsOf(server), rootCause(cause), flag)})
	}}
	opts = append(opts, client.WithDialer(d.dial), client.WithResolver(d.lookup), client.WithServiceResolver(d.service),
		client.WithLogger(nil)) // the error says it
	cl, err := client.Connect(ctx, server, append(opts, more...)...)
	if err == nil {
		d.settle()
		return cl, nil
	}
	var none *noServerError
	switch {
	case errors.Is(err, client.ErrPortSpeaksTLS):
		return nil, &noServerError{fmt.Sprintf("%s speaks TLS: give --tls-ca, and --tls-cert if it asks for one",
			server)}
	case errors.Is(err, client.ErrPortSpeaksPlain):
		return nil, &noServerError{fmt.Sprintf("%s does not speak TLS: take the port with TLS, or leave out --tls",
			server)}
	case errors.Is(err, client.ErrPortSpeaksHTTP):
		return nil, &noServerError{fmt.Sprintf("%s speaks HTTP: %s takes the port for ZooKeeper's clients, "+
			"2181 by default", server, flag)}
	case unfitCertificate(err) != "":
		return nil, &noServerError{fmt.Sprintf("%s: %s", server, unfitCertificate(err))}
	case errors.As(context.Cause(ctx), &none):
		return nil, none
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.Is(err, client.ErrAuthFailed):
		return nil, fmt.Errorf("%s refuses the identity given with --auth: %w", server, client.ErrAuthFailed)
	}
	return nil, Usage(fmt.Errorf("%s: %w", flag, err))
}

func (g *globals) options() ([]client.Option, error) {
	var opts []client.Option
	for _, s := range g.auth {
		scheme, data, err := g.credentials(s)
		if err != nil {
			return nil, err
		}
		opts = append(opts, client.WithAuth(scheme, []byte(data)))
	}
	if g.tls.Wanted() {
		opts = append(opts, client.WithTLSFiles(g.tls.Files))
	}
	if g.sessionTimeout != 0 {
		if g.sessionTimeout < time.Millisecond {
			return nil, usagef("--session-timeout %v: want a millisecond or more", g.sessionTimeout)
		}
		opts = append(opts, client.WithSessionTimeout(g.sessionTimeout))
	}
	return opts, nil
}

// unfitCertificate explains why a TLS handshake fails; it is empty for another error.
func unfitCertificate(err error) string {
	var unfit *tls.CertificateVerificationError
	var alert *net.OpError
	switch {
	case errors.As(err, &unfit):
		return fmt.Sprintf("the server's certificate is refused: %v; --tls-ca names the authorities, "+
			"--tls-server-name the server", unfit.Err)
	case errors.As(err, &alert) && alert.Op == "remote error": // package tls's name for an alert
		return fmt.Sprintf("the server refuses the TLS handshake: %v; does it ask for a certificate (--tls-cert)?",
			alert.Err)
	}
	return ""
}

func hostsOf(server string) string {
	service, isService := strings.CutPrefix(server, client.ServicePrefix)
	hosts, _, _ := strings.Cut(service, "/")
	if isService {
		return "the servers of " + hosts
	}
	return hosts
}

// rootCause is the error of the system call or the resolver, without what wraps it.
func rootCause(err error) error {
	var dns *net.DNSError
	if errors.As(err, &dns) {
		return fmt.Errorf("%s: %s", dns.Name, dns.Err)
	}
	var call *os.SyscallError
	if errors.As(err, &call) {
		return call.Err
	}
	return err
}

// noChrootError reports that a znode is missing because its chroot is missing.
type noChrootError struct{ flag, hosts, chroot string }

func (e *noChrootError) Error() string {
	return fmt.Sprintf("the chroot %s of %s does not exist; make it with `zk-lite create --parents --server %s %s`",
		e.chroot, e.flag, e.hosts, e.chroot)
}

func (e *noChrootError) Unwrap() error { return client.ErrNoNode }

// chrootError looks, when a znode is said to be missing on the servers that flag names,
// whether it is the chroot: its path is not in the errors, which are about what is below.
func (g *globals) chrootError(
	ctx context.Context, cl *client.Client, flag, server string, err error,
) error {
	hosts, chroot, _ := strings.Cut(server, "/")
	if chroot == "" || !errors.Is(err, client.ErrNoNode) {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, g.timeout)
	defer cancel()
	if there, _, lookErr := cl.Exists(ctx, "/"); there || lookErr != nil {
		return err
	}
	return &noChrootError{flag, hosts, "/" + chroot}
}

// hangUp closes a client when all that mattered has been done. If no server can be
// asked, the session expires by itself.
func hangUp(cl *client.Client) { _ = cl.Close() }

// watched runs f with a context that ends when the client has had no connection
// for the timeout.
func (g *globals) watched(
	ctx context.Context, cl *client.Client, f func(context.Context, *client.Client) error,
) error {
	ctx, cancel := context.WithCancelCause(ctx)
	states := cl.States()
	var wg sync.WaitGroup
	wg.Go(func() { g.giveUp(states, cancel) })
	err := f(ctx, cl)
	states.Cancel()
	wg.Wait()
	cancel(nil)
	return err
}

// giveUp cancels when the connection has been gone for the timeout. It returns
// when states is cancelled.
func (g *globals) giveUp(states *client.StateWatch, cancel context.CancelCauseFunc) {
	var timer *time.Timer
	for s := range states.C() {
		switch {
		case s.State.Connected() && timer != nil:
			timer.Stop()
			timer = nil
		case !s.State.Connected() && timer == nil:
			timer = time.AfterFunc(g.timeout, func() {
				cancel(&noServerError{fmt.Sprintf("the connection was lost and none of %s "+
					"has been reached for %v; see `zk-lite status`", g.server, g.timeout)})
			})
		}
	}
	if timer != nil {
		timer.Stop()
	}
}

// dialer opens the connections of a client. Until the first is open it records the
// failures: when an address is tried for the second time, all have been tried, and if all
// have refused it gives up.
type dialer struct {
	giveUp func(error)

	mu      sync.Mutex // protects the fields below
	tried   map[string]bool
	settled bool // something has worked, or may yet
}

func (d *dialer) dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, network, address)
	d.end(address, err)
	return conn, err
}

func (d *dialer) lookup(ctx context.Context, host string) ([]string, error) {
	addresses, err := net.DefaultResolver.LookupHost(ctx, host)
	if err != nil {
		d.end(host, err)
	}
	return addresses, err
}

func (d *dialer) service(ctx context.Context, name string) ([]*net.SRV, error) {
	_, records, err := net.DefaultResolver.LookupSRV(ctx, "", "", name)
	if err != nil {
		d.end(name, err)
	}
	return records, err
}

func (d *dialer) end(what string, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err == nil || isSlow(err) {
		d.settled = true
	}
	if d.settled {
		return
	}
	if d.tried[what] {
		d.settled = true
		d.giveUp(err)
	}
	d.tried[what] = true
}

// settle ends the recording.
func (d *dialer) settle() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.settled = true
}

// isSlow reports whether an attempt ended without an answer, as it does if a
// server is starting on a busy machine or a packet was lost.
func isSlow(err error) bool {
	var t interface{ Timeout() bool }
	return errors.Is(err, context.Canceled) || errors.As(err, &t) && t.Timeout()
}
