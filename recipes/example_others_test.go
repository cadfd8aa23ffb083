package recipes_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/recipes"
)

// ok ends an example that has failed.
func ok(err error) {
	if err != nil {
		log.Panic(err)
	}
}

func ExampleRWMutex() {
	ctx, cancel := context.WithTimeout(context.Background(), exampleAtMost)
	defer cancel()
	ours, theirs := connectExample(ctx)
	defer theirs.Close()
	defer ours.Close()

	us, them := recipes.NewRWMutex(ours, "/example/catalogue"), recipes.NewRWMutex(theirs, "/example/catalogue")
	reading, err := us.RLock(ctx)
	ok(err)
	alsoReading, err := them.RLock(ctx)
	ok(err)
	fmt.Println("both read:", reading.Err() == nil && alsoReading.Err() == nil)
	ok(reading.Release(ctx))
	ok(alsoReading.Release(ctx))

	writing, err := us.Lock(ctx) // waits for all readers
	ok(err)
	reading, err = us.Downgrade(ctx, writing) // and no other writer comes in between
	ok(err)
	writers, err := them.Writers(ctx)
	fmt.Println("writers:", len(writers), err)
	fmt.Println("release:", reading.Release(ctx))
	// Output:
	// both read: true
	// writers: 0 <nil>
	// release: <nil>
}

func ExampleSemaphore() {
	ctx, cancel := context.WithTimeout(context.Background(), exampleAtMost)
	defer cancel()
	ours, theirs := connectExample(ctx)
	defer theirs.Close()
	defer ours.Close()

	// All clients must give the same number of leases.
	us, them := recipes.NewSemaphore(ours, "/example/licences", 2), recipes.NewSemaphore(theirs, "/example/licences", 2)
	first, err := us.Acquire(ctx) // waits
	ok(err)
	_, err = them.Acquire(ctx)
	ok(err)
	_, err = us.TryAcquire(ctx)
	fmt.Println("a third:", !errors.Is(err, recipes.ErrNotAcquired))
	ok(first.Release(ctx))
	_, err = us.TryAcquire(ctx)
	fmt.Println("after a release:", err)
	// Output:
	// a third: false
	// after a release: <nil>
}

func ExampleBarrier() {
	ctx, cancel := context.WithTimeout(context.Background(), exampleAtMost)
	defer cancel()
	ours, theirs := connectExample(ctx)
	defer theirs.Close()
	defer ours.Close()

	gate := recipes.NewBarrier(ours, "/example/maintenance")
	ok(gate.Set(ctx))
	passed := make(chan error)
	go func() { passed <- recipes.NewBarrier(theirs, "/example/maintenance").Wait(ctx) }()
	ok(gate.Remove(ctx)) // those who wait go on
	fmt.Println("passed:", <-passed)
	// Output:
	// passed: <nil>
}

func ExampleDoubleBarrier() {
	ctx, cancel := context.WithTimeout(context.Background(), exampleAtMost)
	defer cancel()
	ours, theirs := connectExample(ctx)
	defer theirs.Close()
	defer ours.Close()

	// Two workers begin together, and none goes on before both have finished.
	work := func(c *client.Client) error {
		in, err := recipes.NewDoubleBarrier(c, "/example/round", 2).Enter(ctx)
		if err != nil {
			return err
		}
		// ... work ...
		return in.Leave(ctx)
	}
	done := make(chan error)
	go func() { done <- work(theirs) }()
	fmt.Println(work(ours), <-done)
	// Output:
	// <nil> <nil>
}

func ExamplePriorityQueue() {
	ctx, cancel := context.WithTimeout(context.Background(), exampleAtMost)
	defer cancel()
	producer, consumer := connectExample(ctx)
	defer producer.Close()
	defer consumer.Close()

	jobs := recipes.NewPriorityQueue(producer, "/example/jobs")
	ok(jobs.Put(ctx, 10, []byte("report")))
	ok(jobs.Put(ctx, -1, []byte("alarm"))) // the lowest number is taken first
	for range 2 {
		item, err := recipes.NewPriorityQueue(consumer, "/example/jobs").Take(ctx)
		ok(err)
		fmt.Printf("%s %v\n", item.Data, item.Complete(ctx))
	}
	// Output:
	// alarm <nil>
	// report <nil>
}

