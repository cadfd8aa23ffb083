package subtree

import (
	"fmt"
	"strings"

	"github.com/zk-lite/zk-lite/client"
)

// permLetters are the permissions in zkCli's order.
const permLetters = "cdrwa"

// ParseACL reads an entry in zkCli's form, scheme:id:perms, such as
// world:anyone:cdrwa, digest:user:hash:r or auth::rw. The scheme ends at the
// first colon, the permissions begin behind the last.
func ParseACL(s string) (client.ACL, error) {
	first, last := strings.IndexByte(s, ':'), strings.LastIndexByte(s, ':')
	if first <= 0 || first == last {
		return client.ACL{}, fmt.Errorf("ACL %q: want scheme:id:perms, as in world:anyone:r", s)
	}
	acl := client.ACL{ID: client.ID{Scheme: s[:first], ID: s[first+1 : last]}}
	for _, letter := range s[last+1:] {
		perm, ok := permOf(letter)
		if !ok {
			return client.ACL{}, fmt.Errorf("ACL %q: permission %q is none of c d r w a", s, letter)
		}
		acl.Perms |= perm
	}
	if acl.Perms == 0 {
		return client.ACL{}, fmt.Errorf("ACL %q: no permission; want some of cdrwa", s)
	}
	return acl, nil
}

func permOf(letter rune) (client.Perms, bool) {
	switch letter {
	case 'c':
		return client.PermCreate, true
	case 'd':
		return client.PermDelete, true
	case 'r':
		return client.PermRead, true
	case 'w':
		return client.PermWrite, true
	case 'a':
		return client.PermAdmin, true
	}
	return 0, false
}

// FormatACL is the inverse of ParseACL. Bits that have no letter are not shown.
func FormatACL(acl client.ACL) string {
	var perms strings.Builder
	for _, letter := range permLetters {
		if p, _ := permOf(letter); acl.Perms&p != 0 {
			perms.WriteRune(letter)
		}
	}
	return acl.ID.Scheme + ":" + acl.ID.ID + ":" + perms.String()
}

// masked reports whether the server has hidden a part of the list: without the
// permission ADMIN the hashes of digests come as x (FinalRequestProcessor).
func masked(list []client.ACL) bool {
	for _, acl := range list {
		if acl.ID.Scheme == "digest" && strings.HasSuffix(acl.ID.ID, ":x") {
			return true
		}
	}
	return false
}
