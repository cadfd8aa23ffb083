package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/recipes"
)

// retryEvery is how soon a node retries after a failure, unless a znode changes first.
const retryEvery = 200 * time.Millisecond

// Node keeps topics: it is the primary of some and the backup of others.
type Node struct {
	Client *client.Client
	ID     string    // no two nodes may have the same
	Dir    string    // of its files; a node that returns must have the same ID and Dir
	Log    io.Writer // what happens, for people

	address string        // host:port
	again   chan struct{} // has an element if the node must look at the topics
	ended   chan error    // has an element if the node must end

	mu     sync.Mutex // protects the field below
	topics map[string]*topic
}

// Run serves until ctx ends or the shutdown znode exists. The node listens before
// clients can find it.
func (n *Node) Run(ctx context.Context) error {
	n.again, n.ended, n.topics = make(chan struct{}, 1), make(chan error, 1), map[string]*topic{}
	if err := os.MkdirAll(n.Dir, 0o755); err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	n.address = listener.Addr().String()
	server, served := &http.Server{Handler: n, ReadHeaderTimeout: copyTimeout}, make(chan struct{})
	go func() {
		n.end(server.Serve(listener))
		close(served)
	}()
	err = n.keep(ctx)
	err = errors.Join(err, server.Close())
	<-served
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, t := range n.topics {
		t.mu.Lock() // requests in progress fail from here on
		err = errors.Join(err, t.log.Close())
		t.mu.Unlock()
	}
	return err
}

// keep registers the node and looks at all topics whenever a znode changes.
func (n *Node) keep(ctx context.Context) error {
	if err := n.Client.EnsurePath(ctx, topicsPath, client.Persistent); err != nil {
		return err
	}
	said := string(encode(Status{Address: n.address}))
	member, err := recipes.NewGroup(n.Client, nodesPath).Join(ctx, n.ID, []byte(said))
	if err != nil {
		return err
	}
	defer func() { _ = member.Leave(ctx) }() // or deleted with the session
	cache, err := client.NewCache(ctx, n.Client, root)
	if err != nil {
		return err
	}
	defer cache.Close()
	for {
		changed := cache.Changed()
		if err := cache.Err(); err != nil {
			return err
		}
		if _, ok := cache.Get(shutdownPath); ok {
			fmt.Fprintf(n.Log, "%s: ends, there is %s\n", n.ID, shutdownPath)
			return nil
		}
		var retry <-chan time.Time
		status, err := n.step(ctx, cache)
		if now := encode(status); err == nil && string(now) != said {
			if err = member.Set(ctx, now); err == nil {
				said = string(now)
			}
		}
		if err != nil {
			retry = time.After(retryEvery)
		}
		select {
		case <-changed:
		case <-n.again:
		case <-retry:
		case err := <-n.ended:
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// open returns the node's copy of a topic.
func (n *Node) open(name string) (*topic, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	t := n.topics[name]
	if t == nil {
		log, err := OpenLog(filepath.Join(n.Dir, name+".log"))
		if err != nil {
			return nil, diskError{err}
		}
		t = &topic{name: name, log: log}
		n.topics[name] = t
	}
	return t, nil
}

// find returns the node's copy of a requested topic.
func (n *Node) find(name string) (*topic, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	t := n.topics[name]
	if t == nil {
		return nil, errNotHere // not yet, perhaps
	}
	return t, nil
}

// lookAgain makes the node look at its topics.
func (n *Node) lookAgain() {
	select {
	case n.again <- struct{}{}:
	default: // it will
	}
}

// end makes the node end.
func (n *Node) end(err error) {
	select {
	case n.ended <- err:
	default: // it will
	}
}
