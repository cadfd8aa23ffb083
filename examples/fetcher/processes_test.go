package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"testing"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/examples/internal/testserver"
	"github.com/zk-lite/zk-lite/internal/testkit/tier"
	"github.com/zk-lite/zk-lite/internal/testkit/wait"
	"github.com/zk-lite/zk-lite/recipes"
)

func TestMain(m *testing.M) {
	os.Exit(testserver.Main(m, map[string]testserver.Role{
		"master": func(ctx context.Context, c *client.Client, name, _ string) error {
			return (&Master{Client: c, Name: name, Log: os.Stdout}).Run(ctx)
		},
		"worker": func(ctx context.Context, c *client.Client, name, web string) error {
			return (&Worker{Client: c, Name: name, Log: os.Stdout, Fetch: func(ctx context.Context, page string) (string, error) {
				return fetchFrom(ctx, web, page)
			}}).Run(ctx)
		},
	}))
}

// fetchFrom gets a page from the test instead of its own site.
func fetchFrom(ctx context.Context, web, page string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, web+"?url="+url.QueryEscape(page), nil)
	if err != nil {
		return "", err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return string(body), err
}

// Workers, masters and servers are processes, and are killed and paused while addresses
// come in. Each is fetched, and has one result; and there is a master in the end.
func TestFetcher_ProcessesKilled(t *testing.T) {
	tier.Seconds(t)
	t.Parallel() // it mostly waits for sessions to expire
	p := testserver.StartProcesses(t)
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, "body of "+r.FormValue("url"))
	}))
	t.Cleanup(web.Close) // after the end of those who use it
	if err := Prepare(p.Context, p.Client); err != nil {
		t.Fatal(err)
	}
	workers, masters := make([]*testserver.Child, 3), map[string]*testserver.Child{}
	for i := range workers {
		workers[i] = p.Run("worker", web.URL)
	}
	for range 2 {
		m := p.Run("master", "")
		masters[m.Name] = m
	}
	election := recipes.NewElection(p.Client, masterPath)
	const rounds, pages = 3, 15
	for round := range rounds {
		if err := Submit(p.Context, p.Client, addresses(round*pages, (round+1)*pages)...); err != nil {
			t.Fatal(err)
		}
		i := p.Rand.IntN(len(workers))
		workers[i].Kill()
		switch round {
		case 0:
			p.RestartServer()
		case 1:
			leader, err := election.Leader(p.Context)
			if err == nil { // it may be about to begin
				masters[string(leader.Data)].Kill()
				delete(masters, string(leader.Data))
				m := p.Run("master", "")
				masters[m.Name] = m
			}
		case 2:
			p.PauseServer()
		}
		workers[i] = p.Run("worker", web.URL)
	}
	waitForResults(p.Context, t, p.Client, rounds*pages)
	wait.Until(t, "a master that lives is in office", func() bool {
		leader, err := election.Leader(p.Context)
		return err == nil && masters[string(leader.Data)] != nil
	})
}
