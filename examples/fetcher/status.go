package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/recipes"
)

// maxBody bounds how much of a page is stored: a znode is no place for more.
const maxBody = 4 << 10

// checkEvery is how often a worker looks at its health.
const checkEvery = time.Second

// Config is the master's configuration for the workers.
type Config struct {
	Probe   string // an address that a healthy worker can fetch; "" for none
	MaxBody int    // bytes of a page that are kept
}

// Status is the data of a worker's znode.
type Status struct {
	Address string // host:port, for clients
	Healthy bool
	Why     string // why it is not
	Fetched int    // pages so far
	Config  Config // that it follows
}

// configured is the newest configuration, or that of a service without a master yet.
func (w *Worker) configured() Config {
	config, ok := w.config.Get()
	if !ok || config.MaxBody < 1 || config.MaxBody > maxBody {
		config.MaxBody = maxBody
	}
	return config
}

// fetch gets a page, and cuts it at the configured size.
func (w *Worker) fetch(ctx context.Context, url string) (string, error) {
	body, err := w.Fetch(ctx, url)
	if err == nil {
		w.fetched.Add(1)
	}
	return body[:min(len(body), w.configured().MaxBody)], err
}

// ServeHTTP fetches a page for a client.
func (w *Worker) ServeHTTP(out http.ResponseWriter, r *http.Request) {
	body, err := w.fetch(r.Context(), r.FormValue("url"))
	if err != nil {
		http.Error(out, err.Error(), http.StatusBadGateway)
		return
	}
	_, _ = io.WriteString(out, body) // a client that has disconnected asks again
}

// report is a member of the group of workers, and keeps its status, until ctx ends.
func (w *Worker) report(ctx context.Context, address string) error {
	said := w.check(ctx, address)
	health := said.health()
	fmt.Fprintf(w.Log, "%s: is %s\n", w.Name, health)
	member, err := recipes.NewGroup(w.Client, workersPath).Join(ctx, w.Name, encode(said))
	if err != nil {
		return err
	}
	defer func() { _ = member.Leave(ctx) }() // or deleted with the session
	for {
		changed := w.config.Changed()
		now := w.check(ctx, address)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if now.health() != health {
			health = now.health()
			fmt.Fprintf(w.Log, "%s: is %s\n", w.Name, health)
		}
		if now != said {
			switch err := member.Set(ctx, encode(now)); {
			case err == nil:
				said = now
			case !passing(err):
				return err
			}
		}
		select {
		case <-changed:
		case <-time.After(w.every()):
		case <-ctx.Done():
		}
	}
}

func (w *Worker) every() time.Duration { return cmp.Or(w.CheckEvery, checkEvery) }

// check fetches the probe: a worker that cannot fetch it cannot fetch other pages
// either.
func (w *Worker) check(ctx context.Context, address string) Status {
	s := Status{Address: address, Healthy: true, Fetched: int(w.fetched.Load()), Config: w.configured()}
	if s.Config.Probe != "" {
		ctx, cancel := context.WithTimeout(ctx, w.every())
		defer cancel()
		if _, err := w.Fetch(ctx, s.Config.Probe); err != nil {
			s.Healthy, s.Why = false, err.Error()
		}
	}
	return s
}

func (s Status) health() string {
	if s.Healthy {
		return "healthy"
	}
	return "not healthy: " + s.Why
}

// Get has a page fetched by a healthy worker: the one that has fetched least, and if that
// does not answer, the next. It needs no master.
func Get(ctx context.Context, c *client.Client, page string) (worker, body string, err error) {
	members, err := recipes.NewGroup(c, workersPath).Members(ctx)
	if err != nil {
		return "", "", err
	}
	status := map[string]Status{}
	for _, m := range members {
		if s, err := decode[Status](m.Data); err == nil && s.Healthy {
			status[m.Name] = s
		}
	}
	members = slices.DeleteFunc(members, func(m recipes.Member) bool { return !status[m.Name].Healthy })
	slices.SortStableFunc(members, func(a, b recipes.Member) int {
		return cmp.Compare(status[a.Name].Fetched, status[b.Name].Fetched)
	})
	err = errors.New("no worker is healthy")
	for i, m := range members {
		body, failed := fetch(ctx, "http://"+status[m.Name].Address+"/?url="+url.QueryEscape(page))
		if failed == nil {
			return m.Name, body, nil
		}
		if i == 0 {
			err = nil
		}
		err = errors.Join(err, fmt.Errorf("worker %s: %w", m.Name, failed))
	}
	return "", "", err
}
