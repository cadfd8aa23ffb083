// Package httpapi sends requests to the HTTP API of an ensemble. It goes on to the next
// server when one is down or does not serve, waits as long as a server asks it to, and
// distinguishes requests that have failed from those that may have happened. It does not
// depend on the command line or on the meaning of the resources.
//
// # Concurrency
//
// A Client may be used from any goroutine. It has no goroutine of its own; a request in
// progress has a timer, which ends with the answer's body.
package httpapi

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// continueTimeout is how long the content of a request waits for the server to want it:
// one that does not take the request says so before.
const continueTimeout = 5 * time.Second

// Client asks servers. It must not be changed while it is used.
type Client struct {
	// URLs are those of the servers: http://host:port. They are tried in order.
	URLs []string
	// User and Password are sent as HTTP Basic unless User is empty.
	User, Password string
	// Token is sent as a bearer token, without a User. Without both, a server on this machine may name the file
	// with the token of its administrator.
	Token string
	// Timeout is how long to try, and how long to wait while nothing moves.
	Timeout time.Duration

	transport http.RoundTripper
	local     map[string]string // tokens of servers on this machine, as far as LocalAdministrator has found them
}

// New returns a client of the servers at these URLs. secure is for https; nil: the system's authorities.
func New(urls []string, timeout time.Duration, secure *tls.Config) *Client {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.ExpectContinueTimeout = continueTimeout
	t.DisableCompression = true // what is saved is what was sent
	t.DisableKeepAlives = true  // a command asks a few things and ends
	t.TLSClientConfig = secure
	return &Client{URLs: urls, Timeout: timeout, transport: t}
}

// ParseURLs reads a list, with commas between, of http://host:port, https://host:port
// or host:port.
func ParseURLs(text string) (list []string, err error) {
	for item := range strings.SplitSeq(text, ",") {
		item = strings.TrimSpace(item)
		if item != "" && !strings.Contains(item, "://") {
			item = "http://" + item
		}
		u, err := url.Parse(item)
		switch {
		case err != nil || u.Hostname() == "" || u.Scheme != "http" && u.Scheme != "https",
			u.RawQuery != "", u.Fragment != "", u.Opaque != "":
			return nil, fmt.Errorf("%q is not an address of HTTP, as in http://127.0.0.1:8080", item)
		case u.User != nil:
			return nil, fmt.Errorf("the URL of %s has credentials in it; they have their own place", u.Host)
		}
		list = append(list, strings.TrimRight(item, "/"))
	}
	return list, nil
}

// LocalAdministrator has the client prove to servers on this machine that it is their administrator, if it can read
// their tokens, also where they answer anyone, but tell an administrator more.
func (c *Client) LocalAdministrator(ctx context.Context) {
	if c.User != "" || c.Token != "" {
		return
	}
	found := map[string]string{}
	r := &Request{Method: http.MethodGet, Target: "/v1/expired-sessions?limit=1", Repeatable: true}
	for _, at := range c.URLs {
		proof := &credential{local: true}
		resp, _, err := c.attempt(ctx, at, r, c.Timeout/time.Duration(len(c.URLs)), proof)
		if err != nil {
			continue // what it is for will say so, if it matters
		}
		resp.Body.Close()
		found[at] = proof.token
	}
	c.local = found
}

// only is a client of one of the servers.
func (c *Client) only(at string) *Client {
	one := *c
	one.URLs = []string{at}
	return &one
}

// Each calls f with a client of each server alone, until it returns true.
func (c *Client) Each(f func(*Client) bool) {
	for _, at := range c.URLs {
		if f(c.only(at)) {
			return
		}
	}
}

const (
	// tokenHeader is where a server on this machine says which file makes its reader an administrator.
	tokenHeader = "Zk-Token-File"
	// tokenFile is the name that such a file has.
	tokenFile = "admin.token"
	// maxToken bounds what is read of it.
	maxToken = 1 << 10
)

// localToken is the token that a server on this machine asks for, if this process can read it. Any process may listen
// there and choose the file, so the file must name this port. Without a token, the error is why the file is of no use;
// nil: none is meant.
func localToken(at string, refused *http.Response) (token string, err error) {
	path := refused.Header.Get(tokenHeader)
	u, err := url.Parse(at)
	if path == "" || err != nil || filepath.Base(path) != tokenFile {
		return "", nil
	}
	if ip := net.ParseIP(u.Hostname()); u.Hostname() != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return "", nil
	}
	text, err := readToken(path)
	if err != nil {
		return "", fmt.Errorf("the server's token cannot be used: %w", err)
	}
	token, port, _ := strings.Cut(text, "\n")
	if strings.TrimSpace(port) != u.Port() || token == "" {
		return "", fmt.Errorf("the server's token cannot be used: %s is not for port %s", path, u.Port())
	}
	return token, nil
}

// readToken reads a file that is its owner's alone.
func readToken(path string) (string, error) {
	info, err := os.Lstat(path)
	switch {
	case err != nil:
		return "", err
	case !info.Mode().IsRegular():
		return "", fmt.Errorf("%s is no regular file", path)
	case info.Mode().Perm()&0o077 != 0:
		return "", fmt.Errorf("%s can be read by others", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxToken))
	return string(text), err
}
