package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/recipes"
	"github.com/zk-lite/zk-lite/znode"
)

// Node loads the shards that are assigned to it, and answers queries to them.
type Node struct {
	Client *client.Client
	Name   string                                 // no two nodes may have the same
	Load   func(shard string) ([]Document, error) // for example from a file system
	Log    io.Writer                              // what happens, for people

	address string
	serving map[string]*recipes.Membership // of the groups of the shards it has

	mu      sync.Mutex // protects the field below
	indices map[string]*Index
}

// Run serves until ctx ends. A node that restarts does not keep its shards; it
// reads its assignments again.
func (n *Node) Run(ctx context.Context) error {
	n.serving, n.indices = map[string]*recipes.Membership{}, map[string]*Index{}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	n.address = listener.Addr().String()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{shard}", n.search)
	server := &http.Server{Handler: mux}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	err = n.live(ctx)
	err = errors.Join(err, server.Close())
	if served := <-ended; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return err
}

// live joins the nodes, and opens and closes shards as they are assigned.
func (n *Node) live(ctx context.Context) error {
	member, err := recipes.NewGroup(n.Client, nodesPath).Join(ctx, n.Name, []byte(n.address))
	if err != nil {
		return err
	}
	defer func() { // or deleted with the session
		_ = member.Leave(ctx)
		for _, shard := range n.serving {
			_ = shard.Leave(ctx)
		}
	}()
	return follow(ctx, n.Client, shardsPath, func(cache *client.Cache) error {
		list, err := shardsOf(cache)
		if err != nil {
			return err
		}
		for _, s := range list {
			mine := slices.Contains(s.assigned.Nodes, n.Name)
			switch _, have := n.serving[s.name]; {
			case mine && !have:
				err = n.open(ctx, s.name)
			case !mine && have:
				err = n.close(ctx, s.name)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// open loads a shard, and then announces it.
func (n *Node) open(ctx context.Context, shard string) error {
	documents, err := n.Load(shard)
	if err != nil {
		return fmt.Errorf("loading %s: %w", shard, err)
	}
	index := NewIndex(documents)
	n.mu.Lock()
	n.indices[shard] = index
	n.mu.Unlock()
	group := recipes.NewGroup(n.Client, znode.Join(servingPath, shard))
	member, err := group.Join(ctx, n.Name, []byte(n.address))
	if err != nil {
		return err
	}
	n.serving[shard] = member
	fmt.Fprintf(n.Log, "%s: has loaded %s\n", n.Name, shard)
	return nil
}

// close withdraws a shard, and then drops it.
func (n *Node) close(ctx context.Context, shard string) error {
	if err := n.serving[shard].Leave(ctx); err != nil {
		return err
	}
	delete(n.serving, shard)
	n.mu.Lock()
	delete(n.indices, shard)
	n.mu.Unlock()
	fmt.Fprintf(n.Log, "%s: has dropped %s\n", n.Name, shard)
	return nil
}

// search answers a query to one shard, as JSON.
func (n *Node) search(w http.ResponseWriter, r *http.Request) {
	n.mu.Lock()
	index := n.indices[r.PathValue("shard")]
	n.mu.Unlock()
	if index == nil {
		http.Error(w, "the shard is not here", http.StatusMisdirectedRequest)
		return
	}
	_ = json.NewEncoder(w).Encode(index.Search(r.FormValue("q"))) // a client that has disconnected asks again
}
