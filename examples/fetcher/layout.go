package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/znode"
)

// The znodes of the service; see the package's documentation.
const (
	root        = "/examples/fetcher"
	masterPath  = root + "/master"
	configPath  = root + "/config"
	workPath    = root + "/work"
	workersPath = workPath + "/workers"
	tasksPath   = workPath + "/tasks"
	inboxPath   = root + "/inbox"
	resultsPath = root + "/results"
)

// Task is an address to fetch.
type Task struct {
	URL    string
	Worker string // "" if it is not assigned yet
}

// Result is the outcome of a fetch.
type Result struct {
	URL    string
	Worker string // that fetched it
	Body   string
	Error  string // why there is no body
}

// Prepare creates the znodes below which others are created.
func Prepare(ctx context.Context, c *client.Client) error {
	for _, path := range []string{configPath, tasksPath, inboxPath, resultsPath} {
		if err := c.EnsurePath(ctx, path, client.Persistent); err != nil {
			return err
		}
	}
	return nil
}

// Submit adds addresses to fetch, each exactly once, even if the connection
// breaks.
func Submit(ctx context.Context, c *client.Client, urls ...string) error {
	for _, url := range urls {
		_, _, err := c.CreateProtected(ctx, tasksPath+"/task-", encode(Task{URL: url}),
			client.PersistentSequential)
		if err != nil {
			return fmt.Errorf("submitting %s: %w", url, err)
		}
	}
	return nil
}

// Results returns the results so far.
func Results(ctx context.Context, c *client.Client) ([]Result, error) {
	names, _, err := c.Children(ctx, resultsPath)
	if err != nil {
		return nil, err
	}
	var list []Result
	for _, name := range names {
		data, _, err := c.Get(ctx, znode.Join(resultsPath, name))
		if err != nil {
			return nil, err
		}
		r, err := decode[Result](data)
		if err != nil {
			return nil, fmt.Errorf("result %s: %w", name, err)
		}
		list = append(list, r)
	}
	return list, nil
}

// passing reports whether an error is temporary: a lost connection or session,
// after which the loops read the znodes again.
func passing(err error) bool {
	return errors.Is(err, client.ErrConnectionLoss) ||
		errors.Is(err, client.ErrOutcomeUnknown) || errors.Is(err, client.ErrSessionExpired)
}

func encode[T Task | Result | Config | Status](v T) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err) // structs of strings and numbers can be encoded
	}
	return data
}

func decode[T any](data []byte) (v T, err error) {
	err = json.Unmarshal(data, &v)
	return v, err
}

// inboxOf is the znode of a task in a worker's inbox.
func inboxOf(worker, id string) string { return znode.Join(znode.Join(inboxPath, worker), id) }
