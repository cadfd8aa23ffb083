package app

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/zk-lite/zk-lite/api/admin"
	"github.com/zk-lite/zk-lite/app/config"
	"github.com/zk-lite/zk-lite/consensus/peerkeys"
	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/internal/tlsfiles"
	"github.com/zk-lite/zk-lite/internal/tlsport"
)

// peerHandshake bounds a handshake between servers.
const peerHandshake = 5 * time.Second

// peerTLS puts TLS on the connections between servers. Its methods are usable on nil, which has none. With
// sslQuorumReloadCertFiles one goroutine follows the files, until close.
type peerTLS struct {
	cfg   *config.PeerTLS
	files *tlsfiles.Files
	stop  context.CancelFunc
}

// PeerTLS reads the files of the peer port; nil if servers do not speak TLS.
func PeerTLS(c *config.Settings) (*tlsfiles.Files, error) {
	if !c.PeerTLS.Files() {
		return nil, nil
	}
	return tlsfiles.Open(c.PeerTLS.Config)
}

// newPeerTLS returns nil if servers do not speak TLS.
func newPeerTLS(c *config.Settings, logger *slog.Logger) (*peerTLS, error) {
	files, err := PeerTLS(c)
	if files == nil || err != nil {
		return nil, err
	}
	warnOfExpiry(files, logger, "for the peer port")
	return &peerTLS{cfg: &c.PeerTLS, files: files, stop: func() {}}, nil
}

// peerKeys opens this server's own keys for the peer port. It returns nil if there is no such port, or certificates
// come from files.
func peerKeys(c *config.Settings, logger *slog.Logger) (*peerkeys.Keys, error) {
	if c.PeerTLS.Files() || alone(c) {
		return nil, nil
	}
	cfg := c.PeerTLS.Keys
	switch {
	case cfg.Off:
		logger.Warn("peer.tls=false: nothing between servers is authenticated or encrypted; anyone who reaches the " +
			"peer port is a member of the ensemble")
	case cfg.PlainToo:
		logger.Warn("portUnification=true: other servers may come without TLS, and so may anyone who reaches the " +
			"peer port; take it out when all servers have peer.tls=true")
	}
	cfg.Dir, cfg.Logger = c.DataDir, logger
	return peerkeys.Open(cfg)
}

// watch follows the files.
func (p *peerTLS) watch(logger *slog.Logger) {
	if p == nil || !p.cfg.Reload {
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	p.stop = stop
	go p.files.Watch(ctx, logger)
}

// certificate is what health checks report.
func (p *peerTLS) certificate() admin.Certificate {
	if p == nil {
		return nil
	}
	return p.files
}

func (p *peerTLS) metrics(emit func(name string, value any)) {
	if p != nil {
		fileMetrics(emit, "tls_peer_", p.files)
	}
}

func (p *peerTLS) close() {
	if p != nil {
		p.stop()
	}
}

// listener is the listener of the peer port.
func (p *peerTLS) listener(l net.Listener) net.Listener {
	if p == nil || l == nil {
		return l
	}
	return tlsport.New(l, tlsport.Options{
		Config: p.files.Server(tls.RequireAndVerifyClientCert), PlainToo: p.cfg.Keys.PlainToo,
		Handshakes: tlsport.NewHandshakes(0, peerHandshake), // mux bounds how many are unfinished
	})
}

// dial speaks TLS on the connections that dial makes.
func (p *peerTLS) dial(
	dial func(context.Context, string) (net.Conn, error),
) func(context.Context, string) (net.Conn, error) {
	if p == nil || !p.cfg.Wanted {
		return dial
	}
	return func(ctx context.Context, addr string) (net.Conn, error) {
		raw, err := dial(ctx, addr)
		if err != nil {
			return nil, err
		}
		host, _, err := net.SplitHostPort(addr)
		if err != nil {
			_ = raw.Close()
			return nil, err
		}
		c := tls.Client(raw, p.files.Client(host))
		if err := c.HandshakeContext(ctx); err != nil {
			_ = raw.Close()
			return nil, fmt.Errorf("TLS with %s: %w", addr, err)
		}
		return c, nil
	}
}

// serverURI is how a certificate names the number of its server, in a URI of its subject's alternative names.
const serverURI = "urn:zk-lite:server:"

// verify refuses a connection that says it comes from a server at a host, and has another one's certificate.
func (p *peerTLS) verify() func(c net.Conn, id state.ServerID, host string) error {
	if p == nil {
		return nil
	}
	return func(c net.Conn, id state.ServerID, host string) error {
		s, secure := tlsport.State(c)
		switch {
		case !secure && p.cfg.Keys.PlainToo:
			return nil
		case !secure:
			return errors.New("it came without TLS")
		}
		cert := s.PeerCertificates[0]
		if err := checkNumber(cert, id); err != nil || p.cfg.AnyHost || host == "" {
			return err
		}
		return cert.VerifyHostname(host)
	}
}

// checkNumber refuses a certificate that names the numbers of servers, and not this one.
func checkNumber(cert *x509.Certificate, id state.ServerID) error {
	want, named := serverURI+strconv.FormatUint(uint64(id), 10), ""
	for _, uri := range cert.URIs {
		switch text := uri.String(); {
		case text == want:
			return nil
		case strings.HasPrefix(text, serverURI):
			named = text
		}
	}
	if named != "" {
		return fmt.Errorf("its certificate is for %s, not for server %d", named, id)
	}
	return nil
}

// warnOfExpiry logs that a certificate is not good for long.
func warnOfExpiry(files *tlsfiles.Files, logger *slog.Logger, use string) {
	switch left := time.Until(files.Expires()); {
	case left < 0:
		logger.Error("the TLS certificate "+use+" has expired: it will be refused", "expired", files.Expires())
	case left < expirySoon:
		logger.Warn("the TLS certificate "+use+" expires soon", "expires", files.Expires())
	}
}
