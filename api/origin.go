package api

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// checkOrigin refuses what a page of another site asks in its visitor's name, and
// answers the questions that browsers ask before (CORS). done says that it did.
func (q *request) checkOrigin(res resource) (done bool, err error) {
	h := q.w.Header()
	preflight := q.http.Method == http.MethodOptions && res != nil
	if origin := q.http.Header.Get("Origin"); origin != "" && !sameOrigin(origin, q.http.Host) {
		h.Add("Vary", "Origin")
		allowed := q.door.cfg.Origins
		if !slices.Contains(allowed, origin) && !slices.Contains(allowed, "*") {
			return false, &problem{
				Status: http.StatusForbidden, Title: "foreign origin", Param: "Origin",
				Detail: "Origin: pages of " + origin + " may not call this server",
				Hint:   "its configuration can allow them",
			}
		}
		h.Set("Access-Control-Allow-Origin", origin)
		h.Set("Access-Control-Expose-Headers", strings.Join([]string{
			headerZxid, headerConsistency, headerServer, headerLeader, headerVersion,
			headerReplayed, "ETag", "Location", "Retry-After",
		}, ", "))
		if preflight {
			h.Set("Access-Control-Allow-Methods", res.allow())
			h.Set("Access-Control-Allow-Headers", strings.Join([]string{
				"Authorization", "Content-Type", headerSession, headerKey, "If-Match",
				"If-None-Match", "Last-Event-ID",
			}, ", "))
			h.Set("Access-Control-Max-Age", "600")
		}
	}
	if preflight {
		h.Set("Allow", res.allow())
		q.begin(http.StatusNoContent)
	}
	return preflight, nil
}

// sameOrigin reports whether an Origin is this server under the name by which the
// client called it.
func sameOrigin(origin, host string) bool {
	u, err := url.Parse(origin)
	return err == nil && u.Host != "" && strings.EqualFold(u.Host, host)
}
