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
func Permits(acl []ACL, want Perms, ids []ID) bool { return granted(acl, want, ids) != 0 }

// fewPairs is how many pairs of an entry and an identity are compared one by one: more take longer than a set.
const fewPairs = 256

// granted returns which of the wanted permissions a client with these identities has under an ACL. Its work grows with
// the sum of the two lists, not with their product, because a client chooses both.
func granted(acl []ACL, want Perms, ids []ID) (have Perms) {
	if len(acl) == 0 {
		return want
	}
	for i := range ids {
		if ids[i].Scheme == "super" {
			return want
		}
	}
	for i := range acl {
		if acl[i].ID == Anyone {
			have |= acl[i].Perms & want
		}
	}
	if have == want {
		return want
	}
	if len(acl)*len(ids) > fewPairs {
		return have | grantedByMany(acl, want, ids)
	}
	for i := range acl {
		for j := range ids {
			if acl[i].Perms&want != 0 && ids[j].Scheme == acl[i].ID.Scheme && idMatches(ids[j], acl[i].ID.ID) {
				have |= acl[i].Perms & want
			}
		}
	}
	return have
}

// grantedByMany returns the permissions that the entries of a long ACL grant to a
// client with many identities.
func grantedByMany(acl []ACL, want Perms, ids []ID) (have Perms) {
	set := make(map[ID]bool, len(ids))
	var addresses []ID // a connection has one
	for _, id := range ids {
		if set[id] = true; id.Scheme == "ip" {
			addresses = append(addresses, id)
		}
	}
	for i := range acl {
		a := &acl[i]
		if a.Perms&want&^have == 0 {
			continue
		}
		matches := a.ID.Scheme != "ip" && set[a.ID] || a.ID.Scheme == "sasl" && set[ID{"sasl", "super"}]
		for _, id := range addresses {
			matches = matches || a.ID.Scheme == "ip" && ipMatches(id.ID, a.ID.ID)
		}
		if matches {
			have |= a.Perms & want
		}
	}
	return have
}

// permits is Permits for a znode's ACL in a transaction. It evaluates a long list once per transaction,
// however many operations need it.
func (t *Tree) permits(x *Txn, id aclID, want Perms) bool {
	acl := t.acls.get(id)
	if len(acl)*len(x.Identities) <= fewPairs {
		return Permits(acl, want, x.Identities)
	}
	have, known := x.granted[id]
	if !known {
		if x.granted == nil {
			x.granted = map[aclID]Perms{}
		}
		have = granted(acl, PermAll, x.Identities)
		x.granted[id] = have
	}
	return have&want != 0
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

// fewEntries is how many entries of a list are compared with each other: more take longer than a set.
const fewEntries = 16

// fixACL checks a list that a client wants to set and completes it
// (PrepRequestProcessor.fixupACL): it drops duplicates from what the client
// sent, and then replaces "auth" by every identity that the client has proved.
func fixACL(list []ACL, ids []ID) ([]ACL, Error) {
	if len(list) == 0 {
		return nil, ErrInvalidACL
	}
	if len(list) == 1 && list[0].ID == Anyone {
		return list, OK
	}
	fixed := make([]ACL, 0, len(list))
	var seen map[ACL]bool
	if len(list) > fewEntries {
		seen = make(map[ACL]bool, len(list))
	}
	for i, a := range list {
		if seen[a] || seen == nil && slices.Contains(list[:i], a) {
			continue
		}
		if seen != nil {
			seen[a] = true
		}
		switch {
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

// CompletedACL bounds how many entries list has once "auth" is replaced by every identity that a client has proved,
// and estimates their memory in bytes. It does not build the list.
func CompletedACL(list []ACL, ids []ID) (entries int, memory int64) {
	entries, memory = len(list), ACLMemory(list)
	auths := 0
	for i := range list {
		if list[i].ID.Scheme == "auth" {
			auths++
		}
	}
	if auths == 0 {
		return entries, memory
	}
	for i := range ids {
		if slices.Contains(authSchemes, ids[i].Scheme) {
			entries += auths
			memory += int64(auths) * ACLMemory([]ACL{{ID: ids[i]}})
		}
	}
	return entries - auths, memory
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
