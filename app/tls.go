package app

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"time"

	"github.com/zk-lite/zk-lite/api/admin"
	"github.com/zk-lite/zk-lite/app/config"
	"github.com/zk-lite/zk-lite/internal/repeats"
	"github.com/zk-lite/zk-lite/internal/tlsfiles"
	"github.com/zk-lite/zk-lite/internal/tlsport"
)

// expirySoon is from when on a start warns of a certificate.
const expirySoon = 14 * 24 * time.Hour

// ports puts TLS on the listeners for clients. Its methods are usable on nil, which has no TLS. With
// client.certReload one goroutine follows the files, until close.
type ports struct {
	files      *tlsfiles.Files
	handshakes *tlsport.Handshakes
	logger     *slog.Logger
	failures   repeats.Filter // of handshakes on the HTTP port; the ZooKeeper port logs its own
	stop       context.CancelFunc
}

// ClientTLS reads the files of the ports for clients; nil if none is to speak TLS.
func ClientTLS(c *config.Settings) (*tlsfiles.Files, error) {
	if !c.Wanted() {
		return nil, nil
	}
	return tlsfiles.Open(c.TLS.Config)
}

// newPorts returns nil if no port is to speak TLS.
func newPorts(c *config.Settings, logger *slog.Logger) (*ports, error) {
	files, err := ClientTLS(c)
	if files == nil || err != nil {
		return nil, err
	}
	p := &ports{files: files, logger: logger, stop: func() {},
		handshakes: tlsport.NewHandshakes(c.TLS.Handshakes, c.ZooKeeper.HandshakeTimeout)}
	warnOfExpiry(files, logger, "for clients")
	return p, nil
}

// watch follows the files.
func (p *ports) watch(c *config.Settings) {
	if p == nil || !c.TLS.Reload {
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	p.stop = stop
	go p.files.Watch(ctx, p.logger)
}

func (p *ports) close() {
	if p != nil {
		p.stop()
	}
}

// client is the listener of clientPort.
func (p *ports) client(c *config.Settings, l net.Listener) net.Listener {
	if !c.PortUnification {
		return l
	}
	return tlsport.New(l, tlsport.Options{
		Config: p.files.Server(clientAuth(c)), PlainToo: true, Handshakes: p.handshakes,
	})
}

// secure is the listener of secureClientPort.
func (p *ports) secure(c *config.Settings, l net.Listener) net.Listener {
	return tlsport.New(l, tlsport.Options{Config: p.files.Server(clientAuth(c)), Handshakes: p.handshakes})
}

// http is the listener of admin.serverPort. A client may show a certificate even where it need not: it is an identity.
func (p *ports) http(c *config.Settings, l net.Listener) net.Listener {
	if !c.AdminTLS() {
		return l
	}
	ask := tls.NoClientCert
	switch {
	case c.AdminNeedClientAuth:
		ask = tls.RequireAndVerifyClientCert
	case c.TLS.Trust.Location != "":
		ask = tls.VerifyClientCertIfGiven
	}
	return tlsport.New(l, tlsport.Options{
		Config: p.files.Server(ask), PlainToo: c.AdminPortUnification && !c.AdminForceHTTPS, Handshakes: p.handshakes,
		Failed: p.failed,
	})
}

// failed logs an HTTP client without a handshake, now and then.
func (p *ports) failed(from net.Addr, err error) {
	if pass, leftOut := p.failures.Pass(err.Error()); pass {
		p.logger.Info("HTTP client refused", "remote", from, "error", err, "left_out", leftOut)
	}
}

func clientAuth(c *config.Settings) tls.ClientAuthType {
	switch c.TLS.ClientAuth {
	case config.ClientAuthNone:
		return tls.NoClientCert
	case config.ClientAuthWant:
		return tls.VerifyClientCertIfGiven
	}
	return tls.RequireAndVerifyClientCert
}

// certificate is what health checks report.
func (p *ports) certificate() admin.Certificate {
	if p == nil {
		return nil
	}
	return p.files
}

func (p *ports) metrics(emit func(name string, value any)) {
	if p == nil {
		return
	}
	fileMetrics(emit, "tls_", p.files)
	done, failed, refused := p.handshakes.Counts()
	emit("tls_handshakes_total", done)
	emit("tls_handshake_failures_total", failed)
	emit("tls_handshakes_refused_total", refused)
}

// fileMetrics are those of the files of the client ports or of the peer port.
func fileMetrics(emit func(name string, value any), prefix string, files *tlsfiles.Files) {
	emit(prefix+"certificate_expiry_seconds", time.Until(files.Expires()).Seconds())
	good, bad := files.Reloads()
	emit(prefix+"reloads_total", good)
	emit(prefix+"reload_failures_total", bad)
}
