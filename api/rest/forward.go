package rest

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/server"
)

// A page of one server shows others, too: a server forwards a request with ?server=N to server N, through its
// peer port, with what the client has proved. Members trust each other in that (ADR 0024); server N decides what
// it answers.

const (
	headerClient  = "Zk-Client" // a client as JSON
	memberTimeout = 5 * time.Second
	// dialTimeout is shorter, to tell a server that cannot be reached from one that is silent.
	dialTimeout = 4 * time.Second
	maxAnswer   = 16 << 20 // of another server, in bytes
	// connsPerMember bounds what viewers can take of a peer port's connections.
	connsPerMember = 8
)

// client is a client as its connection shows it.
type client struct {
	Address     string `json:"address"`
	Certificate []byte `json:"certificate,omitempty"` // DER
	// Local is set for a client that has the local administrator's token of the server that it has asked.
	Local bool `json:"local,omitempty"`

	cert *x509.Certificate // that of Certificate
}

// member is a connection that another server of the ensemble has made.
type member interface{ ServerID() uint64 }

// fromMember reports whether another server has forwarded the request.
func fromMember(r *http.Request) bool {
	_, is := r.Context().Value(connKey{}).(member)
	return is
}

// clientOf returns the client: as the connection shows it, or as the server describes it that has forwarded the
// request.
func clientOf(r *http.Request) (client, error) {
	if fromMember(r) {
		return parseClient(r.Header.Get(headerClient))
	}
	return client{Address: remoteAddress(r.RemoteAddr), cert: certificateOf(r)}, nil
}

func parseClient(text string) (c client, err error) {
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		return client{}, BadRequest(headerClient, "%v", err)
	}
	if c.Certificate != nil {
		if c.cert, err = x509.ParseCertificate(c.Certificate); err != nil {
			return client{}, BadRequest(headerClient, "%v", err)
		}
	}
	return c, nil
}

// Anywhere returns the Route with the parameter server. It takes no body.
func (r Route) Anywhere() Route {
	r.Params = append(r.Params, "server")
	r.anywhere = true
	return r
}

// AtLeader returns the Route answered by the leader, as long as one is known. It takes no body.
func (r Route) AtLeader() Route {
	r.atLeader = true
	return r
}

// forwardToServer has another server answer a request with ?server=, or one for the leader.
func forwardToServer(q *Request) error {
	if q.operation.atLeader {
		return forwardToLeader(q)
	}
	if !q.operation.anywhere || !q.Query.Has("server") {
		return nil
	}
	n, err := q.Query.Integer("server", 0, 1, int(state.MaxServerID))
	if err != nil || state.ServerID(n) == q.Core.Config.ID {
		return err
	}
	var to state.Member
	known := false
	q.View(func(v *server.View) { to, known = v.Machine().Members()[state.ServerID(n)] })
	if !known || q.Core.Config.Dial == nil {
		return &Problem{Status: http.StatusNotFound, Title: "no such server", Param: "server",
			Detail: fmt.Sprintf("server: there is no server %d", n), Hint: "GET /v1/servers lists them"}
	}
	return forward(q, &to)
}

// forwardToLeader does not pass on what another server has passed on: leadership may have changed meanwhile.
func forwardToLeader(q *Request) error {
	var to state.Member
	leader, known := q.Core.Server.Status().Leader, false
	q.View(func(v *server.View) { to, known = v.Machine().Members()[leader] })
	if !known || leader == q.Core.Config.ID || fromMember(q.HTTP) || q.Core.Config.Dial == nil {
		return nil
	}
	return forward(q, &to)
}

