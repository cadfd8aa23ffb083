package rest

import (
	"crypto/x509"
	"net"
	"net/http"
	"net/netip"
	"strings"

	"github.com/zk-lite/zk-lite/internal/tlsport"
	"github.com/zk-lite/zk-lite/server/auth"
	"github.com/zk-lite/zk-lite/znode"
)

// identify finds out who asks: the address is an identity as at the ZooKeeper port, and so is a certificate; HTTP
// Basic is ZooKeeper's scheme digest, a bearer token is one of the server's file, or the local administrator's.
func (q *Request) identify(rt *Route) error {
	a := q.Core.Server.Auth()
	c, err := q.client()
	if err != nil {
		return err
	}
	q.Address, q.IDs, q.local, q.Anonymous = c.Address, a.First(c.Address), c.Local, true
	if c.cert != nil {
		q.Anonymous = false
		q.IDs = append(q.IDs, a.Certificate(c.cert)...)
	}
	err = q.credentials(a)
	if rt.Access == Open {
		return nil // what stands there may be meant for another
	}
	if err == nil && rt.Access == ByACL {
		return q.needIdentity()
	}
	return err
}

// needIdentity refuses a client without one of enforce.auth.schemes.
func (q *Request) needIdentity() error {
	a := q.Core.Server.Auth()
	if a.Enough(q.IDs) {
		return nil
	}
	return &Problem{
		Status: 401, Code: znode.ErrSessionClosedNeedsSASL, Title: "an identity is needed",
		Detail: "this server asks clients for an identity of scheme " + strings.Join(a.Schemes(), " or "),
		Hint:   identityHint(a.Schemes()),
	}
}

// identityHint says how a client of HTTP shows an identity of one of these schemes.
func identityHint(schemes []string) string {
	ways := map[string]string{
		"digest": "a password: curl -u user:password", "x509": "a certificate: curl --cert and --key",
		"token": "a bearer token: curl --oauth2-bearer",
	}
	var all []string
	for _, s := range schemes {
		if ways[s] != "" {
			all = append(all, ways[s])
		}
	}
	if len(all) == 0 {
		return "clients of HTTP have none; the ZooKeeper port is for those of sasl"
	}
	return "show " + strings.Join(all, ", or ")
}

// credentials takes the header Authorization.
func (q *Request) credentials(a *auth.Authenticator) error {
	header, given := q.HTTP.Header["Authorization"]
	if !given {
		return nil
	}
	if user, password, ok := q.HTTP.BasicAuth(); ok {
		ids, ok := a.Password(user + ":" + password)
		if !ok {
			return wrongCredentials("this server takes no passwords", "show a certificate, or send a token")
		}
		q.Anonymous = false
		q.IDs = append(q.IDs, ids...)
		return nil
	}
	scheme, token, _ := strings.Cut(header[0], " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return wrongCredentials("neither HTTP Basic credentials nor a bearer token",
			"send user and password: curl -u user:password")
	}
	if q.local = a.Local().Is(token); q.local {
		return nil // it is nobody's name
	}
	ids, ok := a.Token(token)
	if !ok {
		return wrongCredentials("the token is not known",
			"the server's setting http.tokenFile names the file of tokens")
	}
	q.Anonymous = false
	q.IDs = append(q.IDs, ids...)
	return nil
}

func wrongCredentials(detail, hint string) *Problem {
	return &Problem{Status: http.StatusUnauthorized, Code: znode.ErrAuthFailed, Param: "Authorization",
		Detail: "Authorization: " + detail, Hint: hint}
}

// certificate is the client's; nil: it has shown none.
func (q *Request) certificate() *x509.Certificate {
	c, _ := q.HTTP.Context().Value(connKey{}).(net.Conn)
	return tlsport.Certificate(c)
}

func remoteAddress(hostport string) string {
	a, err := netip.ParseAddrPort(hostport)
	if err != nil {
		return hostport // not a TCP connection
	}
	return a.Addr().Unmap().String()
}
