package httpapi

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"
	"time"
)

// ErrUnknown reports that a request was sent and its answer lost: what it asked for may or
// may not have happened.
var ErrUnknown = errors.New("the answer was lost: it may or may not have happened")

// Problem is a server's reason for not doing a request (RFC 9457).
type Problem struct {
	URL        string        `json:"-"` // the server's
	Status     int           `json:"status"`
	Title      string        `json:"title"`
	Detail     string        `json:"detail"`
	Name       string        `json:"error"` // ZooKeeper's of the error, such as BADVERSION; may be empty
	Hint       string        `json:"hint"`  // what to do; may be empty
	RetryAfter time.Duration `json:"-"`     // 0: it is no use to try again
	NoToken    error         `json:"-"`     // why a local server's token is of no use; nil: none is meant

	elsewhere bool // it is no use to try again at this server
}

// Error is what has happened, and what to do.
func (p *Problem) Error() string {
	text := p.Detail
	if text == "" {
		text = p.Title
	}
	if p.Hint != "" && !strings.Contains(p.Hint, "/docs") { // a page of the server is no help in a terminal
		text += "; " + p.Hint
	}
	return text
}

// UnreachableError reports that no server could be asked. Nothing has been done.
type UnreachableError struct {
	URLs []string
	Err  error // the last one's reason
	// Refused is true if nobody listens at any of the URLs, or they have no address;
	// else at least one of them did not answer in time.
	Refused bool
}

func (e *UnreachableError) Error() string {
	return fmt.Sprintf("no HTTP API at %s (%v)", strings.Join(e.URLs, ", "), reason(e.Err))
}

func (e *UnreachableError) Unwrap() error { return e.Err }

// reason is the error of the system call or the resolver, without what wraps it.
func reason(err error) error {
	var dns *net.DNSError
	if errors.As(err, &dns) {
		return fmt.Errorf("%s: %s", dns.Name, dns.Err)
	}
	var call *os.SyscallError
	if errors.As(err, &call) {
		return call.Err
	}
	var at *url.Error
	if errors.As(err, &at) {
		return at.Err
	}
	return err
}

// foreign is an answer that is not the HTTP API's.
type foreignError struct{ url, status string }

func (e *foreignError) Error() string {
	return fmt.Sprintf("%s answers %q, and not as the HTTP API of zk-lite does", e.url, e.status)
}
