// Command katta is a sharded index, after Katta, which served Lucene's indices from
// many machines: a master assigns each shard of the index to some of the nodes,
// which load it, and a query goes to all shards.
//
// If a node dies, the master assigns its shards to others; because each shard is
// at two nodes, queries are still answered. If the master dies, another process
// takes over. Queries do not need the master.
//
//	go run ./cmd/zk-lite dev                    # in one terminal
//	go run ./examples/katta                     # in two or three others
//	go run ./examples/katta -query "lock token" # in one more, as often as you like
//
// Ctrl-C ends a process. The znodes:
//
//	/examples/katta/master              recipes.Election
//	/examples/katta/cluster/nodes       recipes.Group: the nodes alive
//	/examples/katta/cluster/shards/S    the nodes that are to have shard S
//	/examples/katta/serving/S           recipes.Group: those that have loaded it
//
// The wanted state and the actual state are kept apart: the master writes only the
// one, nodes only the other, and each follows the one it does not write. The
// master's writes are transactions that check its own znode in the election, so
// that a former master cannot change an assignment. Queries use the actual state.
//
// A node that has joined gets the shards of nodes that die, or new ones; other
// shards do not move. The documents are part of the program (index.go); Katta has
// them in a distributed file system.
//
// # Concurrency
//
// Node.Run has a goroutine for its HTTP server, which ends before Run returns, and
// Searcher.Search one for each shard, which it waits for. Master.Run starts none.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"time"

	"github.com/zk-lite/zk-lite/client"
)

const (
	// connectTimeout bounds how long the program waits for its first session.
	connectTimeout = 10 * time.Second
	// searchTimeout bounds how long a query waits for a node that has a shard.
	searchTimeout = 10 * time.Second
)

func main() {
	servers := flag.String("servers", "127.0.0.1:2181,127.0.0.1:2182,127.0.0.1:2183",
		"the ensemble, as host:port,...")
	query := flag.String("query", "", "words to search for; prints what is found, and ends")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *servers, *query); err != nil && ctx.Err() == nil {
		fmt.Fprintln(os.Stderr, "katta:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, servers, query string) error {
	within, stop := context.WithTimeout(ctx, connectTimeout)
	defer stop()
	c, err := client.Connect(within, servers)
	if err != nil {
		return fmt.Errorf("no session (start servers with: zk-lite dev): %w", err)
	}
	defer func() { _ = c.Close() }() // otherwise the session expires
	if query != "" {
		return search(ctx, c, query)
	}
	if err := Deploy(ctx, c, ShardNames()); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	name := fmt.Sprintf("node-%d", os.Getpid())
	ended := make(chan error)
	go func() { ended <- (&Master{Client: c, Name: name, Log: os.Stdout}).Run(ctx) }()
	go func() { ended <- (&Node{Client: c, Name: name, Load: Load, Log: os.Stdout}).Run(ctx) }()
	err = <-ended
	cancel()
	return errors.Join(err, <-ended)
}

func search(ctx context.Context, c *client.Client, query string) error {
	ctx, cancel := context.WithTimeout(ctx, searchTimeout)
	defer cancel()
	searcher, err := NewSearcher(ctx, c)
	if err != nil {
		return err
	}
	defer searcher.Close()
	hits, err := searcher.Search(ctx, query)
	if err != nil {
		return err
	}
	for _, h := range hits {
		fmt.Printf("%d  %s: %s\n", h.Score, h.ID, h.Text)
	}
	fmt.Println(len(hits), "found")
	return nil
}
