package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/recipes"
)

// errDeposed says that a later controller has written the directory.
var errDeposed = errors.New("a later controller is in office")

// Controller places topics at brokers, while it is elected.
type Controller struct {
	Client *client.Client
	Name   string
	Log    io.Writer // what happens, for people
}

// Run stands for election, and is the controller when elected, until ctx ends.
func (k *Controller) Run(ctx context.Context) error {
	election := recipes.NewElection(k.Client, controllerPath, recipes.WithData([]byte(k.Name)))
	return election.Run(ctx, k.lead)
}

// lead keeps every topic at a broker that is alive, until ctx ends because the
// term does.
func (k *Controller) lead(ctx context.Context, term *recipes.Term) error {
	fmt.Fprintf(k.Log, "%s: is the controller, token %#x\n", k.Name, term.FencingToken())
	directory, err := followDirectory(ctx, k.Client)
	if err != nil {
		return err
	}
	defer directory.Close()
	ctx, cancel := context.WithCancel(ctx)
	changes, ended := make(chan []recipes.Instance), make(chan error, 1)
	go func() { ended <- k.follow(ctx, changes) }()
	var brokers []recipes.Instance
	for err == nil {
		changed := directory.Changed()
		if err = k.placeAll(ctx, term, directory, brokers); err != nil {
			break
		}
		select {
		case brokers = <-changes:
		case <-changed:
			err = directory.Err()
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	cancel()
	return errors.Join(err, <-ended)
}

// follow sends the brokers that are alive whenever they have changed.
func (k *Controller) follow(ctx context.Context, changes chan<- []recipes.Instance) error {
	registry := recipes.NewRegistry(k.Client, registryPath)
	for change, err := range registry.Watch(ctx, service) {
		if err != nil {
			return err
		}
		select {
		case changes <- change.Instances:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// placeAll writes a new directory if one is needed.
func (k *Controller) placeAll(
	ctx context.Context, term *recipes.Term,
	directory *recipes.Value[Directory], brokers []recipes.Instance,
) error {
	d, _ := directory.Get()
	if _, moved := place(d, brokers); !moved {
		return nil
	}
	return directory.Update(ctx, func(d Directory) (Directory, error) {
		if d.Controller > term.FencingToken() {
			return d, errDeposed
		}
		d.Controller = term.FencingToken()
		placed, _ := place(d, brokers)
		for topic, p := range placed.Topics {
			if was := d.Topics[topic]; was != p {
				fmt.Fprintf(k.Log, "%s: %s goes to %s (was %q)\n", k.Name, topic, p.Broker, was.Broker)
			}
		}
		return placed, nil
	})
}
