package rest

import (
	"crypto/x509"
	"net"
	"net/http"
	"net/netip"
	"slices"
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

// HeaderTokenFile names the file that a local administrator reads.
const HeaderTokenFile = "Zk-Token-File"

// proxies are headers that only a proxy sends, besides X-Forwarded-*. What it passes on is not from this machine,
// wherever the proxy is.
var proxies = []string{
	"Forwarded", "Via", "X-Real-Ip", "X-Client-Ip", "Client-Ip", "True-Client-Ip", "Cf-Connecting-Ip",
}

// NeedAdministrator refuses those who may not see and change how the ensemble is run. It takes super users and the
// identities of admin.identities or, when nobody is named, a client on this machine that can read the server's file
// with a token. What it takes is noted in the audit log.
func (q *Request) NeedAdministrator() error {
	err := q.refuseOthers()
	q.administers = q.administers || err == nil
	return err
}

// IsAdministrator reports whether NeedAdministrator would take the request.
func (q *Request) IsAdministrator() bool { return q.refuseOthers() == nil }

// NeedInsight refuses who may not be shown what other clients do: where an administrator is configured, everybody
// else. It reports whether what ACLs hide may be shown, too.
func (q *Request) NeedInsight() (all bool, err error) {
	err = q.NeedAdministrator()
	if err == nil || q.Core.Server.Auth().Configured() {
		return err == nil, err
	}
	return false, q.needIdentity()
}

func (q *Request) refuseOthers() error {
	a := q.Core.Server.Auth()
	if a.Administrator(q.IDs) {
		return nil
	}
	p := ProblemOf(Fail(znode.ErrNoAuth, ""), q.Anonymous)
	p.Title = "for administrators only"
	if a.Local() == nil {
		p.Detail = "this is for super users and the identities of admin.identities"
		p.Hint = "send the super user's credentials: curl -u super:password"
		return p
	}
	if q.local && q.fromMember() != nil {
		return nil // its own server has looked
	}
	if !q.fromHere() {
		p.Status = http.StatusForbidden
		p.Detail = "no administrator is configured, so this is for clients on the server's own machine, " +
			"without a proxy; this one is at " + q.Address
		p.Hint = "configure a super user (DigestAuthenticationProvider.superDigest) or admin.identities"
		return p
	}
	if !q.Core.KnownHost(q.HTTP.Host) {
		return ForeignHost(q.HTTP.Host) // a browser on this machine was led here
	}
	if q.local {
		return nil
	}
	file := a.Local().Path()
	q.W.Header().Set(HeaderTokenFile, file)
	p.Status = http.StatusUnauthorized
	p.Detail = "no administrator is configured, so this is for who can read the server's files"
	p.Hint = `send the token of ` + file + `: curl -H "Authorization: Bearer $(head -1 ` + file +
		`)"; zk-lite finds it by itself`
	return p
}

// fromHere reports whether the client is on this machine.
func (q *Request) fromHere() bool {
	for h := range q.HTTP.Header {
		if strings.HasPrefix(h, "X-Forwarded-") || slices.Contains(proxies, h) {
			return false
		}
	}
	a, err := netip.ParseAddr(q.Address)
	return err == nil && a.IsLoopback()
}
