package api

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/zk-lite/zk-lite/znode"
)

// params are a request's query parameters. The errors of its methods name the
// parameter and say what would be right.
type params struct{ values url.Values }

// parseQuery reads the query and refuses what the operation does not know.
func (q *request) parseQuery(rt *route) error {
	values, err := url.ParseQuery(q.http.URL.RawQuery)
	if err != nil {
		return badRequest("query", "%v; write %% as %%25, & as %%26, ; as %%3B", err)
	}
	for name, given := range values {
		if !rt.knows(name) {
			known := slices.Clone(rt.params)
			if !rt.plain {
				known = append(known, commonParams[:]...)
			}
			if len(known) == 0 {
				return badRequest(name, "there are no parameters here")
			}
			return badRequest(name, "there is no such parameter here; there are: %s",
				strings.Join(known, ", "))
		}
		if len(given) > 1 && !repeatable(name) {
			return badRequest(name, "given %d times; once would do", len(given))
		}
	}
	q.query = params{values}
	return nil
}

func (p params) has(name string) bool    { return p.values.Has(name) }
func (p params) text(name string) string { return p.values.Get(name) }

// flag is true for ?name, ?name=true and ?name=1.
func (p params) flag(name string) (bool, error) {
	switch v := p.text(name); {
	case !p.has(name):
		return false, nil
	case v == "", v == "true", v == "1":
		return true, nil
	case v == "false", v == "0":
		return false, nil
	default:
		return false, badRequest(name, "%q is neither true nor false", v)
	}
}

// only refuses parameters that mean something with another one only.
func (p params) only(with string, names ...string) error {
	for _, name := range names {
		if p.has(name) {
			return badRequest(name, "it means something with %s only", with)
		}
	}
	return nil
}

// integer is between least and most; the default when it is not given.
func (p params) integer(name string, def, least, most int) (int, error) {
	if !p.has(name) {
		return def, nil
	}
	n, err := strconv.Atoi(p.text(name))
	if err != nil || n < least || n > most {
		return 0, badRequest(name, "%q is not a number from %d to %d", p.text(name), least, most)
	}
	return n, nil
}

// version is the one that a znode must have; any when it is not given.
func (p params) version(name string) (znode.Version, error) {
	if !p.has(name) {
		return znode.AnyVersion, nil
	}
	n, err := strconv.ParseInt(p.text(name), 10, 32)
	if err != nil || n < -1 {
		return 0, badRequest(name,
			"%q is not a version: the number that stat.version shows, or -1 for any", p.text(name))
	}
	return znode.Version(n), nil
}

// duration is between least and most.
func (p params) duration(name string, def, least, most time.Duration) (time.Duration, error) {
	if !p.has(name) {
		return def, nil
	}
	return parseDuration(name, p.text(name), least, most)
}

func parseDuration(name, text string, least, most time.Duration) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil || d < least || d > most {
		return 0, badRequest(name, "%q is not a time from %v to %v with its unit, such as 500ms, "+
			"30s or 2m", text, least, most)
	}
	return d, nil
}

// zxid is 0 when it is not given.
func (p params) zxid(name string) (znode.Zxid, error) {
	if !p.has(name) {
		return 0, nil
	}
	return parseZxid(name, p.text(name))
}

func parseZxid(name, text string) (znode.Zxid, error) {
	digits, ok := strings.CutPrefix(text, "0x")
	n, err := strconv.ParseUint(digits, 16, 63)
	if !ok || err != nil {
		return 0, badRequest(name, "%q is not a zxid, such as 0x100000002", text)
	}
	return znode.Zxid(n), nil
}
