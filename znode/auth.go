package znode

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// Permits reports whether a client with these identities may do one of the
// wanted things under an ACL (ZooKeeperServer.checkACL): an empty list and the
// super user may do everything, and any one of the wanted bits is enough.
func Permits(acl []ACL, want Perms, ids []ID) bool {
	if len(acl) == 0 {
		return true
	}
	for i := range acl {
		if acl[i].Perms&want != 0 && acl[i].ID == Anyone {
			return true
		}
	}
	for i := range ids {
		if ids[i].Scheme == "super" {
			return true
		}
	}
	for i := range acl {
		if acl[i].Perms&want == 0 {
			continue
		}
		for j := range ids {
			if ids[j].Scheme == acl[i].ID.Scheme && idMatches(ids[j], acl[i].ID.ID) {
				return true
			}
		}
	}
	return false
}

func idMatches(id ID, expr string) bool {
	switch id.Scheme {
	case "ip":
		return ipMatches(id.ID, expr)
	case "sasl": // its user super may do what any SASL user may (SASLAuthenticationProvider)
		return id.ID == expr || id.ID == "super"
	}
	return id.ID == expr
}

// fixACL checks a list that a client wants to set and completes it
// (PrepRequestProcessor.fixupACL): duplicates in what the client sent go, then
// "auth" becomes every identity the client has proved.
func fixACL(list []ACL, ids []ID) ([]ACL, Error) {
	if len(list) == 0 {
		return nil, ErrInvalidACL
	}
	if len(list) == 1 && list[0].ID == Anyone {
		return list, OK
	}
	fixed := make([]ACL, 0, len(list))
	for i, a := range list {
		switch {
		case slices.Contains(list[:i], a):
		case a.ID.Scheme == "auth":
			n := len(fixed)
			for _, id := range ids {
				if slices.Contains(authSchemes, id.Scheme) {
					fixed = append(fixed, ACL{a.Perms, id})
				}
			}
			if len(fixed) == n {
				return nil, ErrInvalidACL
			}
		case ValidID(a.ID):
			fixed = append(fixed, a)
		default:
			return nil, ErrInvalidACL
		}
	}
	return fixed, OK
}

// authSchemes are those whose identities "auth" stands for (AuthenticationProvider.isAuthenticated).
var authSchemes = []string{"digest", "sasl", "x509", "token"}

// ValidID reports whether an ACL may name id: world:anyone, a digest of two
// parts, an address or a network, a distinguished name, the name of a SASL user, a
// token's name. All servers must say the same, whatever each of them is configured for.
func ValidID(id ID) bool {
	switch id.Scheme {
	case "world":
		return id.ID == "anyone"
	case "digest":
		// Java's split drops empty parts at the end, so "u:" and "u::" have one
		// part, and "u:h:" has two. The user may be empty.
		return strings.Count(strings.TrimRight(id.ID, ":"), ":") == 1
	case "ip":
		_, _, ok := parseNetwork(id.ID)
		return ok
	case "x509":
		return validName(id.ID)
	case "sasl":
		return validPrincipal(id.ID)
	case "token": // ours: the name of a bearer token
		return id.ID != ""
	}
	return false
}

// validPrincipal reports whether text is a user, user@REALM or service/host@REALM (KerberosName). Without a realm
// anything goes.
func validPrincipal(text string) bool {
	name, realm, there := strings.Cut(text, "@")
	return !there || strings.Count(name, "/") <= 1 && !strings.ContainsAny(realm, "/@")
}

// validName reports whether text has the form of a distinguished name (RFC 2253): parts keyword=value, between them
// commas, semicolons or plus signs. Java's X500Principal knows which keywords there are; here any word will do.
func validName(text string) bool {
	if text == "" {
		return true // a certificate may have an empty subject
	}
	start, quoted := 0, false
	for i := 0; i <= len(text); i++ {
		switch {
		case i == len(text):
		case text[i] == '\\' && i+1 < len(text):
			i++
			continue
		case text[i] == '"':
			quoted = !quoted
			continue
		case quoted || !strings.ContainsRune(",;+", rune(text[i])):
			continue
		}
		keyword, _, ok := strings.Cut(text[start:i], "=")
		if keyword = strings.TrimSpace(keyword); !ok || keyword == "" || strings.Trim(keyword, keywordLetters) != "" {
			return false
		}
		start = i + 1
	}
	return !quoted
}

const keywordLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-"

// ipMatches reports whether addr lies in the network expr. The families never
// match each other (IPAuthenticationProvider).
func ipMatches(addr, expr string) bool {
	a, err := netip.ParseAddr(addr)
	if err != nil {
		return false
	}
	net, bits, ok := parseNetwork(expr)
	if !ok || a.Is4() != net.Is4() {
		return false
	}
	p, err := a.WithZone("").Prefix(bits)
	if err != nil {
		return false
	}
	q, err := net.Prefix(bits)
	return err == nil && p == q
}

// parseNetwork splits "address" or "address/bits".
func parseNetwork(expr string) (addr netip.Addr, bits int, ok bool) {
	text, suffix, hasBits := strings.Cut(expr, "/")
	addr, err := netip.ParseAddr(text)
	if err != nil || addr.Is4In6() && strings.Contains(text, ".") || addr.Zone() != "" {
		return netip.Addr{}, 0, false
	}
	bits = addr.BitLen()
	if hasBits {
		if bits, err = strconv.Atoi(suffix); err != nil || bits < 0 || bits > addr.BitLen() {
			return netip.Addr{}, 0, false
		}
	}
	return addr, bits, true
}
