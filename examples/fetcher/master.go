package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/recipes"
	"github.com/zk-lite/zk-lite/znode"
)

// Master assigns tasks to workers, while it is elected.
type Master struct {
	Client *client.Client
	Name   string
	Config *Config   // for the workers; nil to keep the last master's
	Log    io.Writer // what happens, for people
}

// Run is a candidate in the election, and leads when elected, until ctx ends.
func (m *Master) Run(ctx context.Context) error {
	election := recipes.NewElection(m.Client, masterPath, recipes.WithData([]byte(m.Name)))
	return election.Run(ctx, m.lead)
}

// lead keeps every task assigned to a live worker, until ctx ends with the term.
// A new master sees all assignments of the old one, because they precede the end
// of its session, and that precedes this term.
func (m *Master) lead(ctx context.Context, term *recipes.Term) error {
	fmt.Fprintf(m.Log, "%s: is the master, token %#x\n", m.Name, term.FencingToken())
	cache, err := client.NewCache(ctx, m.Client, workPath)
	if err != nil {
		return err
	}
	defer cache.Close()
	configured := m.Config == nil
	for {
		changed := cache.Changed()
		if cache.Err() != nil {
			return cache.Err()
		}
		var err error
		if !configured {
			err = m.configure(ctx, term)
			configured = err == nil
		}
		if err == nil {
			err = m.assignAll(ctx, term, cache)
		}
		switch {
		case err == nil:
			select {
			case <-changed:
			case <-ctx.Done():
				return ctx.Err()
			}
		case ctx.Err() != nil || !passing(err):
			return err
		}
	}
}

// configure gives the workers their configuration, unless the term has ended.
func (m *Master) configure(ctx context.Context, term *recipes.Term) error {
	multi := m.Client.Multi()
	multi.Check(term.Path(), client.AnyVersion)
	multi.Set(configPath, encode(*m.Config), client.AnyVersion)
	err := multi.Commit(ctx)
	if errors.Is(err, client.ErrNoNode) {
		return nil // the context of the term is about to end
	}
	return err
}

// assignAll assigns the tasks that have no live and healthy worker in the cache.
func (m *Master) assignAll(ctx context.Context, term *recipes.Term, cache *client.Cache) error {
	var tasks []assignment
	for _, id := range cache.Children(tasksPath) {
		if node, ok := cache.Get(znode.Join(tasksPath, id)); ok {
			task, err := decode[Task](node.Data)
			if err != nil {
				fmt.Fprintf(m.Log, "%s: task %s is left alone: %v\n", m.Name, id, err)
				continue
			}
			tasks = append(tasks, assignment{id, task, node.Stat.Version})
		}
	}
	var workers []string
	for _, name := range cache.Children(workersPath) {
		node, _ := cache.Get(znode.Join(workersPath, name))
		if s, err := decode[Status](node.Data); err == nil && s.Healthy {
			workers = append(workers, name)
		}
	}
	for _, change := range plan(tasks, workers) {
		if err := m.assign(ctx, term, change); err != nil {
			return err
		}
	}
	return nil
}

// assign makes an assignment unless the term has ended, or the task differs from
// the cache. That is not an error: the cache will show it.
func (m *Master) assign(ctx context.Context, term *recipes.Term, a move) error {
	assigned := Task{URL: a.task.URL, Worker: a.to}
	multi := m.Client.Multi()
	multi.Check(term.Path(), client.AnyVersion)
	multi.Set(znode.Join(tasksPath, a.id), encode(assigned), a.version)
	if a.task.Worker != "" {
		multi.Delete(inboxOf(a.task.Worker, a.id), client.AnyVersion)
	}
	multi.Create(inboxOf(a.to, a.id), encode(assigned), client.Persistent)
	err := multi.Commit(ctx)
	switch {
	case err == nil:
		fmt.Fprintf(m.Log, "%s: %s goes to %s (was %q)\n", m.Name, a.task.URL, a.to, a.task.Worker)
	case errors.Is(err, client.ErrBadVersion) || errors.Is(err, client.ErrNoNode):
		return nil
	}
	return err
}

// assignment is a task and its version.
type assignment struct {
	id      string
	task    Task
	version client.Version
}

// move is a task that goes to another worker.
type move struct {
	assignment
	to string
}

// plan assigns each task without a live worker to the worker with the fewest tasks.
func plan(tasks []assignment, workers []string) []move {
	if len(workers) == 0 {
		return nil
	}
	load := map[string]int{}
	for _, a := range tasks {
		load[a.task.Worker]++
	}
	var moves []move
	for _, a := range tasks {
		if slices.Contains(workers, a.task.Worker) {
			continue
		}
		to := slices.MinFunc(workers, func(a, b string) int { return load[a] - load[b] })
		load[to]++
		moves = append(moves, move{a, to})
	}
	return moves
}
