package cli

import (
	"cmp"
	"errors"
	"fmt"
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

// authHint is what to do when the servers do not permit something.
const authHint = "give an administrator's credentials, as with --auth digest:super:password; " +
	"if no administrator is configured, run the command on the server's own machine, as the server's user"

// operation completes a command that asks the HTTP API.
func (a *app) operation(
	c *cobra.Command, timeout time.Duration, run func(*cobra.Command, []string, *httpapi.Client) error,
) *cobra.Command {
	a.bindOutput(c)
	a.bindHTTP(c, DefaultHTTP)
	c.Flags().Duration(timeoutFlag, timeout, "give up when a server is silent for so long")
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := a.check(c); err != nil {
			return err
		}
		api, err := a.httpClient()
		if err != nil {
			return err
		}
		return run(c, args, api)
	}
	return c
}

// bindHTTP defines the flags that name servers by their HTTP API, and who asks.
func (a *app) bindHTTP(c *cobra.Command, urls string) {
	f := c.Flags()
	f.StringVar(&a.http, "http", cmp.Or(os.Getenv(httpVariable), urls),
		"HTTP API of the servers, `URL[,URL]`, tried in order ["+httpVariable+"]")
	f.StringArrayVar(&a.auth, "auth", nil, "prove an identity, `digest:user:password`")
	a.bindPasswordFile(c)
	a.tls.Bind(f)
	f.StringVar(&a.tokenFile, "token-file", "", "`file` with a bearer token in its first line")
}

// BindHTTP defines the flags of a command of another package that asks the HTTP API. open, when they are parsed,
// returns the client: of the server at url where the flags name none.
func BindHTTP(c *cobra.Command, timeout time.Duration) (open func(url string) (*httpapi.Client, error)) {
	a := &app{timeout: timeout}
	a.bindHTTP(c, "")
	return func(url string) (*httpapi.Client, error) {
		a.http = cmp.Or(a.http, url)
		return a.httpClient()
	}
}

func (a *app) httpClient() (*httpapi.Client, error) {
	urls, err := httpapi.ParseURLs(a.http)
	if err != nil {
		return nil, usagef("--http: %w; --auth is for credentials", err)
	}
	cfg, err := a.tls.Config()
	if err != nil {
		return nil, err
	}
	api := httpapi.New(urls, a.timeout, cfg)
	if a.tokenFile != "" {
		f, err := os.Open(a.tokenFile)
		if err != nil {
			return nil, usagef("--token-file: %w", err)
		}
		defer f.Close()
		if api.Token, err = firstLine(f, "--token-file "+a.tokenFile); err != nil {
			return nil, err
		}
	}
	switch len(a.auth) {
	case 0:
		return api, nil
	case 1:
		if a.tokenFile != "" {
			return nil, usagef("--auth, --token-file: over HTTP a request has one identity")
		}
	default:
		return nil, usagef("--auth: over HTTP a request has one identity, and %d are given", len(a.auth))
	}
	scheme, data, err := a.credentials(a.auth[0])
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

// httpMessage explains an error of the HTTP API; it is empty if err is not one.
func httpMessage(err error) string {
	var p *httpapi.Problem
	if errors.As(err, &p) && (p.Status == http.StatusUnauthorized || p.Status == http.StatusForbidden) {
		if p.NoToken != nil {
			return fmt.Sprintf("%s; %v; run the command as the server's user", p.Detail, p.NoToken)
		}
		return fmt.Sprintf("%s; %s", p.Detail, authHint)
	}
	var none *httpapi.UnreachableError
	if errors.As(err, &none) {
		return fmt.Sprintf("%v; start a server with `zk-lite dev`, or name the HTTP address of "+
			"another with --http or %s", none, httpVariable)
	}
	return ""
}

// httpExitCode is the exit code for an error of the HTTP API.
func httpExitCode(err error) (code int, known bool) {
	var none *httpapi.UnreachableError
	var p *httpapi.Problem
	switch {
	case errors.Is(err, httpapi.ErrUnknown):
		return ExitUnknown, true
	case errors.As(err, &none):
		return ExitNoServer, true
	case !errors.As(err, &p):
		return 0, false
	case p.RetryAfter > 0:
		return ExitNoServer, true
	}
	switch p.Status {
	case http.StatusBadRequest:
		return ExitUsage, true
	case http.StatusNotFound:
		return ExitNoNode, true
	case http.StatusConflict:
		return ExitConflict, true
	}
	return ExitFailed, true
}
