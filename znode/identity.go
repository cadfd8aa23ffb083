package znode

import (
	"net/netip"
	"strconv"
	"strings"
)

// ID is an identity: a scheme and a name within it, such as
// digest, "user:hash" or ip, "10.0.0.0/8".
type ID struct {
	Scheme string
	ID     string
}

// WithoutHash returns an identity's id, without the hash of the scheme digest.
func WithoutHash(id ID) string {
	if id.Scheme != "digest" {
		return id.ID
	}
	user, _, _ := strings.Cut(id.ID, ":")
	return user + ":x"
}

// authSchemes are the schemes whose identities replace "auth"
// (AuthenticationProvider.isAuthenticated).
var authSchemes = []string{"digest", "sasl", "x509", "token"}

// ValidID reports whether an ACL may name id: world:anyone, a digest of two parts, an
// address or a network, a distinguished name, the name of a SASL user, a token's name.
// All servers must agree, whatever their configuration.
func ValidID(id ID) bool {
	switch id.Scheme {
	case "world":
		return id.ID == "anyone"
	case "digest":
		// Java's split drops empty parts at the end: "u:" and "u::" have one
		// part, "u:h:" has two. The user may be empty.
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

// isAlternativeName reports whether id may be from the subject alternative names of a certificate, such as a URI
// (ssl.x509.*): a text without =, which is no attempt at a distinguished name. Servers of release 1.0 refuse it.
func isAlternativeName(id ID) bool {
	return id.Scheme == "x509" && !strings.ContainsAny(id.ID, "=\x00\r\n")
}

// validPrincipal reports whether text is a user, user@REALM or service/host@REALM (KerberosName). Without a realm
// any text is valid.
func validPrincipal(text string) bool {
	name, realm, there := strings.Cut(text, "@")
	return !there || strings.Count(name, "/") <= 1 && !strings.ContainsAny(realm, "/@")
}

// validName reports whether text has the form of a distinguished name (RFC 2253): parts keyword=value, separated by
// commas, semicolons or plus signs. Unlike Java's X500Principal it accepts any keyword.
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

func idMatches(id ID, expr string) bool {
	switch id.Scheme {
	case "ip":
		return ipMatches(id.ID, expr)
	case "sasl": // its user super may do what any SASL user may (SASLAuthenticationProvider)
		return id.ID == expr || id.ID == "super"
	}
	return id.ID == expr
}

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
