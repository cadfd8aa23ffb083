package rest

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/zk-lite/zk-lite/znode"
)

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
