// Command fetcher is a fetching service like those of search engines: a master
// assigns addresses, and workers fetch them and store the pages.
//
// Every process is a worker, and a candidate for master. If a worker dies, others
// get its addresses; if the master dies, another continues its work. No address is
// forgotten, and none has two results. The master also gives the workers their
// configuration; they write their status and health, by which clients find a
// healthy one. README.md shows it.
//
//	go run ./cmd/zk-lite dev                                   # in one terminal
//	go run ./examples/fetcher -name a http://127.0.0.1:8080/livez   # in a second
//	go run ./examples/fetcher -name b                          # in a third
//
// Ctrl-C ends a process; so does kill -9, which the others notice when its
// session expires. The znodes:
//
//	/examples/fetcher/master           recipes.Election
//	/examples/fetcher/config           what the master tells the workers
//	/examples/fetcher/work/workers     recipes.Group, with the status of each
//	/examples/fetcher/work/tasks/ID    an address, and the worker it is assigned to
//	/examples/fetcher/inbox/NAME/ID    the worker's side of the same
//	/examples/fetcher/results/ID       what was found
//
// # How it keeps its promises
//
// An assignment is one transaction that also checks the master's znode in the
// election: it fails if that no longer exists, so a former master cannot assign
// anything, whatever it believes. A result is stored by the transaction that
// removes the task from the worker's inbox: it fails if the task has been given
// to another worker. So both need neither locks nor clocks.
//
// # Concurrency
//
// Master.Run uses the goroutine of its caller and starts none. Worker.Run has one that
// serves HTTP and one that reports its status; both have ended when it returns.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"time"

	"github.com/zk-lite/zk-lite/client"
)

// connectTimeout bounds how long the program waits for its first session.
const connectTimeout = 10 * time.Second

func main() {
	servers := flag.String("servers", "127.0.0.1:2181,127.0.0.1:2182,127.0.0.1:2183",
		"the ensemble, as host:port,...")
	name := flag.String("name", fmt.Sprintf("process-%d", os.Getpid()), "of this process")
	get := flag.String("get", "", "have a healthy worker fetch this address, print the page, and end")
	probe := flag.String("probe", "", "as master: workers that cannot fetch this address are not healthy")
	bytes := flag.Int("max-body", maxBody, "as master: how many bytes of a page are kept")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	config := Config{Probe: *probe, MaxBody: *bytes}
	if err := run(ctx, *servers, *name, *get, config, flag.Args()); err != nil && ctx.Err() == nil {
		fmt.Fprintln(os.Stderr, "fetcher:", err)
		os.Exit(1)
	}
}

// run is a client, or submits addresses and then is a worker and a candidate for master
// until ctx ends.
func run(ctx context.Context, servers, name, get string, config Config, urls []string) error {
	if config.MaxBody < 1 || config.MaxBody > maxBody {
		return fmt.Errorf("-max-body is %d; want 1 to %d", config.MaxBody, maxBody)
	}
	within, stop := context.WithTimeout(ctx, connectTimeout)
	defer stop()
	c, err := client.Connect(within, servers)
	if err != nil {
		return fmt.Errorf("no session (start servers with: zk-lite dev): %w", err)
	}
	defer func() { _ = c.Close() }() // otherwise the session expires
	if get != "" {
		worker, body, err := Get(ctx, c, get)
		if err == nil {
			fmt.Printf("%s: %s\n", worker, body)
		}
		return err
	}
	if err := Prepare(ctx, c); err != nil {
		return err
	}
	if err := Submit(ctx, c, urls...); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	master := &Master{Client: c, Name: name, Config: &config, Log: os.Stdout}
	worker := &Worker{Client: c, Name: name, Fetch: fetch, Log: os.Stdout}
	ended := make(chan error)
	go func() { ended <- master.Run(ctx) }()
	go func() { ended <- worker.Run(ctx) }()
	err = <-ended
	cancel()
	return errors.Join(err, <-ended)
}

// fetch gets a page, or the beginning of a long one.
func fetch(ctx context.Context, url string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxBody))
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %.100s", response.Status, body)
	}
	return string(body), err
}
