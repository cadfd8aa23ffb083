package rest

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// checkOrigin refuses what a page of another site asks in its visitor's name, and
// answers the questions that browsers ask before (CORS). done says that it did.
func (q *Request) checkOrigin(res resource) (done bool, err error) {
	h := q.W.Header()
	preflight := q.HTTP.Method == http.MethodOptions && res != nil
	allowedOrigin := false
	if origin := q.HTTP.Header.Get("Origin"); origin != "" && !sameOrigin(origin, q.HTTP.Host) {
		h.Add("Vary", "Origin")
		allowed := q.Core.Config.Origins
		if !slices.Contains(allowed, origin) && !slices.Contains(allowed, "*") {
			return false, &Problem{
				Status: http.StatusForbidden, Title: "foreign origin", Param: "Origin",
				Detail: "Origin: pages of " + origin + " may not call this server",
				Hint:   "its configuration can allow them",
			}
		}
		allowedOrigin = true
		h.Set("Access-Control-Allow-Origin", origin)
		h.Set("Access-Control-Expose-Headers", strings.Join([]string{
			HeaderZxid, HeaderConsistency, HeaderServer, HeaderLeader, HeaderVersion,
			HeaderReplayed, "ETag", "Location", "Retry-After",
		}, ", "))
		if preflight {
			h.Set("Access-Control-Allow-Methods", res.allow())
			h.Set("Access-Control-Allow-Headers", strings.Join([]string{
				"Authorization", "Content-Type", HeaderSession, HeaderKey, "If-Match",
				"If-None-Match", "Last-Event-ID",
			}, ", "))
			h.Set("Access-Control-Max-Age", "600")
		}
	}
	// Some requests of other sites' pages have no Origin, but browsers say of all from where they come.
	if !allowedOrigin && strings.EqualFold(q.HTTP.Header.Get("Sec-Fetch-Site"), "cross-site") {
		return false, &Problem{
			Status: http.StatusForbidden, Title: "foreign origin", Param: "Sec-Fetch-Site",
			Detail: "Sec-Fetch-Site: pages of other sites may not call this server",
			Hint:   "open the page by its address; the configuration can allow origins (admin.allowedOrigins)",
		}
	}
	if preflight {
		h.Set("Allow", res.allow())
		q.Begin(http.StatusNoContent)
	}
	return preflight, nil
}

// sameOrigin reports whether an Origin is this server under the name by which the
// client called it.
func sameOrigin(origin, host string) bool {
	u, err := url.Parse(origin)
	return err == nil && u.Host != "" && strings.EqualFold(u.Host, host)
}