// forward sends the request to another server, and its answer to the client.
func forward(q *Request, to *state.Member) error {
	if q.operation.Access == Administrators { // here, where the client can read which file has the token
		if err := refuseOthers(q); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(q.Context, memberTimeout)
	defer cancel()
	req, err := requestFor(ctx, q, to.ID)
	if err != nil {
		return err
	}
	resp, err := q.Core.others.Do(req)
	if err != nil {
		return noAnswer(to, err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return noAnswer(to, err)
	}
	for _, name := range []string{HeaderServer, HeaderZxid, HeaderLeader} {
		q.W.Header().Set(name, resp.Header.Get(name))
	}
	for _, name := range []string{HeaderMaxStale, "Retry-After"} {
		if value := resp.Header.Get(name); value != "" {
			q.W.Header().Set(name, value)
		}
	}
	q.SendBytes(resp.StatusCode, resp.Header.Get("Content-Type"), body)
	return nil
}

// requestFor is the request to server n.
func requestFor(ctx context.Context, q *Request, n state.ServerID) (*http.Request, error) {
	values := url.Values{}
	for name, v := range q.Query.Values {
		if name != "server" {
			values[name] = v
		}
	}
	target := "http://" + strconv.FormatUint(uint64(n), 10) + q.HTTP.URL.EscapedPath() + "?" + values.Encode()
	req, err := http.NewRequestWithContext(ctx, q.operation.Method, target, http.NoBody)
	if err != nil {
		return nil, err
	}
	c := client{
		Address: q.Address,
		Local:   q.local && onThisMachine(q.Address, q.HTTP.Header) && q.Core.knownHost(q.HTTP.Host),
	}
	if cert := certificateOf(q.HTTP); cert != nil {
		c.Certificate = cert.Raw
	}
	text, err := json.Marshal(c)
	if err != nil {
		return nil, err
	}
	req.Header.Set(headerClient, string(text))
	if credentials := q.HTTP.Header.Get("Authorization"); credentials != "" && !q.local {
		req.Header.Set("Authorization", credentials)
	}
	return req, nil
}

// Dial connects to another member's HTTP server.
type Dial func(ctx context.Context, to state.ServerID) (net.Conn, error)

// othersBy makes the client of the other members, whose names are their numbers.
func othersBy(dial Dial) *http.Client {
	return &http.Client{Transport: &http.Transport{
		MaxConnsPerHost: connsPerMember, MaxIdleConnsPerHost: 2, IdleConnTimeout: 30 * time.Second,
		DialContext: func(ctx context.Context, _, address string) (net.Conn, error) {
			host, _, err := net.SplitHostPort(address)
			if err != nil {
				return nil, err
			}
			n, err := strconv.ParseUint(host, 10, 8)
			if err != nil {
				return nil, err
			}
			ctx, cancel := context.WithTimeout(ctx, dialTimeout)
			defer cancel()
			return dial(ctx, state.ServerID(n))
		},
	}}
}

// noAnswer is the problem of a request that another server has not answered.
func noAnswer(to *state.Member, err error) error {
	text, down := rootOf(err, peerAddress(to))
	reason := text
	if down {
		reason = "down: " + text
	}
	return &Problem{Status: http.StatusBadGateway, Title: "the other server does not answer", Param: "server",
		Detail: fmt.Sprintf("server: server %d does not answer: %s", to.ID, text),
		Hint:   "try again, or ask it yourself", Reason: reason, Cause: err.Error()}
}

// peerAddress is the host:port of a member's peer port, as the ensemble knows it.
func peerAddress(m *state.Member) string {
	if m.Addr != "" {
		return m.Addr
	}
	return m.Peer[:max(strings.LastIndexByte(m.Peer, ':'), 0)] // without the port of elections
}

// rootOf describes in few words what is at the root of err, and at which address: the one given, if err has none.
// down is set if nothing there takes connections.
func rootOf(err error, address string) (text string, down bool) {
	root := err
	for next := err; next != nil; next = errors.Unwrap(next) {
		root = next
	}
	if op, ok := errors.AsType[*net.OpError](err); ok {
		down = op.Op == "dial"
		if op.Addr != nil {
			address = op.Addr.String()
		}
	}
	text = root.Error()
	if name, ok := errors.AsType[*net.DNSError](err); ok {
		text, address = name.Err, name.Name
	}
	slow, ok := root.(interface{ Timeout() bool })
	switch {
	case ok && slow.Timeout():
		text = "no answer in time"
	case errors.Is(root, io.EOF), errors.Is(root, io.ErrUnexpectedEOF):
		text = "it has closed the connection"
	}
	if address != "" {
		text += " (" + address + ")"
	}
	return text, down
}
