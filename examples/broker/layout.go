package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/znode"
)

// The znodes of the broker; see the package's documentation.
const (
	root           = "/examples/broker"
	nodesPath      = root + "/nodes"
	topicsPath     = root + "/topics"
	shutdownPath   = root + "/shutdown"
	prohibitedPath = root + "/migration_prohibited"
)

// Status is what a node says of itself.
type Status struct {
	Address string   // host:port
	Load    int      // how many topics it has
	Primary []string // the topics that it is the primary of
	Backup  []string
}

// Pair is the nodes that have every acknowledged message of a topic. Nobody else may
// become the primary. The version of its znode is the epoch: it grows with every change.
type Pair struct {
	Primary string // who is the primary, or was the last; "" for a new topic
	Backup  string // "" while there is none
}

// Server is in the znodes that the primary and the backup of a topic hold while they live.
type Server struct{ Node, Address string }

func primaryPath(topic string) string { return topicPath(topic) + "/primary" }
func backupPath(topic string) string  { return topicPath(topic) + "/backup" }
func topicPath(topic string) string   { return znode.Join(topicsPath, topic) }
func subscriberPath(topic, name string) string {
	return znode.Join(topicPath(topic)+"/subscribers", name)
}

// topicName is what a topic may be called: its file and its znode have the name.
var topicName = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,63}$`)

// CreateTopic adds a topic, if it is not there. A node will take it.
func CreateTopic(ctx context.Context, c *client.Client, topic string) error {
	if !topicName.MatchString(topic) {
		return fmt.Errorf("topic %q: want at most 64 of a-z, 0-9 and -, the first no -", topic)
	}
	if err := c.EnsurePath(ctx, topicsPath, client.Persistent); err != nil {
		return err
	}
	_, _, err := c.Create(ctx, topicPath(topic), encode(Pair{}), client.Persistent)
	if errors.Is(err, client.ErrNodeExists) {
		return nil
	}
	return err
}

func encode[T Status | Pair | Server](v T) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err) // structs of strings and numbers can be encoded
	}
	return data
}

// decode reads what is in a cache; of what is not there or cannot be read the zero value.
func decode[T Status | Pair | Server](cache *client.Cache, path string) (v T, stat client.Stat, ok bool) {
	node, ok := cache.Get(path)
	if ok && json.Unmarshal(node.Data, &v) != nil {
		var zero T
		return zero, client.Stat{}, false
	}
	return v, node.Stat, ok
}
