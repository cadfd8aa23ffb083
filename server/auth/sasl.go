package auth

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/zk-lite/zk-lite/znode"
)

// Exchange is one client's run of a SASL mechanism (RFC 4422), on the server's side.
type Exchange interface {
	// Next takes the client's token and returns the server's. user is empty until the client has proved who it is.
	Next(token []byte) (reply []byte, user string, err error)
}

// SASL is what is known about SASL on the ZooKeeper port.
type SASL struct {
	// Mechanism is DIGEST-MD5 or GSSAPI.
	Mechanism func() string
	// Begin starts an exchange.
	Begin func() Exchange
	// Realm is the Kerberos realm of the server, whose names the settings below shorten; empty: there is none.
	Realm func() string
	// RemoveHost and RemoveRealm make service/host@REALM shorter (kerberos.removeHostFromPrincipal and
	// kerberos.removeRealmFromPrincipal).
	RemoveHost, RemoveRealm bool
	// Supers are the names of super users, after that.
	Supers []string
	// AllowFailed keeps clients that fail, without an identity (allowSaslFailedClients).
	AllowFailed bool
}

// SASL is what the settings say about SASL; nil: there is none.
func (a *Authenticator) SASL() *SASL { return a.cfg.SASL }

// Identities are those of a user who has proved to be this one (SaslServerCallbackHandler). The identity is that of
// the credentials: a client cannot choose another one.
func (s *SASL) Identities(user string) ([]znode.ID, error) {
	name, err := s.shorten(user)
	if err != nil {
		return nil, err
	}
	ids := []znode.ID{{Scheme: "sasl", ID: name}}
	if slices.Contains(s.Supers, name) {
		ids = append(ids, znode.SuperIDs)
	}
	return ids, nil
}

// shorten leaves out of service/host@REALM what the settings say. Names of other realms stay whole, so that nobody
// there can be taken for somebody here.
func (s *SASL) shorten(user string) (string, error) {
	id := znode.ID{Scheme: "sasl", ID: user}
	if user == "" || !znode.ValidID(id) {
		return "", fmt.Errorf("%.100q is not of the form user, service/host@REALM or user@REALM", user)
	}
	rest, realm, there := strings.Cut(user, "@")
	if !there || realm != s.Realm() {
		return user, nil
	}
	service, host, hasHost := strings.Cut(rest, "/")
	if hasHost && !s.RemoveHost {
		service += "/" + host
	}
	if !s.RemoveRealm {
		service += "@" + realm
	}
	if service == "" {
		return "", errors.New("the name is empty without host and realm")
	}
	return service, nil
}
