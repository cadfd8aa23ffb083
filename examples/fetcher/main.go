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

// maxBody bounds how much of a page is stored: a znode is no place for more.
const maxBody = 4 << 10

// connectTimeout bounds how long the program waits for its first session.
const connectTimeout = 10 * time.Second

func main() {
	servers := flag.String("servers", "127.0.0.1:2181,127.0.0.1:2182,127.0.0.1:2183",
		"the ensemble, as host:port,...")
	name := flag.String("name", fmt.Sprintf("process-%d", os.Getpid()), "of this process")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *servers, *name, flag.Args()); err != nil && ctx.Err() == nil {
		fmt.Fprintln(os.Stderr, "fetcher:", err)
		os.Exit(1)
	}
}

// run submits addresses, and is a worker and perhaps the master until ctx ends.
func run(ctx context.Context, servers, name string, urls []string) error {
	within, stop := context.WithTimeout(ctx, connectTimeout)
	defer stop()
	c, err := client.Connect(within, servers)
	if err != nil {
		return fmt.Errorf("no session (start servers with: zk-lite dev): %w", err)
	}
	defer func() { _ = c.Close() }() // what is not closed expires
	if err := Prepare(ctx, c); err != nil {
		return err
	}
	if err := Submit(ctx, c, urls...); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	master := &Master{Client: c, Name: name, Log: os.Stdout}
	worker := &Worker{Client: c, Name: name, Fetch: fetch, Log: os.Stdout}
	ended := make(chan error)
	go func() { ended <- master.Run(ctx) }()
	go func() { ended <- worker.Run(ctx) }()
	err = <-ended
	cancel()
	return errors.Join(err, <-ended)
}

// fetch gets a page.
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
	if err != nil {
		return "", err
	}
	return response.Status + "\n" + string(body), nil
}
