package api

import (
	"strings"

	"github.com/zk-lite/zk-lite/znode"
)

// maxACL bounds the entries of an ACL: they are stored with the znode and compared
// one by one at every access.
const maxACL = 1000

// aclEntry is one entry of an ACL as JSON.
type aclEntry struct {
	Scheme string `json:"scheme"`
	ID     string `json:"id"`
	Perms  string `json:"perms"`
}

func aclBody(list []znode.ACL) []aclEntry {
	out := make([]aclEntry, 0, len(list))
	for _, a := range list {
		out = append(out, aclEntry{a.ID.Scheme, a.ID.ID, a.Perms.String()})
	}
	return out
}

// acl is the parameter's ACL; open to the world when it is not given.
func (p params) acl(name string) ([]znode.ACL, error) {
	if !p.has(name) {
		return znode.OpenACL, nil
	}
	return parseACL(name, p.text(name))
}

// parseACL reads zkCli's form: scheme:id:perms, separated by commas. The id may
// contain colons.
func parseACL(param, text string) ([]znode.ACL, error) {
	var list []znode.ACL
	for entry := range strings.SplitSeq(text, ",") {
		scheme, rest, ok := strings.Cut(entry, ":")
		last := strings.LastIndexByte(rest, ':')
		if !ok || last < 0 {
			return nil, badACL(param, "%q is not scheme:id:perms", entry)
		}
		a, err := makeACL(param, aclEntry{scheme, rest[:last], rest[last+1:]})
		if err != nil {
			return nil, err
		}
		if list = append(list, a); len(list) > maxACL {
			return nil, badACL(param, "more than %d entries", maxACL)
		}
	}
	return list, nil
}

func makeACL(param string, e aclEntry) (znode.ACL, error) {
	var perms znode.Perms
	for _, letter := range e.Perms {
		i := strings.IndexRune("rwcda", letter)
		if i < 0 {
			return znode.ACL{}, badACL(param, "%q is no permission; there are c (create children), "+
				"d (delete children), r (read), w (write) and a (administer)", letter)
		}
		perms |= 1 << i
	}
	if _, hash, _ := strings.Cut(e.ID, ":"); e.Scheme == "digest" && strings.Contains(hash, " ") {
		return znode.ACL{}, badACL(param, "%q: a digest has no blank; in a URL write + as %%2B", e.ID)
	}
	return znode.ACL{Perms: perms, ID: znode.ID{Scheme: e.Scheme, ID: e.ID}}, nil
}

func badACL(param, format string, args ...any) *problem {
	p := badRequest(param, format, args...)
	p.Code = znode.ErrInvalidACL
	p.Hint = "several entries are separated by commas; examples: world:anyone:r, auth::cdrwa"
	return p
}
