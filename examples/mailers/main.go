// Command mailers answers mails with any number of processors: no two work on the
// same mail, and no mail is answered twice.
//
// Incoming mails are a recipes.Queue. Taking one claims it while the processor's
// session lives: if the processor dies, another gets the mail, in its old place. A
// queue alone cannot stop a processor that was only paused from continuing with a
// mail that another has claimed. So the outbox, which receives the answers,
// compares the tokens of the claims, and accepts one answer for each mail.
//
//	go run ./cmd/zk-lite dev                             # in one terminal
//	go run ./examples/mailers                            # in another
//	go run ./examples/mailers -put "hello" "how are you" # in a third
//
// Each process has three processors, with sessions of their own; processes that
// run side by side share the mails. In this demonstration the outbox is in the
// memory of each process: it cannot refuse the answer of a processor in another.
// A real one is a database that all of them write to, with the token and the
// name of the mail in the row of the answer.
//
// # Concurrency
//
// Processor.Run uses the goroutine of its caller and starts none. All methods of
// Outbox are safe for concurrent use.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"time"

	"github.com/zk-lite/zk-lite/client"
)

// processors is how many each process has.
const processors = 3

// connectTimeout bounds how long the program waits for its first session.
const connectTimeout = 10 * time.Second

func main() {
	servers := flag.String("servers", "127.0.0.1:2181,127.0.0.1:2182,127.0.0.1:2183",
		"the ensemble, as host:port,...")
	put := flag.Bool("put", false, "put the arguments into the queue, and end")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	err := run(ctx, *servers, *put, flag.Args())
	if err != nil && ctx.Err() == nil {
		fmt.Fprintln(os.Stderr, "mailers:", err)
		os.Exit(1)
	}
}

// run puts mails, and then, unless put is set, answers mails until ctx ends.
func run(ctx context.Context, servers string, put bool, mails []string) error {
	c, err := connect(ctx, servers)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }() // otherwise the session expires
	for _, mail := range mails {
		if err := Submit(ctx, c, mail); err != nil {
			return err
		}
	}
	if put {
		return nil
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	outbox, ended := new(Outbox), make(chan error)
	for i := range processors {
		name := fmt.Sprintf("processor %d of process %d", i, os.Getpid())
		go func() { ended <- process(ctx, servers, name, outbox) }()
	}
	fmt.Println(processors, "processors wait for mails; Ctrl-C ends them")
	err = <-ended
	cancel()
	for range processors - 1 {
		err = errors.Join(err, <-ended)
	}
	return err
}

func connect(ctx context.Context, servers string) (*client.Client, error) {
	within, stop := context.WithTimeout(ctx, connectTimeout)
	defer stop()
	c, err := client.Connect(within, servers)
	if err != nil {
		return nil, fmt.Errorf("no session (start servers with: zk-lite dev): %w", err)
	}
	return c, nil
}

// process runs one processor in a session of its own.
func process(ctx context.Context, servers, name string, outbox *Outbox) error {
	c, err := connect(ctx, servers)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }() // otherwise the session expires
	p := &Processor{Client: c, Name: name, Outbox: outbox, Write: write, Log: os.Stdout}
	return p.Run(ctx)
}

// write takes its time, so that there is something to see.
func write(ctx context.Context, mail string) (string, error) {
	select {
	case <-time.After(rand.N(2 * time.Second)):
		return "Thank you for: " + mail, nil
	case <-ctx.Done():
		return "", ctx.Err()
	}
}
