// Package tlsfiles makes TLS configurations of the files that ZooKeeper's ssl.* keys name: a key store,
// with a private key and its certificates, and a trust store, with the certificates of the authorities
// that others' certificates must lead to. It reads PEM, PKCS #12 and JKS, and follows the files: when they
// change, what Server and Client return changes with them. Files that cannot be used change nothing.
//
// One Files is for one use, with its own settings: one for clients (ssl.*), another for the peer port
// (ssl.quorum.*), each as a server and as a client.
//
// It opens no connection (internal/tlsport does), and grants no rights. Watch is its only
// loop, on its caller's goroutine.
package tlsfiles

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zk-lite/zk-lite/internal/follow"
)

// PollEvery is how often Watch checks the files.
const PollEvery = 2 * time.Second

// Config names the files, and the requirements for the other side.
type Config struct {
	// Prefix is that of the settings in errors: "ssl." or "ssl.quorum.".
	Prefix string
	// Key may have no Location for a client that shows no certificate. Trust may have none for a server that
	// asks for none, and for a client: the system's authorities are meant then.
	Key, Trust Store
	// CRLs is a file with lists of revoked certificates in PEM, besides those in Trust. With CheckCRL each
	// authority in a chain must have a list that is in force.
	CRLs     string
	CheckCRL bool
	// Versions and Suites bound the protocol; Suites are those of TLS 1.2 (nil: Go's).
	MinVersion, MaxVersion uint16
	Suites                 []uint16
	// AnyHost has a client take a certificate for any name.
	AnyHost bool
	// CheckClientHost has a server take only certificates that name the client's address.
	CheckClientHost bool
}

// Files follows the files of one Config. Its methods are safe for concurrent use.
type Files struct {
	cfg      Config
	current  atomic.Pointer[loaded]
	failures atomic.Int64
	reloads  atomic.Int64

	mu      sync.Mutex     // protects the fields below
	stamps  []follow.Stamp // of the files when they were last looked at
	lastErr error          // of the last reload; nil: it went well
}

// loaded is the content of the files at one time.
type loaded struct {
	pair  *tls.Certificate // nil: none
	roots *x509.CertPool   // nil: the system's
	crls  []*x509.RevocationList
}

// Open reads the files. An error names the setting and the file.
func Open(cfg Config) (*Files, error) {
	f := &Files{cfg: cfg}
	f.stamps = f.look()
	l, err := f.load()
	if err != nil {
		return nil, err
	}
	f.current.Store(l)
	return f, nil
}

func (f *Files) setting(name string, err error) error {
	return fmt.Errorf("%s%s: %w", f.cfg.Prefix, name, err)
}

func (f *Files) load() (*loaded, error) {
	l := &loaded{}
	if f.cfg.Key.Location != "" {
		pair, err := f.cfg.Key.readKey()
		if err != nil {
			return nil, f.setting("keyStore.location", err)
		}
		l.pair = &pair
	}
	if f.cfg.Trust.Location != "" {
		trusted, crls, err := f.cfg.Trust.readTrusted()
		if err != nil {
			return nil, f.setting("trustStore.location", err)
		}
		l.roots, l.crls = x509.NewCertPool(), crls
		for _, cert := range trusted {
			l.roots.AddCert(cert)
		}
	}
	if f.cfg.CRLs != "" {
		more, err := (&Store{Location: f.cfg.CRLs, Type: PEM}).read()
		if err != nil {
			return nil, f.setting("crl.location", err)
		}
		l.crls = append(l.crls, more.crls...)
	}
	if f.cfg.CheckCRL && len(l.crls) == 0 {
		return nil, f.setting("crl", errors.New("neither crl.location nor the trust store has a list of revoked "+
			"certificates (PEM, X509 CRL); lists are not fetched from where certificates say"))
	}
	return l, nil
}

// Batches is the name, as an application protocol (ALPN, RFC 7301), with which a client declares that it reads
// several replies from one TLS record. Others get a record for each (tlsport.Conn.WriteFrames), as ZooKeeper sends
// them.
const Batches = "zk-lite-batches"

