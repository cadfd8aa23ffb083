package data

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/zk-lite/zk-lite/api/rest"
	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/znode"
)

// A znode's ETag is its mzxid: unlike a version it never comes again, not even when
// the znode is deleted and created.

func etag(mzxid znode.Zxid) string { return `"` + mzxid.String() + `"` }

func versionText(v znode.Version) string { return strconv.Itoa(int(v)) }

// matchesNone reports whether If-None-Match names this mzxid (RFC 9110, 13.1.2).
func matchesNone(q *rest.Request, mzxid znode.Zxid) bool {
	for _, field := range q.HTTP.Header.Values("If-None-Match") {
		for tag := range strings.SplitSeq(field, ",") {
			tag = strings.TrimPrefix(strings.TrimSpace(tag), "W/")
			if tag == "*" || tag == etag(mzxid) {
				return true
			}
		}
	}
	return false
}

// guard puts ?version= and If-Match into a command for the znode at c.Path; they
// are compared where the command is applied.
func guard(q *rest.Request, c *state.Command) (err error) {
	if c.Version, err = q.Query.Version("version"); err != nil {
		return err
	}
	fields := q.HTTP.Header.Values("If-Match")
	if len(fields) == 0 || len(fields) == 1 && strings.TrimSpace(fields[0]) == "*" {
		return nil // "*" asks that it exist, which the command does anyhow
	}
	mzxid, err := parseETag(strings.Join(fields, ","))
	if err != nil {
		return err
	}
	if mzxid != 0 {
		c.Mzxid = mzxid
		return nil
	}
	// In a command 0 means any. Only the znodes that every tree has can have it:
	// until they are changed, and they cannot be deleted.
	switch c.Path {
	case znode.RootPath, znode.SystemPath, znode.QuotaPath:
		if c.Version == znode.AnyVersion {
			c.Version = 0
		}
		return nil
	}
	return rest.Fail(znode.ErrBadVersion, c.Path)
}

func parseETag(text string) (znode.Zxid, error) {
	inner, ok := strings.CutPrefix(strings.TrimSpace(text), `"`)
	inner, closed := strings.CutSuffix(inner, `"`)
	digits, hex := strings.CutPrefix(inner, "0x")
	n, err := strconv.ParseUint(digits, 16, 63)
	if !ok || !closed || !hex || err != nil {
		return 0, rest.BadRequest("If-Match",
			`%q is not one ETag of a znode, such as "0x100000002", or *`, text)
	}
	return znode.Zxid(n), nil
}

// refuse says that a header means nothing here, where its sender relies on it.
func refuse(q *rest.Request, header, why string) error {
	if len(q.HTTP.Header.Values(header)) == 0 {
		return nil
	}
	return rest.BadRequest(header, "%s", why)
}

// onlyIfAbsent reads If-None-Match of a PUT.
func onlyIfAbsent(q *rest.Request) (bool, error) {
	switch fields := q.HTTP.Header.Values("If-None-Match"); {
	case len(fields) == 0:
		return false, nil
	case len(fields) == 1 && strings.TrimSpace(fields[0]) == "*":
		return true, nil
	default:
		p := rest.BadRequest("If-None-Match", "a change takes * only, for a znode that does not exist")
		p.Status = http.StatusBadRequest
		return false, p
	}
}
