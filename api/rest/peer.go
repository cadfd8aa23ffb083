package rest

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/server"
)

// A page of one server shows what others know: a server passes a request with ?server=N on to server N, with what the
// client has proved itself by in the header Authorization. Server N decides for itself what it answers.

const (
	// HeaderForwarded marks what a server passes on. The address that it comes from proves nothing then.
	HeaderForwarded = "Zk-Forwarded"
	peerTimeout     = 5 * time.Second
	maxPeerAnswer   = 16 << 20
)

// Anywhere returns the Route with the parameter server.
func (r Route) Anywhere() Route {
	r.Params = append(r.Params, "server")
	r.anywhere = true
	return r
}

// passOn asks another server if the request is for one. done says that it has answered.
func (q *Request) passOn(rt *Route) (done bool, err error) {
	if !rt.anywhere || !q.Query.Has("server") {
		return false, nil
	}
	n, err := q.Query.Integer("server", 0, 1, int(state.MaxServerID))
	if err != nil || state.ServerID(n) == q.Core.Server.Config().ID {
		return false, err
	}
	address := ""
	q.View(func(v *server.View) {
		if m, there := v.Machine().Members()[state.ServerID(n)]; there {
			address = m.HTTP
		}
	})
	if address == "" {
		return false, &Problem{Status: http.StatusNotFound, Title: "no such server", Param: "server",
			Detail: fmt.Sprintf("server: there is no server %d with an HTTP port that this one reaches", n),
			Hint:   "GET /v1/servers lists them"}
	}
	return true, q.ask(n, address)
}

// ask passes the request on to an address, and its answer back.
func (q *Request) ask(n int, address string) error {
	values := url.Values{}
	for name, v := range q.Query.Values {
		if name != "server" {
			values[name] = v
		}
	}
	scheme := "http"
	if q.secure() {
		scheme = "https"
	}
	ctx, cancel := context.WithTimeout(q.Context, peerTimeout)
	defer cancel()
	target := scheme + "://" + address + q.HTTP.URL.EscapedPath() + "?" + values.Encode()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, target, http.NoBody)
	if err != nil {
		return err
	}
	if credentials := q.HTTP.Header.Get("Authorization"); credentials != "" {
		req.Header.Set("Authorization", credentials)
	}
	req.Header.Set(HeaderForwarded, "1")
	req.Header.Set("Via", "1.1 zk-lite") // no request of this machine: see proxies
	resp, err := peers.Do(req)
	if err != nil {
		return noAnswer(n, err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxPeerAnswer))
	if err != nil {
		return noAnswer(n, err)
	}
	for _, name := range []string{HeaderServer, HeaderZxid, HeaderLeader} {
		q.W.Header().Set(name, resp.Header.Get(name))
	}
	q.SendBytes(resp.StatusCode, resp.Header.Get("Content-Type"), body)
	return nil
}

// peers follows nobody elsewhere, and asks no proxy.
var peers = &http.Client{
	Transport:     &http.Transport{MaxIdleConnsPerHost: 2, IdleConnTimeout: 30 * time.Second},
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

func noAnswer(n int, err error) error {
	return &Problem{Status: http.StatusBadGateway, Title: "the other server does not answer", Param: "server",
		Detail: fmt.Sprintf("server: server %d does not answer: %v", n, err), Hint: "try again, or ask it yourself"}
}