func ExampleDelayQueue() {
	ctx, cancel := context.WithTimeout(context.Background(), exampleAtMost)
	defer cancel()
	producer, consumer := connectExample(ctx)
	defer producer.Close()
	defer consumer.Close()

	reminders := recipes.NewDelayQueue(producer, "/example/reminders")
	now := time.Now()
	ok(reminders.Put(ctx, now, []byte("now")))
	ok(reminders.Put(ctx, now.Add(-time.Minute), []byte("overdue")))
	ok(reminders.Put(ctx, now.Add(time.Hour), []byte("in an hour")))
	for range 2 {
		item, err := recipes.NewDelayQueue(consumer, "/example/reminders").Take(ctx)
		ok(err)
		fmt.Printf("%s %v\n", item.Data, item.Complete(ctx))
	}
	_, err := recipes.NewDelayQueue(consumer, "/example/reminders").TryTake(ctx)
	fmt.Println("another is due:", !errors.Is(err, recipes.ErrEmpty))
	// Output:
	// overdue <nil>
	// now <nil>
	// another is due: false
}

func ExampleCounter() {
	ctx, cancel := context.WithTimeout(context.Background(), exampleAtMost)
	defer cancel()
	ours, theirs := connectExample(ctx)
	defer theirs.Close()
	defer ours.Close()

	_, err := recipes.NewCounter(ours, "/example/orders").Set(ctx, 40)
	ok(err)
	total, err := recipes.NewCounter(theirs, "/example/orders").Add(ctx, 2)
	fmt.Println(total, err)
	swapped, err := recipes.NewCounter(ours, "/example/orders").CompareAndSwap(ctx, 40, 0)
	fmt.Println(swapped, err)
	// Output:
	// 42 <nil>
	// false <nil>
}

func ExampleRegistry() {
	ctx, cancel := context.WithTimeout(context.Background(), exampleAtMost)
	defer cancel()
	server, caller := connectExample(ctx)
	defer caller.Close()
	defer server.Close()

	port := 8080
	registration, err := recipes.NewRegistry(server, "/example/services").Register(ctx, recipes.Instance{
		Service: "mail", ID: "one", Address: "10.0.0.1", Port: &port,
	}) // until it leaves, or its session ends
	ok(err)
	instances, err := recipes.NewRegistry(caller, "/example/services").Instances(ctx, "mail")
	ok(err)
	for _, i := range instances {
		fmt.Println(i.ID, i.Address, *i.Port)
	}
	fmt.Println(registration.Leave(ctx))
	// Output:
	// one 10.0.0.1 8080
	// <nil>
}

func ExampleValue() {
	ctx, cancel := context.WithTimeout(context.Background(), exampleAtMost)
	defer cancel()
	ours, theirs := connectExample(ctx)
	defer theirs.Close()
	defer ours.Close()

	type config struct{ Level string }
	theirConfig, err := recipes.NewValue(ctx, theirs, "/example/config", recipes.JSON[config]())
	ok(err)
	defer theirConfig.Close()
	set := func(level string) {
		ok(theirConfig.Update(ctx, func(config) (config, error) { return config{level}, nil }))
	}
	set("info")

	ourConfig, err := recipes.NewValue(ctx, ours, "/example/config", recipes.JSON[config]())
	ok(err)
	defer ourConfig.Close()
	for c, err := range ourConfig.Watch(ctx) {
		if err != nil {
			fmt.Println("keeping the last good one:", err) // the loop goes on
			continue
		}
		fmt.Println("the level is", c.Level)
		if c.Level == "debug" {
			break
		}
		set("debug") // usually another program does it
	}
	// Output:
	// the level is info
	// the level is debug
}
