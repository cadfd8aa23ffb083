package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/zk-lite/zk-lite/client"
)

const (
	// connectTimeout bounds how long the program waits for its first session.
	connectTimeout = 10 * time.Second
	// publishTimeout bounds how long a publisher waits for a broker: longer than a
	// session lives without its process, after which a dead broker is replaced.
	publishTimeout = 30 * time.Second
)

func main() {
	servers := flag.String("servers", "127.0.0.1:2181,127.0.0.1:2182,127.0.0.1:2183",
		"the ensemble, as host:port,...")
	publish := flag.String("publish", "", "publish the arguments to this topic, and end")
	subscribe := flag.String("subscribe", "", "print the messages of this topic")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	err := run(ctx, *servers, *publish, *subscribe, strings.Join(flag.Args(), " "))
	if err != nil && ctx.Err() == nil {
		fmt.Fprintln(os.Stderr, "broker:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, servers, publish, subscribe, message string) error {
	within, stop := context.WithTimeout(ctx, connectTimeout)
	defer stop()
	c, err := client.Connect(within, servers)
	if err != nil {
		return fmt.Errorf("no session (start servers with: zk-lite dev): %w", err)
	}
	defer func() { _ = c.Close() }() // what is not closed expires
	switch topic := publish + subscribe; {
	case publish != "" && subscribe != "":
		return errors.New("want one of -publish and -subscribe")
	case topic == "":
		return serve(ctx, c)
	default:
		if err := CreateTopic(ctx, c, topic); err != nil {
			return err
		}
	}
	customer, err := NewCustomer(ctx, c)
	if err != nil {
		return err
	}
	defer customer.Close()
	if publish != "" {
		ctx, cancel := context.WithTimeout(ctx, publishTimeout)
		defer cancel()
		return customer.Publish(ctx, publish, message)
	}
	for message, err := range customer.Subscribe(ctx, subscribe) {
		if err != nil {
			return err
		}
		fmt.Println(message)
	}
	return nil
}

// serve is a broker, and perhaps the controller, until ctx ends.
func serve(ctx context.Context, c *client.Client) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	name := fmt.Sprintf("broker-%d", os.Getpid())
	ended := make(chan error)
	go func() { ended <- (&Controller{Client: c, Name: name, Log: os.Stdout}).Run(ctx) }()
	go func() { ended <- (&Broker{Client: c, ID: name, Log: os.Stdout}).Run(ctx) }()
	err := <-ended
	cancel()
	return errors.Join(err, <-ended)
}
