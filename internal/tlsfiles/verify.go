package tlsfiles

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"time"
)

// verifyChain does what package tls does, without the name of the server.
func verifyChain(s *tls.ConnectionState, roots *x509.CertPool) ([][]*x509.Certificate, error) {
	o := x509.VerifyOptions{Roots: roots, Intermediates: x509.NewCertPool()}
	for _, cert := range s.PeerCertificates[1:] {
		o.Intermediates.AddCert(cert)
	}
	return s.PeerCertificates[0].Verify(o)
}

// VerifyOwn says why another one with the same files would refuse the certificate: as that of a server at a host, or as
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
	o := x509.VerifyOptions{Roots: l.roots, Intermediates: x509.NewCertPool()}
	for _, cert := range state.PeerCertificates[1:] {
		o.Intermediates.AddCert(cert)
	}
	for _, usage := range []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth} {
		o.KeyUsages = []x509.ExtKeyUsage{usage}
		var err error
		if state.VerifiedChains, err = state.PeerCertificates[0].Verify(o); err != nil {
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

// checkRevoked refuses a certificate whose chains all have one that is revoked, or of whose authority no
// list is in force.
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

// checkClientHost refuses a client whose certificate is not for the address that it comes from. Names are
// not looked up: whoever has an address decides what name it leads to.
func checkClientHost(s *tls.ConnectionState, from net.Addr) error {
	if len(s.PeerCertificates) == 0 {
		return nil // ClientAuth has let it through
	}
	host, _, err := net.SplitHostPort(from.String())
	if err != nil {
		return fmt.Errorf("a client without an address: %w", err)
	}
	return s.PeerCertificates[0].VerifyHostname(host)
}
