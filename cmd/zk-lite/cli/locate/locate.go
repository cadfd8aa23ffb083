// Package locate finds the servers of an ensemble, and their HTTP API, by the address of a ZooKeeper port: a server
// that is asked there in HTTP says where its HTTP port is, and that lists the members. What was found is remembered for
// the time when the server does not answer, and used then only if another one proves to be of the same ensemble.
//
// # Concurrency
//
// Find asks all addresses at once, each on a goroutine; they have ended when it returns.
package locate

import (
	"bufio"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/zk-lite/zk-lite/api/body"
	"github.com/zk-lite/zk-lite/cmd/zk-lite/cli/httpapi"
)

// Server is a server of an ensemble. What it has not published is empty.
type Server struct {
	ID     int    `json:"id"`
	HTTP   string `json:"http,omitempty"`   // http://host:port
	Client string `json:"client,omitempty"` // host:port
}

// Ensemble is what one of its servers has told.
type Ensemble struct {
	ID      string   `json:"ensemble,omitempty"` // empty: it has none yet, or the server is of a release before 1.1
	Servers []Server `json:"servers"`            // the one that has told it first, at the addresses where it was asked
}

// URLs are those of the HTTP API.
func (e *Ensemble) URLs() (list []string) {
	for _, s := range e.Servers {
		if s.HTTP != "" {
			list = append(list, s.HTTP)
		}
	}
	return list
}

// Clients are the addresses of the ZooKeeper ports.
func (e *Ensemble) Clients() (list []string) {
	for _, s := range e.Servers {
		if s.Client != "" {
			list = append(list, s.Client)
		}
	}
	return list
}

// Finder finds ensembles.
type Finder struct {
	TLS    *tls.Config // nil: none
	Memory string      // the file in which to remember; empty: none
	// Note, if not nil, shows that an address does not answer, and which server is asked instead.
	Note func(address string, instead Server)
}

// Patience is how long the servers of addresses that are remembered have to answer before others are asked.
const Patience = 5 * time.Second

// Find returns the ensemble of the servers at these addresses. The error is an *Error.
func (f *Finder) Find(ctx context.Context, addresses []string) (*Ensemble, error) {
	whole, known := ctx, f.Recall(addresses)
	if known != nil {
		var cancel func()
		ctx, cancel = context.WithTimeout(ctx, Patience)
		defer cancel()
	}
	e, err := f.first(ctx, addresses)
	switch {
	case err == nil:
		f.remember(addresses, e)
		return e, nil
	case err.Answered && (known == nil || known.ID == ""):
		f.remember(addresses, &Ensemble{}) // so that it is not asked each time
		return nil, err
	case err.Answered:
		return nil, err
	}
	if e := f.Others(whole, addresses); e != nil {
		return e, nil
	}
	return nil, err
}

// Others returns the ensemble by a server that those at the addresses, which do not answer, have named before; nil if
// there is none, or it is of another ensemble now.
func (f *Finder) Others(ctx context.Context, addresses []string) *Ensemble {
	known := f.Recall(addresses)
	if known == nil || known.ID == "" {
		return nil
	}
	for _, s := range known.Servers {
		if s.HTTP == "" || slices.Contains(addresses, s.Client) {
			continue
		}
		e, err := f.servers(ctx, s.HTTP, s.Client, known.ID)
		if err != nil || e.ID != known.ID {
			continue
		}
		if f.Note != nil {
			f.Note(key(addresses), e.Servers[0])
		}
		f.remember(addresses, e)
		return e
	}
	return nil
}

// Error reports that no server at the addresses has told its ensemble.
type Error struct {
	Answered bool // one has answered something else
	Err      error
}

func (e *Error) Error() string { return e.Err.Error() }
func (e *Error) Unwrap() error { return e.Err }

// first asks all addresses at once, and returns the first answer.
func (f *Finder) first(ctx context.Context, addresses []string) (*Ensemble, *Error) {
	ctx, cancel := context.WithCancel(ctx)
	found := make(chan *Ensemble, len(addresses))
	failed := make(chan *Error, len(addresses))
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	for _, address := range addresses {
		wg.Go(func() {
			if e, err := f.at(ctx, address); err != nil {
				failed <- err
			} else {
				found <- e
			}
		})
	}
	var last *Error
	for range addresses {
		select {
		case e := <-found:
			return e, nil
		case err := <-failed:
			if last == nil || err.Answered { // it says more
				last = err
			}
		}
	}
	return nil, last
}

// at asks the server at the address of a ZooKeeper port.
func (f *Finder) at(ctx context.Context, address string) (*Ensemble, *Error) {
	base, ensemble, err := f.redirected(ctx, address)
	if err != nil {
		return nil, err
	}
	e, failed := f.servers(ctx, base, address, ensemble)
	switch {
	case failed != nil:
		return nil, &Error{false, fmt.Errorf("the HTTP API of %s: %w", address, failed)}
	case e.ID != "" && e.ID != ensemble:
		return nil, &Error{true, fmt.Errorf("%s sends HTTP clients to %s, which is of another ensemble: name the "+
			"address with --http", address, base)}
	}
	return e, nil
}

