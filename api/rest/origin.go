package rest

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// A page of another site can have its own name lead to 127.0.0.1 once it is loaded (DNS
// rebinding). For the browser this server is then the site itself: it sends no foreign
// Origin, and shows the page the answers. What the page cannot choose is the name, which
// the browser sends as Host.

// checkHost refuses a request to a name that this server is not known by, when it listens
// on loopback only. A client of another address gets no privilege of loopback, and
// that address may have any name. Other servers call this one by its number.
func checkHost(q *Request) error {
	if fromMember(q.HTTP) || !q.Core.loopback.Load() || q.Core.knownHost(q.HTTP.Host) {
		return nil
	}
	return foreignHost(q.HTTP.Host)
}

// foreignHost is the problem of a request to a name that this server is not known by.
func foreignHost(host string) error {
	return &Problem{
		Status: http.StatusForbidden, Title: "foreign host", Param: "Host",
		Detail: "Host: this server is for clients on its machine, and is not known as " + host,
		Hint:   "ask for localhost or 127.0.0.1, or add the name to admin.allowedHosts",
	}
}

// knownHost reports whether the value of a Host header can only have been meant for this
// server: an address, which no one can make lead elsewhere; a name that means this machine
// (RFC 6761, 6.3); a configured one; or none at all, which no browser sends.
func (c *Core) knownHost(host string) bool {
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	name = strings.ToLower(strings.TrimSuffix(strings.Trim(name, "[]"), "."))
	if name == "" || name == "localhost" || strings.HasSuffix(name, ".localhost") {
		return true
	}
	if _, err := netip.ParseAddr(name); err == nil {
		return true
	}
	return slices.ContainsFunc(c.Config.Hosts, func(known string) bool {
		return known == "*" || strings.EqualFold(known, name)
	})
}

// checkOrigin refuses requests that a page of another site sends in its visitor's name, and
// answers the preflight questions of browsers (CORS).
func checkOrigin(q *Request) error {
	h, res := q.W.Header(), q.resource
	preflight := q.HTTP.Method == http.MethodOptions && res != nil
	allowedOrigin := false
	if origin := q.HTTP.Header.Get("Origin"); origin != "" && !sameOrigin(origin, q.HTTP.Host) {
		h.Add("Vary", "Origin")
		allowed := q.Core.Config.Origins
		if !slices.Contains(allowed, origin) && !slices.Contains(allowed, "*") {
			return &Problem{
				Status: http.StatusForbidden, Title: "foreign origin", Param: "Origin",
				Detail: "Origin: pages of " + origin + " may not call this server",
				Hint:   "its configuration can allow them",
			}
		}
		allowedOrigin = true
		h.Set("Access-Control-Allow-Origin", origin)
		h.Set("Access-Control-Expose-Headers", strings.Join([]string{
			HeaderZxid, HeaderConsistency, HeaderServer, HeaderLeader, HeaderVersion,
			HeaderReplayed, "ETag", "Location", "Retry-After",
		}, ", "))
		if preflight {
			h.Set("Access-Control-Allow-Methods", res.allow())
			h.Set("Access-Control-Allow-Headers", strings.Join([]string{
				"Authorization", "Content-Type", HeaderSession, HeaderKey, "If-Match",
				"If-None-Match", "Last-Event-ID",
			}, ", "))
			h.Set("Access-Control-Max-Age", "600")
		}
	}
	// Some requests of other sites' pages have no Origin, but all have this.
	if !allowedOrigin && strings.EqualFold(q.HTTP.Header.Get("Sec-Fetch-Site"), "cross-site") && !followsLink(q) {
		return &Problem{
			Status: http.StatusForbidden, Title: "foreign origin", Param: "Sec-Fetch-Site",
			Detail: "Sec-Fetch-Site: pages of other sites may not call this server",
			Hint:   "open the page by its address; the configuration can allow origins (admin.allowedOrigins)",
		}
	}
	if preflight {
		h.Set("Allow", res.allow())
		q.Begin(http.StatusNoContent)
	}
	return nil
}

// followsLink reports whether the browser goes to a page, as its user sees in the address: from a link of another
// site, or from the file of `zk-lite ui`.
func followsLink(q *Request) bool {
	h, op := q.HTTP.Header, q.resource[q.HTTP.Method]
	return op != nil && op.Access == Linked && q.HTTP.Method == http.MethodGet &&
		h.Get("Sec-Fetch-Mode") == "navigate" && h.Get("Sec-Fetch-Dest") == "document"
}

// sameOrigin reports whether an Origin is this server under the name by which the
// client called it.
func sameOrigin(origin, host string) bool {
	u, err := url.Parse(origin)
	return err == nil && u.Host != "" && strings.EqualFold(u.Host, host)
}
