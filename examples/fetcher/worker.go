package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/recipes"
	"github.com/zk-lite/zk-lite/znode"
)

// Worker fetches what is assigned to it, one after the other.
type Worker struct {
	Client *client.Client
	Name   string // no two workers may have the same
	Fetch  func(ctx context.Context, url string) (string, error)
	Log    io.Writer // what happens, for people
}

// Run works until ctx ends. The inbox is there before the worker can be seen, and
// stays: if the worker comes back soon enough it finds its work.
func (w *Worker) Run(ctx context.Context) error {
	inbox := znode.Join(inboxPath, w.Name)
	if err := w.Client.EnsurePath(ctx, inbox, client.Persistent); err != nil {
		return err
	}
	member, err := recipes.NewGroup(w.Client, workersPath).Join(ctx, w.Name, nil)
	if err != nil {
		return err
	}
	defer func() { _ = member.Leave(ctx) }() // or gone with the session
	for {
		ids, _, watch, err := w.Client.ChildrenW(ctx, inbox)
		if err == nil {
			err = w.doAll(ctx, inbox, ids)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil && !passing(err) {
			return err
		}
		if err == nil {
			select {
			case <-watch.C(): // also if the session is lost
			case <-ctx.Done():
			}
		}
		if watch != nil {
			watch.Cancel()
		}
	}
}

func (w *Worker) doAll(ctx context.Context, inbox string, ids []string) error {
	for _, id := range ids {
		// A task that has been taken away in the meantime is not worth the work.
		data, _, err := w.Client.Get(ctx, znode.Join(inbox, id))
		if errors.Is(err, client.ErrNoNode) {
			continue
		}
		if err != nil {
			return err
		}
		task, err := decode[Task](data)
		if err != nil {
			return fmt.Errorf("task %s: %w", id, err)
		}
		result := Result{URL: task.URL, Worker: w.Name}
		if result.Body, err = w.Fetch(ctx, task.URL); err != nil {
			result.Error = err.Error()
		}
		if ctx.Err() != nil {
			return ctx.Err() // not the fault of the address
		}
		if err := w.store(ctx, id, result); err != nil {
			return err
		}
	}
	return nil
}

// store stores a result and removes the task, at once or not at all. It is not if
// the task is not in the inbox any more.
func (w *Worker) store(ctx context.Context, id string, r Result) error {
	for {
		multi := w.Client.Multi()
		multi.Delete(inboxOf(w.Name, id), client.AnyVersion)
		multi.Delete(znode.Join(tasksPath, id), client.AnyVersion)
		multi.Create(znode.Join(resultsPath, id), encode(r), client.Persistent)
		err := multi.Commit(ctx)
		switch {
		case err == nil:
			fmt.Fprintf(w.Log, "%s: has fetched %s\n", w.Name, r.URL)
			return nil
		case errors.Is(err, client.ErrNoNode):
			// Or it is a repetition, and the first attempt has succeeded.
			fmt.Fprintf(w.Log, "%s: %s is not its task any more\n", w.Name, r.URL)
			return nil
		case ctx.Err() != nil || !passing(err):
			return err
		}
	}
}
