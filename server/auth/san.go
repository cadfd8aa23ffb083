package auth

import (
	"crypto/x509"
	"regexp"
)

// The kinds of names in a certificate's subject alternative names (RFC 5280, section 4.2.1.6), by their numbers.
const (
	SANEmail   = 1
	SANDNS     = 2
	SANURI     = 6
	SANAddress = 7
)

// SAN is how the id of a certificate's owner is found among its subject alternative names (ssl.x509.*).
type SAN struct {
	Kind           int            // one of the constants
	Match, Extract *regexp.Regexp // which name, and what of it
	Group          int            // of Extract; 0: all that it matches
}

// id is the part of the one name that matches; empty if there is none, or more than one.
func (s *SAN) id(cert *x509.Certificate) (id string) {
	found := 0
	for _, name := range s.names(cert) {
		if s.Match.MatchString(name) {
			id = name
			found++
		}
	}
	if found != 1 {
		return ""
	}
	groups := s.Extract.FindStringSubmatch(id)
	if s.Group >= len(groups) {
		return ""
	}
	return groups[s.Group]
}

func (s *SAN) names(cert *x509.Certificate) (all []string) {
	switch s.Kind {
	case SANEmail:
		return cert.EmailAddresses
	case SANDNS:
		return cert.DNSNames
	case SANURI:
		for _, u := range cert.URIs {
			all = append(all, u.String())
		}
	case SANAddress:
		for _, ip := range cert.IPAddresses {
			all = append(all, ip.String())
		}
	}
	return all
}

// certificateID is what ACLs call a certificate's owner; empty if the certificate does not say it.
func (a *Authenticator) certificateID(cert *x509.Certificate) (id string, ok bool) {
	if a.cfg.SAN == nil {
		return Subject(cert), true // which may be empty, as in ZooKeeper
	}
	id = a.cfg.SAN.id(cert)
	return id, id != ""
}
