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

// Identity is the client of a request, with the identities that it has proved.
type Identity struct {
	Address   string     // the client's IP address
	IDs       []znode.ID // those of the address included
	Anonymous bool       // it came without credentials
	local     bool       // it has the local administrator's token
}

// identify finds the client's identities: the address is one as at the ZooKeeper port, and so is a certificate; HTTP
// Basic is ZooKeeper's scheme digest, a bearer token is one of the server's file, or the local administrator's.
func identify(q *Request) error {
	a := q.Core.Config.Auth
	c, err := clientOf(q.HTTP)
	if err != nil {
		return err
	}
	q.Identity = Identity{Address: c.Address, IDs: a.First(c.Address), Anonymous: true, local: c.Local}
	if c.cert != nil {
		q.Anonymous = false
		q.IDs = append(q.IDs, a.Certificate(c.cert)...)
	}
	err = q.Identity.prove(a, q.HTTP)
	switch {
	case q.operation.Access == Open || q.operation.Access == Linked:
		return nil // the credentials may be meant for another server
	case err == nil && q.operation.Access == ByACL:
		return needIdentity(a, q.IDs)
	}
	return err
}

// pace refuses a client that asks for more in a second than limits.clientRequests and limits.clientBytes allow. Probes
// and administrators pass.
func pace(q *Request) error {
	callers := q.Core.Config.Callers
	if callers == nil || q.operation.Local || q.operation.Access != ByACL {
		return nil
	}
	wait := callers.Pace(q.IDs, int(max(q.HTTP.ContentLength, 0)))
	if wait == 0 {
		return nil
	}
	return TooMany(int(wait.Seconds())+1, "this client asks for more in a second than limits.clientRequests or "+
		"limits.clientBytes allow")
}

// prove adds what the header Authorization proves.
func (i *Identity) prove(a *auth.Authenticator, r *http.Request) error {
	header, given := r.Header["Authorization"]
	if !given {
		return nil
	}
	scheme, token, _ := strings.Cut(header[0], " ")
	if asAdminServer := strings.ToLower(scheme); token == "" && (asAdminServer == "ip" || asAdminServer == "x509") {
		return nil // the connection proves it
	}
	if password, ok := password(r, scheme, token); ok {
		ids, ok := a.Password(password)
		if !ok {
			return wrongCredentials("this server takes no passwords", "show a certificate, or send a token")
		}
		i.Anonymous = false
		i.IDs = append(i.IDs, ids...)
		return nil
	}
	if !strings.EqualFold(scheme, "Bearer") {
		return wrongCredentials("neither HTTP Basic credentials nor a bearer token",
			"send user and password: curl -u user:password")
	}
	if i.local = a.Local().Is(token); i.local {
		return nil // it is no one's name
	}
	ids, ok := a.Token(token)
	if !ok {
		return wrongCredentials("the token is not known",
			"the server's setting http.tokenFile names the file of tokens")
	}
	i.Anonymous = false
	i.IDs = append(i.IDs, ids...)
	return nil
}

// password is a user and a password, user:password: as HTTP Basic has them, or in the clear, as ZooKeeper's AdminServer
// takes them ("digest user:password"), which is not HTTP's scheme Digest.
func password(r *http.Request, scheme, token string) (string, bool) {
	if user, password, ok := r.BasicAuth(); ok {
		return user + ":" + password, true
	}
	plain := strings.EqualFold(scheme, "digest") && strings.Contains(token, ":") && !strings.Contains(token, `="`)
	return token, plain
}

func wrongCredentials(detail, hint string) *Problem {
	return &Problem{Status: http.StatusUnauthorized, Code: znode.ErrAuthFailed, Param: "Authorization",
		Detail: "Authorization: " + detail, Hint: hint}
}

// needIdentity refuses a client without one of enforce.auth.schemes.
func needIdentity(a *auth.Authenticator, ids []znode.ID) error {
	if a.Enough(ids) {
		return nil
	}
	return &Problem{
		Status: 401, Code: znode.ErrSessionClosedNeedsSASL, Title: "an identity is needed",
		Detail: "this server asks clients for an identity of scheme " + strings.Join(a.Schemes(), " or "),
		Hint:   identityHint(a.Schemes()),
	}
}

// identityHint is how a client of HTTP shows an identity of one of these schemes.
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

// certificateOf returns the certificate that the client has shown; nil: none.
func certificateOf(r *http.Request) *x509.Certificate {
	c, _ := r.Context().Value(connKey{}).(net.Conn)
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

// proxies are headers that only a proxy sends, besides X-Forwarded-*. A proxy's clients are not on this machine,
// wherever the proxy is.
var proxies = []string{
	"Forwarded", "Via", "X-Real-Ip", "X-Client-Ip", "Client-Ip", "True-Client-Ip", "Cf-Connecting-Ip",
}

// checkAdministrator refuses requests for operations that are for administrators.
func checkAdministrator(q *Request) error {
	if q.operation.Access != Administrators {
		return nil
	}
	return q.NeedAdministrator()
}

// NeedAdministrator refuses clients that may not see and change how the ensemble is run. It accepts super users and the
// identities of admin.identities or, if none is configured, a client on this machine that can read the server's file
// with a token. The audit log records what it accepts.
func (q *Request) NeedAdministrator() error {
	err := refuseOthers(q)
	q.administers = q.administers || err == nil
	return err
}

// IsAdministrator reports whether NeedAdministrator would accept the request.
func (q *Request) IsAdministrator() bool { return refuseOthers(q) == nil }

// NeedInsight refuses clients that may not see others: if an administrator is configured, all but administrators. It
// reports whether paths that ACLs hide may be shown, too.
func (q *Request) NeedInsight() (all bool, err error) {
	err = q.NeedAdministrator()
	if err == nil || q.Core.Config.Auth.Configured() {
		return err == nil, err
	}
	return false, needIdentity(q.Core.Config.Auth, q.IDs)
}

// refuseOthers refuses everyone but administrators.
func refuseOthers(q *Request) error {
	a := q.Core.Config.Auth
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
	if q.local && fromMember(q.HTTP) {
		return nil // the server that it has asked has checked this
	}
	if !onThisMachine(q.Address, q.HTTP.Header) {
		p.Status = http.StatusForbidden
		p.Detail = "no administrator is configured, so this is for clients on the server's own machine, " +
			"without a proxy; this one is at " + q.Address
		p.Hint = "configure a super user (DigestAuthenticationProvider.superDigest) or admin.identities"
		return p
	}
	if !q.Core.knownHost(q.HTTP.Host) {
		return foreignHost(q.HTTP.Host) // a browser on this machine was led here
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

// onThisMachine reports whether a client at this address, which sends these headers, is on this machine.
func onThisMachine(address string, headers http.Header) bool {
	for h := range headers {
		if strings.HasPrefix(h, "X-Forwarded-") || slices.Contains(proxies, h) {
			return false
		}
	}
	a, err := netip.ParseAddr(address)
	return err == nil && a.IsLoopback()
}
