package httpapi

import (
	"crypto/tls"
	"fmt"
	"net/http"
	"net/url"
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
