package rest

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/zk-lite/zk-lite/znode"
)

// Params are a request's query parameters. The errors of its methods name the
// parameter and the values that it may have.
type Params struct{ Values url.Values }

// parseQuery reads the query and refuses what the operation does not know.
func parseQuery(q *Request) error {
	rt := &q.operation.Route
	values, err := url.ParseQuery(q.HTTP.URL.RawQuery)
	if err != nil {
		return BadRequest("query", "%v; write %% as %%25, & as %%26, ; as %%3B", err)
	}
	for name, given := range values {
		if !rt.knows(name) {
			known := slices.Clone(rt.Params)
			if !rt.Local {
				known = append(known, CommonParams[:]...)
			}
			if len(known) == 0 {
				return BadRequest(name, "there are no parameters here")
			}
			return BadRequest(name, "there is no such parameter here; there are: %s",
				strings.Join(known, ", "))
		}
		if len(given) > 1 && !repeatable(name) {
			return BadRequest(name, "given %d times; give it once", len(given))
		}
	}
	q.Query = Params{values}
	return nil
}

// Has reports whether a parameter is given.
func (p Params) Has(name string) bool { return p.Values.Has(name) }

// Text is its value, empty when it is not given.
func (p Params) Text(name string) string { return p.Values.Get(name) }

// Flag is true for ?name, ?name=true and ?name=1.
func (p Params) Flag(name string) (bool, error) {
	switch v := p.Text(name); {
	case !p.Has(name):
		return false, nil
	case v == "", v == "true", v == "1":
		return true, nil
	case v == "false", v == "0":
		return false, nil
	default:
		return false, BadRequest(name, "%q is neither true nor false", v)
	}
}

// Only refuses parameters that have a meaning only with another one.
func (p Params) Only(with string, names ...string) error {
	for _, name := range names {
		if p.Has(name) {
			return BadRequest(name, "it can be used with %s only", with)
		}
	}
	return nil
}

// Integer is between least and most; the default when it is not given.
func (p Params) Integer(name string, def, least, most int) (int, error) {
	if !p.Has(name) {
		return def, nil
	}
	n, err := strconv.Atoi(p.Text(name))
	if err != nil || n < least || n > most {
		return 0, BadRequest(name, "%q is not a number from %d to %d", p.Text(name), least, most)
	}
	return n, nil
}

// Version is the one that a znode must have; any when it is not given.
func (p Params) Version(name string) (znode.Version, error) {
	if !p.Has(name) {
		return znode.AnyVersion, nil
	}
	n, err := strconv.ParseInt(p.Text(name), 10, 32)
	if err != nil || n < -1 {
		return 0, BadRequest(name,
			"%q is not a version: the number that stat.version shows, or -1 for any", p.Text(name))
	}
	return znode.Version(n), nil
}

// Duration is between least and most.
func (p Params) Duration(name string, def, least, most time.Duration) (time.Duration, error) {
	if !p.Has(name) {
		return def, nil
	}
	return ParseDuration(name, p.Text(name), least, most)
}

// ParseDuration reads a time with its unit.
func ParseDuration(name, text string, least, most time.Duration) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil || d < least || d > most {
		return 0, BadRequest(name, "%q is not a time from %v to %v with its unit, such as 500ms, "+
			"30s or 2m", text, least, most)
	}
	return d, nil
}

// Zxid is 0 when it is not given.
func (p Params) Zxid(name string) (znode.Zxid, error) {
	if !p.Has(name) {
		return 0, nil
	}
	return ParseZxid(name, p.Text(name))
}

// ParseZxid reads a zxid in hexadecimal.
func ParseZxid(name, text string) (znode.Zxid, error) {
	digits, ok := strings.CutPrefix(text, "0x")
	n, err := strconv.ParseUint(digits, 16, 63)
	if !ok || err != nil {
		return 0, BadRequest(name, "%q is not a zxid, such as 0x100000002", text)
	}
	return znode.Zxid(n), nil
}

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
