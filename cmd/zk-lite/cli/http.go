package cli

import (
	"cmp"
	"context"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/zk-lite/zk-lite/cmd/zk-lite/cli/httpapi"
)

// DefaultHTTP is the default of --http.
const DefaultHTTP = "http://127.0.0.1:8080"

// httpVariable is the environment variable that replaces DefaultHTTP.
const httpVariable = "ZK_LITE_HTTP"

// operation completes a command that asks the HTTP API.
func (g *globals) operation(
	c *cobra.Command, timeout time.Duration, run func(*cobra.Command, []string, *httpapi.Client) error,
) *cobra.Command {
	g.output.bind(c)
	g.bindHTTP(c, DefaultHTTP)
	c.Flags().DurationVar(&g.timeout, timeoutFlag, timeout, "give up when a server is silent for so long")
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := g.check(); err != nil {
			return err
		}
		api, err := g.httpClient()
		if err != nil {
			return err
		}
		return run(c, args, api)
	}
	return c
}

// httpUsage explains the flag --http.
const httpUsage = "HTTP API of the servers, `URL[,URL]`, tried in order [" + httpVariable + "]"

func defaultHTTP(urls string) string { return cmp.Or(os.Getenv(httpVariable), urls) }

// bindHTTP defines the flags that name servers by their HTTP API, and who asks.
func (g *globals) bindHTTP(c *cobra.Command, urls string) {
	f := c.Flags()
	f.StringVar(&g.http, "http", defaultHTTP(urls), httpUsage)
	f.StringArrayVar(&g.auth, "auth", nil, "prove an identity, `digest:user:password`")
	g.bindPasswordFile(c)
	g.tls.Bind(f)
	f.StringVar(&g.tokenFile, "token-file", "", "`file` with a bearer token in its first line")
}

// BindHTTP defines the flags of a command of another package that asks the HTTP API. open, when they are parsed,
// returns the client: of the server at url where the flags name none.
func BindHTTP(c *cobra.Command, timeout time.Duration) (open func(url string) (*httpapi.Client, error)) {
	g := &globals{timeout: timeout}
	g.bindHTTP(c, "")
	return func(url string) (*httpapi.Client, error) {
		g.http = cmp.Or(g.http, url)
		return g.httpClient()
	}
}

func (g *globals) httpClient() (*httpapi.Client, error) {
	urls, err := httpapi.ParseURLs(g.http)
	if err != nil {
		return nil, usagef("--http: %w; --auth is for credentials", err)
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

// askEach gets a resource from each server; what some have answered is returned with another's error.
func askEach[T any](ctx context.Context, api *httpapi.Client, target string) (all []T, err error) {
	api.Each(func(one *httpapi.Client) bool {
		var answer T
		r := &httpapi.Request{Method: http.MethodGet, Target: target, Repeatable: true}
		if e := one.JSON(ctx, r, &answer); e != nil {
			err = e
		} else {
			all = append(all, answer)
		}
		return false
	})
	return all, err
}

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
