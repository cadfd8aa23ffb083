package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/zk-lite/zk-lite/api/body"
	"github.com/zk-lite/zk-lite/cmd/zk-lite/cli/httpapi"
	"github.com/zk-lite/zk-lite/cmd/zk-lite/cli/locate"
)

// defaultHTTP is asked where no server is named, and none at DefaultServer says where its HTTP API is.
const defaultHTTP = "http://127.0.0.1:8080"

// httpVariable is the environment variable for --http.
const httpVariable = "ZK_LITE_HTTP"

// operation completes a command that asks the HTTP API.
func (g *globals) operation(
	c *cobra.Command, timeout time.Duration, run func(*cobra.Command, []string, *httpapi.Client) error,
) *cobra.Command {
	g.output.bind(c)
	g.bindContext(c)
	g.bindHTTP(c)
	c.Flags().DurationVar(&g.timeout, timeoutFlag, timeout, "give up when a server is silent for so long")
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := errors.Join(g.settle(c), g.check()); err != nil {
			return err
		}
		api, err := g.httpClient(c.Context())
		if err != nil {
			return err
		}
		return run(c, args, api)
	}
	return c
}

// httpUsage explains the flag --http.
const httpUsage = "HTTP API of the servers, `URL[,URL]`, tried in order; default: found by --server [" +
	httpVariable + "]"

// bindHTTP defines the flags that name servers by their HTTP API, and who asks.
func (g *globals) bindHTTP(c *cobra.Command) {
	f := c.Flags()
	if f.Lookup(serverFlag) == nil { // for the settings of a server it is another one
		g.bindServer(c)
	}
	f.StringVar(&g.http, httpFlag, os.Getenv(httpVariable), httpUsage)
	f.StringArrayVar(&g.auth, "auth", nil, "prove an identity, `digest:user:password`")
	g.bindPasswordFile(c)
	g.tls.Bind(f)
	f.StringVar(&g.tokenFile, "token-file", "", "`file` with a bearer token in its first line")
}

// BindHTTP defines the flags of a command of another package that asks the HTTP API. open, when they are parsed,
// returns the client: of the server at url where the flags name none; without a url, of that of the context in use.
func BindHTTP(
	c *cobra.Command, timeout time.Duration,
) (open func(ctx context.Context, url string) (*httpapi.Client, error)) {
	g := &globals{timeout: timeout}
	if c.Flags().Lookup(serverFlag) == nil {
		g.bindContext(c)
	}
	g.bindHTTP(c)
	return func(ctx context.Context, url string) (*httpapi.Client, error) {
		if url == "" {
			if err := g.settle(c); err != nil {
				return nil, err
			}
		}
		g.http = cmp.Or(g.http, url)
		return g.httpClient(ctx)
	}
}

// finder finds the servers and the HTTP API of an ensemble by the address of one server.
func (g *globals) finder() (*locate.Finder, error) {
	secure, err := g.tls.Config()
	if err != nil {
		return nil, err
	}
	return &locate.Finder{TLS: secure, Memory: locate.DefaultMemory(), Note: func(address string, s locate.Server) {
		fmt.Fprintf(os.Stderr, "zk-lite: %s does not answer; asking server %d (%s), which it has named before\n",
			address, s.ID, s.HTTP)
	}}, nil
}

// urls are those of the HTTP API: as they are given, or as a server says.
func (g *globals) urls(ctx context.Context) ([]string, error) {
	if g.http != "" {
		urls, err := httpapi.ParseURLs(g.http)
		if err != nil {
			return nil, usagef("--http: %w; --auth is for credentials", err)
		}
		return urls, nil
	}
	ctx, cancel := context.WithTimeout(ctx, g.timeout)
	defer cancel()
	f, err := g.finder()
	if err != nil {
		return nil, err
	}
	addresses, err := addressesOf(ctx, g.server)
	if err != nil {
		return nil, err
	}
	e, err := f.Find(ctx, addresses)
	var none *locate.Error
	switch {
	case err == nil:
		return e.URLs(), nil
	case g.server == DefaultServer:
		return []string{defaultHTTP}, nil
	case errors.As(err, &none) && none.Answered:
		return nil, &noServerError{err.Error()}
	}
	return nil, noServerAt(g.server, err)
}

func (g *globals) httpClient(ctx context.Context) (*httpapi.Client, error) {
	urls, err := g.urls(ctx)
	if err != nil {
		return nil, err
	}
	cfg, err := g.tls.Config()
	if err != nil {
		return nil, err
	}
	api := httpapi.New(urls, g.timeout, cfg)
	if g.tokenFile != "" {
		f, err := os.Open(g.tokenFile)
		if err != nil {
			return nil, usagef("--token-file: %w", err)
		}
		defer f.Close()
		if api.Token, err = firstLine(f, "--token-file "+g.tokenFile); err != nil {
			return nil, err
		}
	}
	switch len(g.auth) {
	case 0:
		return api, nil
	case 1:
		if g.tokenFile != "" {
			return nil, usagef("--auth, --token-file: over HTTP a request has one identity")
		}
	default:
		return nil, usagef("--auth: over HTTP a request has one identity, and %d are given", len(g.auth))
	}
	scheme, data, err := g.credentials(g.auth[0])
	if err != nil {
		return nil, err
	}
	user, password, ok := strings.Cut(data, ":")
	if scheme != "digest" || !ok || user == "" {
		return nil, usagef("--auth: want digest:user:password; over HTTP there is no other scheme")
	}
	api.User, api.Password = user, password
	return api, nil
}

// askEach gets a resource of each server, through one of them; what some have answered is returned with the error of
// those that have not. Targets have a query.
func askEach[T any](ctx context.Context, api *httpapi.Client, target string) (all []T, err error) {
	get := func(target string, v any) error {
		return api.JSON(ctx, &httpapi.Request{Method: http.MethodGet, Target: target, Repeatable: true}, v)
	}
	var list body.Servers
	if err := get("/v1/servers", &list); err != nil {
		return nil, err
	}
	answers, errs := make([]T, len(list.Servers)), make([]error, len(list.Servers))
	var wg sync.WaitGroup
	for i, s := range list.Servers {
		wg.Go(func() { errs[i] = get(fmt.Sprintf("%s&server=%d", target, s.ID), &answers[i]) })
	}
	wg.Wait()
	silent := &silentError{}
	for i := range answers {
		var p *httpapi.Problem
		switch {
		case errs[i] == nil:
			all = append(all, answers[i])
		case errors.As(errs[i], &p) && p.Reason != "":
			silent.servers = append(silent.servers, fmt.Sprintf("server %d: %s", list.Servers[i].ID, p.Reason))
		default:
			return all, errs[i]
		}
	}
	if len(silent.servers) > 0 {
		return all, silent
	}
	return all, nil
}

// silentError reports servers that another one could not ask, each with the reason.
type silentError struct{ servers []string }

func (e *silentError) Error() string { return "without " + strings.Join(e.servers, "; ") }

// pollEvery is the time between two requests of until.
const pollEvery = 200 * time.Millisecond

// until calls look until that reports done, at most for the timeout. It reports whether
// it was done in time.
func (g *globals) until(ctx context.Context, look func(context.Context) (done bool, err error)) (bool, error) {
	limit := time.NewTimer(g.timeout)
	defer limit.Stop()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		if done, err := look(ctx); done || err != nil {
			return done, err
		}
		select {
		case <-tick.C:
		case <-limit.C:
			return false, nil
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
}
