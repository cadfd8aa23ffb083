package rest

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// A page of another site can have its own name lead to 127.0.0.1 once it is loaded (DNS
// rebinding). For the browser this server is then the site itself: it sends no foreign
// Origin, and shows the page the answers. What the page cannot choose is the name, which
// the browser sends as Host.

// checkHost refuses a request to a name that this server is not known by, when it listens
// on loopback only. A client of another address gets no privilege of loopback, and
// that address may have any name.
func (c *Core) checkHost(host string) error {
	if !c.loopback.Load() || c.KnownHost(host) {
		return nil
	}
	return ForeignHost(host)
}

// ForeignHost is the problem of a request to a name that this server is not known by.
func ForeignHost(host string) error {
	return &Problem{
		Status: http.StatusForbidden, Title: "foreign host", Param: "Host",
		Detail: "Host: this server is for clients on its machine, and is not known as " + host,
		Hint:   "ask for localhost or 127.0.0.1, or add the name to admin.allowedHosts",
	}
}

// KnownHost reports whether the value of a Host header can only have been meant for this
// server: an address, which nobody can make lead elsewhere; a name that means this machine
// (RFC 6761, 6.3); a configured one; or none at all, which no browser sends.
func (c *Core) KnownHost(host string) bool {
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
