package rest

import (
	"strings"

	"github.com/zk-lite/zk-lite/znode"
)

// ACLEntry is one entry of an ACL as JSON.
type ACLEntry struct {
	Scheme string `json:"scheme"`
	ID     string `json:"id"`
	Perms  string `json:"perms"`
}

// ACLBody returns an ACL as JSON has it.
func ACLBody(list []znode.ACL) []ACLEntry {
	out := make([]ACLEntry, 0, len(list))
	for _, a := range list {
		out = append(out, ACLEntry{a.ID.Scheme, a.ID.ID, a.Perms.String()})
	}
	return out
}

// ACL is the parameter's ACL; open to the world when it is not given.
func (p Params) ACL(name string) ([]znode.ACL, error) {
	if !p.Has(name) {
		return znode.OpenACL, nil
	}
	return ParseACL(name, p.Text(name))
}

// ParseACL reads zkCli's form: scheme:id:perms, separated by commas. The id may
// contain colons.
func ParseACL(param, text string) ([]znode.ACL, error) {
	var list []znode.ACL
	for entry := range strings.SplitSeq(text, ",") {
		scheme, rest, ok := strings.Cut(entry, ":")
		last := strings.LastIndexByte(rest, ':')
		if !ok || last < 0 {
			return nil, BadACL(param, "%q is not scheme:id:perms", entry)
		}
		a, err := MakeACL(param, ACLEntry{scheme, rest[:last], rest[last+1:]})
		if err != nil {
			return nil, err
		}
		if list = append(list, a); len(list) > znode.MaxACL {
			return nil, BadACL(param, "more than %d entries", znode.MaxACL)
		}
	}
	return list, nil
}

// MakeACL reads one entry.
func MakeACL(param string, e ACLEntry) (znode.ACL, error) {
	var perms znode.Perms
	for _, letter := range e.Perms {
		i := strings.IndexRune("rwcda", letter)
		if i < 0 {
			return znode.ACL{}, BadACL(param, "%q is no permission; there are c (create children), "+
				"d (delete children), r (read), w (write) and a (administer)", letter)
		}
		perms |= 1 << i
	}
	if _, hash, _ := strings.Cut(e.ID, ":"); e.Scheme == "digest" && strings.Contains(hash, " ") {
		return znode.ACL{}, BadACL(param, "%q: a digest has no blank; in a URL write + as %%2B", e.ID)
	}
	return znode.ACL{Perms: perms, ID: znode.ID{Scheme: e.Scheme, ID: e.ID}}, nil
}

// BadACL is the problem of a wrong ACL.
func BadACL(param, format string, args ...any) *Problem {
	p := BadRequest(param, format, args...)
	p.Code = znode.ErrInvalidACL
	p.Hint = "several entries are separated by commas; examples: world:anyone:r, auth::cdrwa"
	return p
}
