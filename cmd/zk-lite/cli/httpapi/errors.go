package httpapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/zk-lite/zk-lite/api/body"
)

// ErrUnknown reports that a request was sent and its answer lost: what it asked for may or
// may not have happened.
var ErrUnknown = errors.New("the answer was lost: it may or may not have happened")

// Problem is a server's reason for not doing a request (RFC 9457).
type Problem struct {
	body.Problem
	URL        string        `json:"-"` // the server's
	RetryAfter time.Duration `json:"-"` // 0: it is no use to try again
	NoToken    error         `json:"-"` // why a local server's token is of no use; nil: none is meant

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
	// Refused is true if no one listens at any of the URLs, or they have no address;
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
type foreignError struct {
	url, status string // url is without the scheme, or not
	tls         bool   // it says that it speaks TLS
}

func (e *foreignError) Error() string {
	if e.tls {
		host := strings.TrimPrefix(e.url, "http://")
		return fmt.Sprintf("%s speaks TLS: https://%s, and --tls-ca names the authority of its certificate", host, host)
	}
	return fmt.Sprintf("%s answers %q, and not as the HTTP API of zk-lite does", e.url, e.status)
}

// foreign is the error of an answer that is not the HTTP API's. A port with TLS says so in plain text.
func foreign(at string, resp *http.Response, text []byte) error {
	refused := resp.StatusCode == http.StatusBadRequest
	return &foreignError{at, resp.Status, refused && bytes.Contains(text, []byte("speaks TLS"))}
}

// isRefused reports whether certainly no one listens.
func isRefused(err error) bool {
	var op *net.OpError
	var timeout interface{ Timeout() bool }
	return errors.As(err, &op) && op.Op == "dial" && (!errors.As(err, &timeout) || !timeout.Timeout())
}

// refusal reads an answer that is not what was asked for.
func refusal(at string, r *Request, resp *http.Response) (outcome, error) {
	p := &Problem{URL: at}
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxProblem))
	if err == nil && kind == "application/problem+json" {
		err = json.Unmarshal(text, p)
	}
	p.Status = resp.StatusCode
	seconds, noNumber := strconv.Atoi(resp.Header.Get("Retry-After"))
	switch {
	case (err != nil || p.Title == "") && p.Status >= 500: // a proxy's, perhaps
		return lost, unknown(r, foreign(at, resp, text))
	case err != nil || p.Title == "":
		return answered, foreign(at, resp, text)
	case p.Status == http.StatusGatewayTimeout:
		return lost, unknown(r, p)
	case noNumber == nil && seconds >= 0:
		p.RetryAfter = max(time.Duration(seconds)*time.Second, roundPause)
		return notDone, p
	case p.Status == http.StatusServiceUnavailable: // and it is no use to try again there
		p.RetryAfter, p.elsewhere = roundPause, true
		return notDone, p
	}
	return answered, p
}

// unknown is the error of a request that may have been carried out. What only reads has
// no outcome.
func unknown(r *Request, err error) error {
	if r.Method == http.MethodGet {
		return err
	}
	return fmt.Errorf("%w: %w", ErrUnknown, err)
}
