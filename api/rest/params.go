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
// parameter and say what would be right.
type Params struct{ Values url.Values }

// parseQuery reads the query and refuses what the operation does not know.
func (q *Request) parseQuery(rt *Route) error {
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

// Only refuses parameters that mean something with another one only.
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
