// Command broker is a message broker after the Yahoo! Message Broker of the ZooKeeper
// paper (Hunt et al., USENIX ATC 2010, section 4): topics, each on two nodes, its primary
// and its backup. A message is acknowledged when both have it on their disks. If one dies,
// the other continues and copies everything to a third: nothing is lost. README.md shows
// it.
//
// The znodes below /examples/broker:
//
//	nodes/ID                       ephemeral: a node, with its address, load and topics
//	topics/TOPIC                   the pair of nodes that have every acknowledged message
//	topics/TOPIC/primary, backup   ephemeral: the two, while they live
//	topics/TOPIC/subscribers/NAME  the id of the last message that a subscriber has processed
//	migration_prohibited           while it is there no topic changes its nodes
//	shutdown                       when it is there all nodes end
//
// # Why nothing is lost
//
// Only a node of the pair may become the primary, and a node joins the pair when it has a
// copy of everything. Every change of the pair gives the topic's znode a new version, the
// epoch. A node refuses copies of a lower epoch than it knows, so a former primary that
// does not know that it was replaced (it was paused, or is cut off from the ensemble)
// cannot acknowledge anything: its backup has replaced it. This needs no clock.
// Subscribers do not see a message that only the primary has, because it may be lost.
//
// If both nodes of a pair die, the topic waits for one of them to return with its
// directory.
//
// # Why nothing comes twice
//
// A publisher numbers its messages, so that every primary recognizes one that is sent
// again: the number is in the log. A message's id is its place in the log, the same
// on all nodes, so a subscriber that keeps the last id continues after it.
//
// # Concurrency
//
// Node.Run has a goroutine that serves HTTP, and manages the topics in that of its caller;
// the goroutine has ended when it returns. All methods of Customer are safe for concurrent
// use.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"time"

	"github.com/zk-lite/zk-lite/client"
)

const (
	// connectTimeout bounds how long the program waits for its first session.
	connectTimeout = 10 * time.Second
	// publishTimeout bounds how long a publisher waits for a primary: longer than a
	// session lives without its process, after which a dead primary is replaced.
	publishTimeout = 30 * time.Second
)

func main() {
	servers := flag.String("servers", "127.0.0.1:2181,127.0.0.1:2182,127.0.0.1:2183",
		"the ensemble, as host:port,...")
	dir := flag.String("dir", "", "be a node with its files in this directory, whose last name is the node's")
	publish := flag.String("publish", "", "publish the arguments to this topic, and end")
	subscribe := flag.String("subscribe", "", "print the messages of this topic")
	as := flag.String("as", "", "the subscriber's name: begin after what it has seen, not with the first message")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	err := run(ctx, *servers, func(ctx context.Context, c *client.Client) error {
		switch {
		case *dir != "" && *publish == "" && *subscribe == "":
			return (&Node{Client: c, ID: filepath.Base(*dir), Dir: *dir, Log: os.Stdout}).Run(ctx)
		case *publish != "" && *dir == "" && *subscribe == "":
			return send(ctx, c, *publish, strings.Join(flag.Args(), " "))
		case *subscribe != "" && *dir == "" && *publish == "":
			return receive(ctx, c, *subscribe, *as)
		}
		return errors.New("want one of -dir, -publish and -subscribe")
	})
	if err != nil && ctx.Err() == nil {
		fmt.Fprintln(os.Stderr, "broker:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, servers string, do func(context.Context, *client.Client) error) error {
	within, stop := context.WithTimeout(ctx, connectTimeout)
	defer stop()
	c, err := client.Connect(within, servers)
	if err != nil {
		return fmt.Errorf("no session (start servers with: zk-lite dev): %w", err)
	}
	defer func() { _ = c.Close() }() // otherwise the session expires
	return do(ctx, c)
}

func send(ctx context.Context, c *client.Client, topic, text string) error {
	if len(text) > maxMessage {
		return fmt.Errorf("the message has %d bytes; it may have %d", len(text), maxMessage)
	}
	ctx, cancel := context.WithTimeout(ctx, publishTimeout)
	defer cancel()
	if err := CreateTopic(ctx, c, topic); err != nil {
		return err
	}
	return NewCustomer(c).Publish(ctx, topic, text)
}

func receive(ctx context.Context, c *client.Client, topic, as string) error {
	if err := CreateTopic(ctx, c, topic); err != nil {
		return err
	}
	customer := NewCustomer(c)
	messages := customer.Read(ctx, topic, 0)
	if as != "" {
		messages = customer.Subscribe(ctx, topic, as)
	}
	for m, err := range messages {
		if err != nil {
			return err
		}
		fmt.Printf("%d %s\n", m.ID, m.Text)
	}
	return nil
}
