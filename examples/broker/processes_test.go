package main

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/examples/internal/testserver"
	"github.com/zk-lite/zk-lite/internal/testkit/tier"
	"github.com/zk-lite/zk-lite/internal/testkit/wait"
	"github.com/zk-lite/zk-lite/recipes"
)

func TestMain(m *testing.M) {
	os.Exit(testserver.Main(m, map[string]testserver.Role{
		"broker": func(ctx context.Context, c *client.Client, name, _ string) error {
			return (&Broker{Client: c, ID: name, Log: os.Stdout}).Run(ctx)
		},
		"controller": func(ctx context.Context, c *client.Client, name, _ string) error {
			return (&Controller{Client: c, Name: name, Log: os.Stdout}).Run(ctx)
		},
	}))
}

// Brokers, controllers and servers are processes and are killed. All topics go on, at
// brokers that live, and a controller that lives is in office.
func TestBroker_ProcessesKilled(t *testing.T) {
	tier.Seconds(t)
	t.Parallel() // it mostly waits for sessions to expire
	p := testserver.StartProcesses(t)
	brokers, controllers := map[string]*testserver.Child{}, map[string]*testserver.Child{}
	start := func(role string, of map[string]*testserver.Child) {
		c := p.Run(role, "")
		of[c.Name] = c
	}
	for range 3 {
		start("broker", brokers)
	}
	for range 2 {
		start("controller", controllers)
	}
	w := &town{T: t, ctx: p.Context}
	const topics = 4
	for i := range topics {
		w.no(CreateTopic(p.Context, p.Client, topicName(i)))
	}
	var err error
	w.customer, err = NewCustomer(p.Context, p.Client)
	w.no(err)
	defer w.customer.Close()
	election := recipes.NewElection(p.Client, controllerPath)
	for round := range 3 {
		at := w.publishAll(topics, fmt.Sprintf("message %d", round))
		dead := at[topicName(p.Rand.IntN(topics))].Broker
		if b := brokers[dead]; b != nil { // not if the topic has just moved to one long dead
			b.Kill()
			delete(brokers, dead)
		}
		if leader, err := election.Leader(p.Context); err == nil && round == 1 {
			controllers[string(leader.Data)].Kill()
			delete(controllers, string(leader.Data))
			start("controller", controllers)
		}
		p.RestartServer()
		start("broker", brokers)
	}
	wait.Until(t, "all topics are at brokers that live", func() bool {
		d, _ := w.customer.directory.Get()
		for i := range topics {
			if brokers[d.Topics[topicName(i)].Broker] == nil {
				return false
			}
		}
		return true
	})
	w.publishAll(topics, "last")
	for i := range topics {
		for message, err := range w.customer.Subscribe(p.Context, topicName(i)) {
			w.no(err)
			if message == "last" {
				break
			}
		}
	}
	wait.Until(t, "a controller that lives is in office", func() bool {
		leader, err := election.Leader(p.Context)
		return err == nil && controllers[string(leader.Data)] != nil
	})
}