// wantsTLS is the error of a port with TLS, of zk-lite or ZooKeeper, that was asked without.
const wantsTLS = "%s speaks TLS: give --tls-ca, and --tls-cert if it asks for one"

// maxHead bounds what is read of an answer at a ZooKeeper port.
const maxHead = 8 << 10

// ensembleHeader has the ensemble's id in hexadecimal (api/zk).
const ensembleHeader = "Zk-Ensemble"

// redirected returns where the server at a ZooKeeper port sends HTTP clients, and its ensemble.
func (f *Finder) redirected(ctx context.Context, address string) (base, ensemble string, _ *Error) {
	scheme := "http"
	if f.TLS != nil {
		scheme = "https"
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, scheme+"://"+address+"/", http.NoBody)
	if err != nil {
		return "", "", &Error{true, err}
	}
	t := &http.Transport{TLSClientConfig: f.TLS, DisableKeepAlives: true, MaxResponseHeaderBytes: maxHead}
	resp, err := t.RoundTrip(req)
	if err != nil {
		return "", "", unanswered(ctx, address, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusTemporaryRedirect {
		line, _ := bufio.NewReader(io.LimitReader(resp.Body, maxHead)).ReadString('\n')
		if strings.Contains(line, "speaks TLS") {
			return "", "", &Error{true, fmt.Errorf(wantsTLS, address)}
		}
		return "", "", &Error{true, fmt.Errorf("%s does not say where its HTTP API is: %q; --http names it", address,
			cmp.Or(strings.TrimSpace(line), resp.Status))}
	}
	at, err := resp.Location()
	if err != nil || at.Hostname() == "" || at.Scheme != "http" && at.Scheme != "https" {
		return "", "", &Error{true, fmt.Errorf("%s sends HTTP clients to %q", address, resp.Header.Get("Location"))}
	}
	if f.TLS != nil && at.Scheme == "http" && !isLoopback(at) {
		return "", "", &Error{true, fmt.Errorf("%s has its HTTP API at %s, without TLS: name it with --http if "+
			"that is what you want", address, at.Host)}
	}
	return at.Scheme + "://" + at.Host, resp.Header.Get(ensembleHeader), nil
}

func isLoopback(u *url.URL) bool {
	ip := net.ParseIP(u.Hostname())
	return u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
}

// unanswered is the error of an address without an answer in HTTP.
func unanswered(ctx context.Context, address string, err error) *Error {
	var op *net.OpError
	var unfit *tls.CertificateVerificationError
	var plain tls.RecordHeaderError
	switch {
	case errors.As(err, &op) && op.Op == "dial":
		var call *os.SyscallError
		if errors.As(err, &call) {
			err = call.Err
		}
		return &Error{false, err}
	case ctx.Err() != nil:
		return &Error{false, ctx.Err()}
	case errors.As(err, &unfit), errors.As(err, &op) && op.Op == "remote error":
		return &Error{true, err}
	case errors.As(err, &plain), strings.Contains(err.Error(), "HTTP response to HTTPS client"):
		return &Error{true, fmt.Errorf("%s does not speak TLS: name the port with TLS, or leave out --tls", address)}
	case strings.Contains(err.Error(), `"\x15\x03`):
		return &Error{true, fmt.Errorf(wantsTLS, address)}
	}
	return &Error{true, fmt.Errorf("%s does not say where its HTTP API is: it is ZooKeeper, or a zk-lite before 1.1; "+
		"--http names it", address)}
}

// servers asks the HTTP API at a URL for the servers. client is the ZooKeeper port of the one that answers.
func (f *Finder) servers(ctx context.Context, base, client, ensemble string) (*Ensemble, error) {
	patience := Patience
	if end, ok := ctx.Deadline(); ok {
		patience = time.Until(end)
	}
	var list body.Servers
	r := &httpapi.Request{Method: http.MethodGet, Target: "/v1/servers", Repeatable: true}
	if err := httpapi.New([]string{base}, patience, f.TLS).JSON(ctx, r, &list); err != nil {
		return nil, err
	}
	e := &Ensemble{ID: list.Ensemble, Servers: []Server{{list.Server, base, client}}}
	scheme, _, _ := strings.Cut(base, "://")
	for _, s := range list.Servers[:min(len(list.Servers), maxServers)] {
		if s.ID == list.Server {
			continue
		}
		other := Server{ID: s.ID, Client: s.Client}
		if s.HTTP != "" {
			other.HTTP = scheme + "://" + s.HTTP
		}
		e.Servers = append(e.Servers, other)
	}
	return e, nil
}
