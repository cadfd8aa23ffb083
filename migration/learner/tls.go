package learner

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
)

// verifyHost returns a configuration that verifies the name of a server as ZooKeeper does (ZKTrustManager): its
// certificate names the address or the host. Where it has no alternative names, its common name counts.
func verifyHost(config *tls.Config, host string, address net.Addr) *tls.Config {
	config = config.Clone()
	config.ServerName = host
	if config.InsecureSkipVerify {
		return config
	}
	further := config.VerifyConnection
	config.InsecureSkipVerify = true // what package tls would do is done here, with another rule for names
	config.VerifyConnection = func(s tls.ConnectionState) (err error) {
		o := x509.VerifyOptions{Roots: config.RootCAs, Intermediates: x509.NewCertPool()}
		for _, cert := range s.PeerCertificates[1:] {
			o.Intermediates.AddCert(cert)
		}
		cert := s.PeerCertificates[0]
		if s.VerifiedChains, err = cert.Verify(o); err != nil {
			return &tls.CertificateVerificationError{UnverifiedCertificates: s.PeerCertificates, Err: err}
		}
		if err = names(cert, host, address); err == nil && further != nil {
			err = further(s)
		}
		return err
	}
	return config
}

// names returns why a certificate is not that of a host at an address.
func names(cert *x509.Certificate, host string, address net.Addr) error {
	where, _, err := net.SplitHostPort(address.String())
	if err != nil {
		where = address.String()
	}
	if len(cert.DNSNames)+len(cert.IPAddresses)+len(cert.EmailAddresses)+len(cert.URIs) > 0 {
		byName := cert.VerifyHostname(host)
		if byName == nil || cert.VerifyHostname(where) == nil {
			return nil
		}
		return byName
	}
	named := &x509.Certificate{DNSNames: []string{cert.Subject.CommonName}}
	if cert.Subject.CommonName == "" {
		return errors.New("the server's certificate has no name")
	}
	if cn := cert.Subject.CommonName; cn != host && cn != where && named.VerifyHostname(host) != nil {
		return fmt.Errorf("the server's certificate is for %q, and not for %s (%s)", cn, host, where)
	}
	return nil
}
