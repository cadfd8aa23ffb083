// Command fenced shows what a lock alone cannot do, and what a fencing token does
// about it.
//
// Two holders add to a counter in a store, each time under a lock: read, add one,
// write. Now and then one of them pauses between reading and writing for longer
// than its session lives (as in a garbage collection, on a sleeping laptop or
// with a broken network). The lock goes to the other, which reads and writes.
// When the first wakes up it does not know what has happened, and writes, too.
// The store refuses it, because its token is older than one the store has seen;
// otherwise the other's addition would be lost.
//
//	go run ./cmd/zk-lite dev    # in one terminal
//	go run ./examples/fenced    # in another; Ctrl-C ends it
//
// The store is the part to take away (store.go). It knows no lock service: it
// compares two numbers.
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

// pauseEvery is how many additions the sleepy holder makes between its pauses.
const pauseEvery = 4

// connectTimeout bounds how long the program waits for its first session.
const connectTimeout = 10 * time.Second

func main() {
	servers := flag.String("servers", "127.0.0.1:2181,127.0.0.1:2182,127.0.0.1:2183",
		"the ensemble, as host:port,...")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *servers); err != nil && ctx.Err() == nil {
		fmt.Fprintln(os.Stderr, "fenced:", err)
		os.Exit(1)
	}
}

// run lets two holders add until ctx ends or one of them fails.
func run(ctx context.Context, servers string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	store := NewStore()
	ended := make(chan error)
	for _, name := range []string{"sleepy", "lively"} {
		go func() { ended <- add(ctx, servers, name, store) }()
	}
	err := <-ended
	cancel()
	return errors.Join(err, <-ended)
}

// add lets one holder add once a second.
func add(ctx context.Context, servers, name string, store *Store) error {
	wire := new(Wire)
	within, stop := context.WithTimeout(ctx, connectTimeout)
	defer stop()
	c, err := client.Connect(within, servers,
		client.WithDialer(wire.Dial), client.WithSessionTimeout(4*time.Second))
	if err != nil {
		return fmt.Errorf("no session (start servers with: zk-lite dev): %w", err)
	}
	defer func() { _ = c.Close() }() // otherwise the session expires
	holder := NewHolder(c, "/examples/fenced/lock", store)
	for n := 1; ; n++ {
		holder.Think = func(context.Context) {}
		if name == "sleepy" && n%pauseEvery == 0 {
			holder.Think = func(ctx context.Context) { pause(ctx, c, wire, store) }
		}
		sum, err := holder.Add(ctx, "visits")
		switch {
		case errors.Is(err, ErrStale):
			fmt.Printf("%s: refused: %v\n", name, err)
		case err != nil:
			return err
		default:
			fmt.Printf("%s: visits are %d now\n", name, sum)
		}
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// pause makes the holder look dead until the other has written.
func pause(ctx context.Context, c *client.Client, wire *Wire, store *Store) {
	was := store.Value("visits")
	fmt.Printf("sleepy: has read %d, and stands still for longer than %v\n",
		was, c.Session().Timeout)
	wire.Die()
	defer wire.Revive()
	for store.Value("visits") == was && ctx.Err() == nil {
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
		}
	}
	fmt.Printf("sleepy: wakes up, and goes on as if nothing had happened\n")
}
