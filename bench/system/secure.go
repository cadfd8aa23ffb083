package system

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/zk-lite/zk-lite/bench/load"
)

// Secure is this zk-lite with certificates of an authority in a new directory below dir: servers speak TLS to each
// other and, if clients is true, clients to them, who show certificates as well. The port for clients still takes
// those without TLS, who ask whether servers are ready.
func (z *ZKLite) Secure(name, dir string, clients bool) (*ZKLite, error) {
	dir, err := os.MkdirTemp(dir, "tls-")
	if err != nil {
		return nil, fmt.Errorf("making certificates: %w", err)
	}
	for _, args := range [][]string{{"init"}, {"issue", "server", "--host", "127.0.0.1"}, {"issue", "client"}} {
		c := exec.Command(z.binary, append([]string{"tls", "--dir", filepath.Join(dir, "ca")}, args...)...)
		if out, err := c.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("making certificates: %w\n%s", err, out)
		}
	}
	file := func(name string) string { return filepath.Join(dir, "ca", name) }
	stores := func(prefix string) []string {
		return []string{
			prefix + "keyStore.location=" + file("server.pem"), prefix + "trustStore.location=" + file("ca.pem"),
		}
	}
	s := *z
	s.name, s.lines = name, append(stores("ssl.quorum."), "sslQuorum=true")
	if !clients {
		return &s, nil
	}
	s.lines = append(append(s.lines, stores("ssl.")...), "client.portUnification=true")
	roots, err := os.ReadFile(file("ca.pem"))
	pair, pairErr := tls.LoadX509KeyPair(file("client.pem"), file("client.pem"))
	if err := errors.Join(err, pairErr); err != nil {
		return nil, fmt.Errorf("reading certificates: %w", err)
	}
	s.TLS = &tls.Config{RootCAs: x509.NewCertPool(), Certificates: []tls.Certificate{pair}}
	s.TLS.RootCAs.AppendCertsFromPEM(roots)
	return &s, nil
}

// Run implements System.
func (z *ZKLite) Run(ctx context.Context, k Kind, cfg load.Config, after time.Duration) (*load.Result, error) {
	cfg.TLS = z.TLS
	return z.speaksZooKeeper.Run(ctx, k, cfg, after)
}
