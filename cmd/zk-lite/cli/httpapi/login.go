package httpapi

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// Login is how a browser on this machine logs in at a server.
type Login struct {
	URL       string // of the server
	Token     string // empty: there is none
	TokenFile string // where the server's local administrator finds it; empty: there is none
	NoToken   error  // why that file is of no use; nil: it is of use, or there is none
}

// Login finds the first server that answers, and the token of the client or, if it proves no other identity, that of
// the server's local administrator.
func (c *Client) Login(ctx context.Context) (*Login, error) {
	r := &Request{Method: http.MethodGet, Target: "/v1/identity", Repeatable: true}
	resp, err := c.Do(ctx, r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	l := &Login{URL: strings.TrimSuffix(resp.Request.URL.String(), r.Target), Token: c.Token}
	if c.Token == "" && c.User == "" {
		l.TokenFile = resp.Header.Get(tokenHeader)
		l.Token, l.NoToken = localToken(l.URL, resp)
	}
	return l, nil
}

// Dashboard is the address of the server's dashboard.
func (l *Login) Dashboard() string { return l.URL + "/ui/" }

// Page is a page that leads to the dashboard, with the token in the address's fragment: browsers send that to no
// server, and the dashboard removes it. It leaves no entry in the browser's history.
func (l *Login) Page() []byte {
	to, err := json.Marshal(l.Dashboard() + "#login=" + url.QueryEscape(l.Token)) // escapes what could end the script
	if err != nil {
		panic(fmt.Sprintf("httpapi: invariant broken: %v", err)) // a string can be encoded
	}
	return fmt.Appendf(nil, `<!doctype html>
<meta charset="utf-8"><meta name="referrer" content="no-referrer"><title>zk-lite</title>
<script>location.replace(%s)</script>
`, to)
}
