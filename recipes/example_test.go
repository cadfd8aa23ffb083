package recipes_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"strings"
	"time"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/recipes"
)

// exampleAtMost bounds how long an example may take.
const exampleAtMost = 2 * time.Minute

// connectExample returns two clients, as if in two processes.
func connectExample(ctx context.Context) (ours, theirs *client.Client) {
	var both [2]*client.Client
	for i := range both {
		c, err := client.Connect(ctx, shared.Address)
		if err != nil {
			log.Panic(err)
		}
		both[i] = c
	}
	return both[0], both[1]
}

func ExampleElection() {
	ctx, cancel := context.WithTimeout(context.Background(), exampleAtMost)
	defer cancel()
	ours, theirs := connectExample(ctx)
	defer theirs.Close()
	defer ours.Close()

	first := recipes.NewElection(ours, "/example/master", recipes.WithData([]byte("one:8080")))
	term, err := first.Campaign(ctx) // waits
	if err != nil {
		log.Panic(err)
	}
	work, stop := term.Context(ctx) // ends with the term
	defer stop()
	fmt.Println("one leads:", work.Err() == nil && term.Err() == nil)

	second := recipes.NewElection(theirs, "/example/master", recipes.WithData([]byte("two:8080")))
	leader, err := second.Leader(ctx)
	fmt.Printf("two sees %s, %v\n", leader.Data, err)

	if err := term.Resign(ctx); err != nil {
		log.Panic(err)
	}
	next, err := second.Campaign(ctx)
	if err != nil {
		log.Panic(err)
	}
	fmt.Println("tokens grow:", next.FencingToken() > term.FencingToken())
	fmt.Println("one leads:", work.Err() == nil)
	// Output:
	// one leads: true
	// two sees one:8080, <nil>
	// tokens grow: true
	// one leads: false
}

func ExampleMutex() {
	ctx, cancel := context.WithTimeout(context.Background(), exampleAtMost)
	defer cancel()
	ours, theirs := connectExample(ctx)
	defer theirs.Close()
	defer ours.Close()

	grant, err := recipes.NewMutex(ours, "/example/lock").Lock(ctx) // waits
	if err != nil {
		log.Panic(err)
	}
	// Give the token to what the lock protects, which must refuse lower ones than
	// it has seen: examples/fenced shows how and why.
	fmt.Println("token:", grant.FencingToken() > 0)

	_, err = recipes.NewMutex(theirs, "/example/lock").TryLock(ctx)
	fmt.Println("others:", errors.Is(err, recipes.ErrNotAcquired))

	select {
	case <-grant.Done(): // the session was lost; grant.Err has the reason
	default:
		fmt.Println("held")
	}
	fmt.Println("release:", grant.Release(ctx))
	// Output:
	// token: true
	// others: true
	// held
	// release: <nil>
}

func ExampleGroup() {
	ctx, cancel := context.WithTimeout(context.Background(), exampleAtMost)
	defer cancel()
	ours, theirs := connectExample(ctx)
	defer ours.Close()

	if _, err := recipes.NewGroup(theirs, "/example/workers").Join(ctx, "w1", []byte("idle")); err != nil {
		log.Panic(err)
	}
	// The following runs in the loop, so that the example ends: usually another program does
	// it.
	steps := []func(){
		func() {
			_, err := recipes.NewGroup(ours, "/example/workers").Join(ctx, "w2", nil)
			if err != nil {
				log.Panic(err)
			}
		},
		func() { theirs.Close() }, // or it dies, and its session expires
	}
	for change, err := range recipes.NewGroup(ours, "/example/workers").Watch(ctx) {
		if err != nil {
			log.Panic(err)
		}
		for _, m := range change.Joined {
			fmt.Printf("joined: %s %q\n", m.Name, m.Data)
		}
		for _, m := range change.Left {
			fmt.Printf("left: %s\n", m.Name)
		}
		if len(steps) == 0 {
			break
		}
		steps[0]()
		steps = steps[1:]
	}
	// Output:
	// joined: w1 "idle"
	// joined: w2 ""
	// left: w1
}

func ExampleQueue() {
	ctx, cancel := context.WithTimeout(context.Background(), exampleAtMost)
	defer cancel()
	producer, consumer := connectExample(ctx)
	defer producer.Close()
	defer consumer.Close()

	if err := recipes.NewQueue(producer, "/example/mails").Put(ctx, []byte("hello")); err != nil {
		log.Panic(err)
	}
	queue := recipes.NewQueue(consumer, "/example/mails")
	item, err := queue.Take(ctx) // waits; no other client gets it while the session lives
	if err != nil {
		log.Panic(err)
	}
	fmt.Printf("%s\n", item.Data)
	fmt.Println(item.Complete(ctx)) // or Return; or it is returned if this process dies
	_, err = queue.TryTake(ctx)
	fmt.Println(errors.Is(err, recipes.ErrEmpty))
	// Output:
	// hello
	// <nil>
	// true
}

func ExampleBlob() {
	ctx, cancel := context.WithTimeout(context.Background(), exampleAtMost)
	defer cancel()
	ours, theirs := connectExample(ctx)
	defer theirs.Close()
	defer ours.Close()

	model := strings.Repeat("a large value, beyond the megabyte of a znode. ", 100_000)
	written, err := recipes.NewBlob(ours, "/example/model").Write(ctx, strings.NewReader(model), client.AnyVersion)
	if err != nil {
		log.Panic(err)
	}
	r, err := recipes.NewBlob(theirs, "/example/model").Open(ctx)
	if err != nil {
		log.Panic(err)
	}
	read, err := io.ReadAll(r) // or io.Copy to a file
	fmt.Println(string(read) == model, err)

	// Replace the version that was read, and none that another client has written since.
	_, err = recipes.NewBlob(theirs, "/example/model").Write(ctx, strings.NewReader("small"), r.Info().Stat.Version)
	fmt.Println(err)
	_, err = recipes.NewBlob(ours, "/example/model").Write(ctx, strings.NewReader("other"), written.Stat.Version)
	fmt.Println(errors.Is(err, client.ErrBadVersion))
	// Output:
	// true <nil>
	// <nil>
	// true
}