// Server returns the configuration of a server with this policy for client certificates. Each
// handshake uses the present content of the files. There are no tickets: one would admit a client
// whose authority is no longer trusted.
func (f *Files) Server(ask tls.ClientAuthType) *tls.Config {
	return &tls.Config{
		MinVersion: f.minVersion(), SessionTicketsDisabled: true,
		GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
			c := f.config()
			c.ClientAuth, c.ClientCAs, c.SessionTicketsDisabled = ask, c.RootCAs, true
			if slices.Contains(hello.SupportedProtos, Batches) { // else any protocol may be asked for
				c.NextProtos = []string{Batches}
			}
			if f.cfg.CheckClientHost {
				c.VerifyConnection = func(s tls.ConnectionState) error {
					return errors.Join(f.checkRevoked(&s), checkClientHost(&s, hello.Conn.RemoteAddr()))
				}
			}
			return c, nil
		},
	}
}

func (f *Files) minVersion() uint16 { return max(f.cfg.MinVersion, tls.VersionTLS12) }

// config is the common part of both sides.
func (f *Files) config() *tls.Config {
	l := f.current.Load()
	c := &tls.Config{
		MinVersion: f.minVersion(), MaxVersion: f.cfg.MaxVersion, CipherSuites: f.cfg.Suites, RootCAs: l.roots,
		VerifyConnection: func(s tls.ConnectionState) error { return f.checkRevoked(&s) },
	}
	if l.pair != nil {
		c.Certificates = []tls.Certificate{*l.pair}
	}
	return c
}

// Client returns the configuration for one connection to a server that is known by this name or address.
func (f *Files) Client(host string) *tls.Config {
	c := f.config()
	c.ServerName = host
	if f.cfg.AnyHost {
		c.InsecureSkipVerify = true // of the name; the chain is checked here
		c.VerifyConnection = func(s tls.ConnectionState) (err error) {
			if s.VerifiedChains, err = verifyChain(&s, c.RootCAs, x509.ExtKeyUsageServerAuth); err != nil {
				return err
			}
			return f.checkRevoked(&s)
		}
	}
	return c
}

// Watch follows the files until ctx ends, and logs changes.
func (f *Files) Watch(ctx context.Context, logger *slog.Logger) {
	tick := time.NewTicker(PollEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		changed, err := f.Reload()
		switch {
		case err != nil && changed:
			logger.Error("the new TLS files cannot be used; the old ones stay in use", "error", err)
		case changed:
			logger.Info("the TLS files have changed and are in use", "settings", f.cfg.Prefix+"*",
				"expires", f.Expires())
		}
	}
}

// Reload reads the files again if they have changed since the last check, or if they could not be used then: the
// cause may have ended without a change of the files. With an error, the former content stays in use; changed is
// then true if the files or the error are new.
func (f *Files) Reload() (changed bool, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.look()
	same := true
	for i := range now {
		same = same && now[i].Equal(f.stamps[i])
	}
	if same && f.lastErr == nil {
		return false, nil
	}
	f.stamps = now
	l, err := f.load()
	if err == nil && l.pair != nil && time.Now().After(l.pair.Leaf.NotAfter) {
		err = f.setting("keyStore.location", fmt.Errorf("%s: the certificate expired at %s", f.cfg.Key.Location,
			l.pair.Leaf.NotAfter.UTC().Format(time.RFC3339)))
	}
	before := f.lastErr
	if f.lastErr = err; err != nil {
		if same && before.Error() == err.Error() {
			return false, err
		}
		f.failures.Add(1)
		return true, err
	}
	f.current.Store(l)
	f.reloads.Add(1)
	return true, nil
}

func (f *Files) look() (all []follow.Stamp) {
	for _, path := range []string{
		f.cfg.Key.Location, f.cfg.Key.PasswordFile, f.cfg.Trust.Location, f.cfg.Trust.PasswordFile, f.cfg.CRLs,
	} {
		if path != "" {
			all = append(all, follow.StampOf(path))
		}
	}
	return all
}

// Expires is when the certificate in use does, the first of its chain; zero: there is none.
func (f *Files) Expires() (at time.Time) {
	pair := f.current.Load().pair
	if pair == nil {
		return at
	}
	for _, der := range pair.Certificate {
		if cert, err := x509.ParseCertificate(der); err == nil && (at.IsZero() || cert.NotAfter.Before(at)) {
			at = cert.NotAfter
		}
	}
	return at
}

