package client

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"

	"github.com/zk-lite/zk-lite/internal/tlsfiles"
	"github.com/zk-lite/zk-lite/internal/wire"
)

// The errors of a client on the other kind of port. They are in the error of Connect, and logged.
var (
	// ErrPortSpeaksTLS reports that a client without TLS has come to a port with it.
	ErrPortSpeaksTLS = errors.New("this port speaks TLS, and the client does not: give it TLS, or take another port")
	// ErrPortSpeaksPlain reports that a client with TLS has come to a port without it.
	ErrPortSpeaksPlain = errors.New("this port does not speak TLS, and the client does: take the port with TLS")
)

// TLSFiles are what a client needs for TLS. Empty names are left out. Files are PEM, PKCS #12 or JKS.
type TLSFiles struct {
	CA           string // authorities that servers' certificates must lead to; empty: the system's
	Certificate  string // the client's private key and certificate
	PasswordFile string // has the password of both in its first line
	ServerName   string // what servers' certificates must name; empty: the host of the connect string
}

// WithTLSFiles makes the client speak TLS with these files. It looks for new ones whenever it connects; what cannot
// be used changes nothing.
func WithTLSFiles(f TLSFiles) Option { return func(c *config) { c.files = &f } }

// Config returns the configuration for clients of other protocols, such as net/http's.
func (f TLSFiles) Config() (*tls.Config, error) {
	files, err := f.open()
	if err != nil {
		return nil, err
	}
	return files.Client(f.ServerName), nil
}

func (f TLSFiles) open() (*tlsfiles.Files, error) {
	c := tlsfiles.Config{
		Prefix: "tls.", Key: tlsfiles.Store{Location: f.Certificate}, Trust: tlsfiles.Store{Location: f.CA},
	}
	for _, s := range []*tlsfiles.Store{&c.Key, &c.Trust} {
		if s.Location != "" {
			s.PasswordFile = f.PasswordFile
		}
	}
	return tlsfiles.Open(c)
}

// startTLS shakes hands on a new connection, if the client speaks TLS.
func (c *Client) startTLS(ctx context.Context, conn net.Conn, host string) (net.Conn, error) {
	cfg := c.cfg.tls
	switch {
	case c.cfg.opened != nil:
		if c.cfg.files.ServerName != "" {
			host = c.cfg.files.ServerName
		}
		if changed, err := c.cfg.opened.Reload(); changed && err != nil {
			c.cfg.logger.Warn("the new TLS files cannot be used; the old ones stay in use", "error", err)
		}
		cfg = c.cfg.opened.Client(host)
	case cfg == nil:
		return conn, nil
	default:
		cfg = cfg.Clone()
		if cfg.ServerName == "" && !cfg.InsecureSkipVerify {
			cfg.ServerName = host
		}
	}
	cfg.NextProtos = append(slices.Clip(cfg.NextProtos), tlsfiles.Batches)
	secure := tls.Client(conn, cfg)
	if err := secure.HandshakeContext(ctx); err != nil {
		var plain tls.RecordHeaderError
		if errors.As(err, &plain) {
			err = fmt.Errorf("%w (%w)", ErrPortSpeaksPlain, err)
		}
		return nil, errors.Join(err, conn.Close())
	}
	return secure, nil
}

// wrongPort explains a first reply that is TLS's alert: to a client that begins without TLS, servers can say nothing
// else.
func (c *Client) wrongPort(l *link, err error) error {
	var length *wire.FrameLengthError
	if _, secure := l.conn.(*tls.Conn); secure || !errors.As(err, &length) {
		return err
	}
	if length.Header[0] == 0x15 && length.Header[1] == 3 {
		return fmt.Errorf("%w (%w)", ErrPortSpeaksTLS, err)
	}
	return err
}
