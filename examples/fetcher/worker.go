package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/recipes"
	"github.com/zk-lite/zk-lite/znode"
)

// Worker fetches the tasks that are assigned to it, one after the other, and pages for
// clients.
type Worker struct {
	Client     *client.Client
	Name       string // no two workers may have the same
	Fetch      func(ctx context.Context, url string) (string, error)
	CheckEvery time.Duration // how often it checks its health; 0 means checkEvery
	Log        io.Writer     // what happens, for people

	config  *recipes.Value[Config]
	fetched atomic.Int64
}

// Run works until ctx ends. The inbox exists before the worker is visible, and
// stays: if the worker returns soon enough it finds its work.
func (w *Worker) Run(ctx context.Context) error {
	inbox := znode.Join(inboxPath, w.Name)
	if err := w.Client.EnsurePath(ctx, inbox, client.Persistent); err != nil {
		return err
	}
	var err error
	if w.config, err = recipes.NewValue(ctx, w.Client, configPath, recipes.JSON[Config]()); err != nil {
		return err
	}
	defer w.config.Close()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	server, ended := &http.Server{Handler: w, ReadHeaderTimeout: 5 * time.Second}, make(chan error)
	go func() {
		err := server.Serve(listener)
		cancel()
		ended <- err
	}()
	go func() {
		err := w.report(ctx, listener.Addr().String())
		cancel()
		ended <- err
	}()
	err = errors.Join(w.work(ctx, inbox), server.Close())
	cancel()
	for range 2 {
		if e := <-ended; !errors.Is(e, http.ErrServerClosed) {
			err = errors.Join(err, e)
		}
	}
	return err
}

// work does the tasks in the inbox.
func (w *Worker) work(ctx context.Context, inbox string) error {
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
		// The task may have been given to another worker.
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
		if result.Body, err = w.fetch(ctx, task.URL); err != nil {
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

// store stores a result and removes the task in one transaction. It does nothing
// if the task is no longer in the inbox.
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
