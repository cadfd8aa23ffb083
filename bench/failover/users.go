package failover

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/zk-lite/zk-lite/bench/load"
	"github.com/zk-lite/zk-lite/client"
)

// user is a client that writes a znode of its own until its context ends.
type user interface {
	Run(ctx context.Context)
	Tally() *load.Tally
}

// Other packages than load define users, too.
const (
	viaWire = iota // load.Writer, which does only what the protocol requires: a foreign client
	viaGo
	viaHTTP
	vias
)

// users opens clients of all kinds. The first is the measured one, at a survivor; the others are at all
// servers.
func (r *runner) users(ctx context.Context, survivors []int) (users [vias][]user, err error) {
	var hosts []string
	for _, i := range survivors {
		hosts = append(hosts, r.ensemble.Hosts[i])
	}
	open := func(via, count int, one func(i int) (user, error)) {
		for i := 0; i < count && err == nil; i++ {
			var u user
			if u, err = one(i); err == nil {
				users[via] = append(users[via], u)
			}
		}
	}
	path := func(kind string, i int) string { return fmt.Sprintf("%s/%s%d", root, kind, i) }
	open(viaWire, 1+r.c.load, func(i int) (user, error) {
		at := hosts
		if i > 0 {
			at = rotated(r.ensemble.Hosts, i)
		}
		return load.NewWriter(ctx, at, path("w", i), 0, r.c.SessionTimeout)
	})
	open(viaGo, r.c.goUsers, func(i int) (user, error) {
		return newGoUser(ctx, rotated(r.ensemble.Hosts, i), path("g", i), r.c.SessionTimeout)
	})
	open(viaHTTP, r.c.web, func(i int) (user, error) {
		return newHTTPUser(ctx, rotated(r.ensemble.HTTP, i), path("h", i), r.c.SessionTimeout)
	})
	if err != nil { // those that are open have nothing to do
		ended, cancel := context.WithCancel(ctx)
		cancel()
		for _, u := range slices.Concat(users[:]...) {
			u.Run(ended)
		}
	}
	return users, err
}

// goUser is a program with package client.
type goUser struct {
	client *client.Client
	tally  *load.Tally
}

func newGoUser(ctx context.Context, hosts []string, path string, timeout time.Duration) (*goUser, error) {
	c, err := client.Connect(ctx, strings.Join(hosts, ","), client.WithSessionTimeout(timeout))
	if err != nil {
		return nil, err
	}
	if _, _, err = c.Create(ctx, path, nil, client.Persistent); err != nil && !errors.Is(err, client.ErrNodeExists) {
		return nil, errors.Join(err, c.Close())
	}
	return &goUser{c, load.NewTally(path)}, nil
}

// Tally implements user.
func (u *goUser) Tally() *load.Tally { return u.tally }

// Run implements user.
func (u *goUser) Run(ctx context.Context) {
	for ctx.Err() == nil {
		stat, err := u.client.Set(context.WithoutCancel(ctx), u.tally.Path(), nil, client.AnyVersion)
		if err == nil {
			u.tally.Acknowledged(int64(stat.Version))
			continue
		}
		if errors.Is(err, client.ErrSessionExpired) {
			u.tally.Expired()
		}
		u.tally.Failed(err)
	}
	_ = u.client.Close() // it has no session that must end
}

// httpUser is a program that speaks HTTP, and goes to the next server if one does not accept its
// connection.
type httpUser struct {
	hosts []string
	at    int
	http  http.Client
	tally *load.Tally
}

func newHTTPUser(ctx context.Context, hosts []string, path string, timeout time.Duration) (*httpUser, error) {
	u := &httpUser{hosts: hosts, tally: load.NewTally(path),
		http: http.Client{Timeout: timeout, Transport: &http.Transport{}}}
	_, err := u.put(ctx, "?create=true")
	return u, err
}

// Tally implements user.
func (u *httpUser) Tally() *load.Tally { return u.tally }

// Run implements user.
func (u *httpUser) Run(ctx context.Context) {
	defer u.http.CloseIdleConnections()
	for ctx.Err() == nil {
		version, err := u.put(context.WithoutCancel(ctx), "")
		switch {
		case err == nil:
			u.tally.Acknowledged(version)
			continue
		case errors.Is(err, syscall.ECONNREFUSED): // nothing was asked of it
		case errors.Is(err, errElsewhere):
			u.tally.SentAway()
		default:
			u.tally.Failed(err)
		}
		u.at = (u.at + 1) % len(u.hosts)
	}
}

// errElsewhere is a 503: nothing was done, and the client should ask another server
// (docs/http.md).
var errElsewhere = errors.New("503 Service Unavailable")

// put writes the znode and returns its version.
func (u *httpUser) put(ctx context.Context, query string) (version int64, err error) {
	url := "http://" + u.hosts[u.at] + "/v1/znodes" + u.tally.Path() + query
	request, err := http.NewRequestWithContext(ctx, http.MethodPut, url, bytes.NewReader(nil))
	if err != nil {
		return 0, fmt.Errorf("a write over HTTP: %w", err)
	}
	answer, err := u.http.Do(request)
	if err != nil {
		return 0, fmt.Errorf("a write over HTTP: %w", err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	switch {
	case err != nil:
	case answer.StatusCode == http.StatusServiceUnavailable:
		err = errElsewhere
	case answer.StatusCode >= http.StatusMultipleChoices:
		err = fmt.Errorf("a write over HTTP: %s: %.200s", answer.Status, text)
	}
	if err != nil {
		return 0, err
	}
	var body struct{ Stat struct{ Version int64 } }
	return body.Stat.Version, json.Unmarshal(text, &body)
}
