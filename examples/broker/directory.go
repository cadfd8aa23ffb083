package main

import (
	"context"
	"maps"
	"slices"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/recipes"
)

// The znodes of the broker; see the package's documentation.
const (
	root           = "/examples/broker"
	controllerPath = root + "/controller"
	registryPath   = root + "/registry"
	directoryPath  = root + "/directory"

	service = "broker" // its name in the registry
)

// Directory says which topic is where.
type Directory struct {
	// Controller is the token of the one who has written it last.
	Controller int64
	Topics     map[string]Placement
}

// Placement is where a topic is. The zero value is nowhere.
type Placement struct {
	Broker  string // ID
	Address string // host:port
	// Registration is the token of the broker's registration: the placement ends
	// with it.
	Registration int64
}

// followDirectory returns the directory as it is now and will be.
func followDirectory(
	ctx context.Context, c *client.Client,
) (*recipes.Value[Directory], error) {
	return recipes.NewValue(ctx, c, directoryPath, recipes.JSON[Directory]())
}

// CreateTopic adds a topic to the directory. The controller will place it.
func CreateTopic(ctx context.Context, c *client.Client, topic string) error {
	directory, err := followDirectory(ctx, c)
	if err != nil {
		return err
	}
	defer directory.Close()
	return directory.Update(ctx, func(d Directory) (Directory, error) {
		if _, ok := d.Topics[topic]; ok {
			return d, nil
		}
		d.Topics = with(d.Topics, topic, Placement{})
		return d, nil
	})
}

// with returns a copy of the topics in which one is placed elsewhere. The original
// may be shared with readers.
func with(topics map[string]Placement, topic string, p Placement) map[string]Placement {
	topics = maps.Clone(topics)
	if topics == nil {
		topics = map[string]Placement{}
	}
	topics[topic] = p
	return topics
}

// place places each topic whose broker is not registered any more at the broker
// with the fewest topics, and reports whether there was one.
func place(d Directory, brokers []recipes.Instance) (Directory, bool) {
	alive := map[int64]bool{}
	for _, b := range brokers {
		alive[b.FencingToken] = true
	}
	load := map[int64]int{}
	for _, p := range d.Topics {
		load[p.Registration]++
	}
	moved := false
	for _, topic := range slices.Sorted(maps.Keys(d.Topics)) {
		if alive[d.Topics[topic].Registration] || len(brokers) == 0 {
			continue
		}
		to := slices.MinFunc(brokers, func(a, b recipes.Instance) int {
			return load[a.FencingToken] - load[b.FencingToken]
		})
		load[to.FencingToken]++
		d.Topics = with(d.Topics, topic, Placement{to.ID, to.Address, to.FencingToken})
		moved = true
	}
	return d, moved
}