// Leaf is the certificate in use, without those of its authorities; nil: there is none.
func (f *Files) Leaf() *x509.Certificate {
	if pair := f.current.Load().pair; pair != nil {
		return pair.Leaf
	}
	return nil
}

// Reloads counts the changes of the files that are in use, and those that could not be used.
func (f *Files) Reloads() (good, bad int64) { return f.reloads.Load(), f.failures.Load() }

// Err is why the newest files are not in use; nil: they are.
func (f *Files) Err() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.lastErr
}

// verifyChain does the same as package tls, without the name of the other side.
func verifyChain(s *tls.ConnectionState, roots *x509.CertPool, usage x509.ExtKeyUsage) ([][]*x509.Certificate, error) {
	o := x509.VerifyOptions{Roots: roots, Intermediates: x509.NewCertPool(), KeyUsages: []x509.ExtKeyUsage{usage}}
	for _, cert := range s.PeerCertificates[1:] {
		o.Intermediates.AddCert(cert)
	}
	return s.PeerCertificates[0].Verify(o)
}

// VerifyOwn returns why a peer with the same files would refuse the certificate, as that of a server at a host or as
// that of a client. There must be a trust store.
func (f *Files) VerifyOwn(host string) error {
	l := f.current.Load()
	state := tls.ConnectionState{}
	for _, der := range l.pair.Certificate {
		cert, err := x509.ParseCertificate(der)
		if err != nil {
			return err
		}
		state.PeerCertificates = append(state.PeerCertificates, cert)
	}
	for _, usage := range []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth} {
		var err error
		if state.VerifiedChains, err = verifyChain(&state, l.roots, usage); err != nil {
			return err
		}
		if err := f.checkRevoked(&state); err != nil {
			return err
		}
	}
	if f.cfg.AnyHost {
		return nil
	}
	return state.PeerCertificates[0].VerifyHostname(host)
}

// checkRevoked refuses a certificate if every chain of it has a revoked one, or an authority without a
// list in force.
func (f *Files) checkRevoked(s *tls.ConnectionState) error {
	if !f.cfg.CheckCRL || len(s.PeerCertificates) == 0 {
		return nil
	}
	crls := f.current.Load().crls
	err := errors.New("no chain of certificates to check for revocation")
	for _, chain := range s.VerifiedChains {
		if err = revoked(chain, crls, time.Now()); err == nil {
			return nil
		}
	}
	return err
}

// revoked checks each certificate but the root against its issuer's list.
func revoked(chain []*x509.Certificate, crls []*x509.RevocationList, now time.Time) error {
	for i, cert := range chain[:len(chain)-1] {
		list := inForce(chain[i+1], crls, now)
		if list == nil {
			return fmt.Errorf("no list of revoked certificates of %q is in force", chain[i+1].Subject)
		}
		for _, entry := range list.RevokedCertificateEntries {
			if entry.SerialNumber.Cmp(cert.SerialNumber) == 0 {
				return fmt.Errorf("the certificate of %q was revoked at %s", cert.Subject,
					entry.RevocationTime.UTC().Format(time.RFC3339))
			}
		}
	}
	return nil
}

// inForce is the newest list of an issuer.
func inForce(issuer *x509.Certificate, crls []*x509.RevocationList, now time.Time) (list *x509.RevocationList) {
	for _, crl := range crls {
		if string(crl.RawIssuer) != string(issuer.RawSubject) || crl.CheckSignatureFrom(issuer) != nil {
			continue
		}
		valid := !now.Before(crl.ThisUpdate) && (crl.NextUpdate.IsZero() || now.Before(crl.NextUpdate))
		if valid && (list == nil || crl.ThisUpdate.After(list.ThisUpdate)) {
			list = crl
		}
	}
	return list
}

// checkClientHost refuses a client whose certificate is not for the address that it connects from. Names
// are not looked up: the owner of an address decides to which name it resolves.
func checkClientHost(s *tls.ConnectionState, from net.Addr) error {
	if len(s.PeerCertificates) == 0 {
		return nil // ClientAuth has admitted it
	}
	host, _, err := net.SplitHostPort(from.String())
	if err != nil {
		return fmt.Errorf("a client without an address: %w", err)
	}
	return s.PeerCertificates[0].VerifyHostname(host)
}
