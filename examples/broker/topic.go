package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"sync"
	"time"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/znode"
)

// The bounds of a topic.
const (
	maxMessage = 4 << 10 // bytes
	maxTopic   = 10_000  // messages, after which publishers are refused
	maxBatch   = 500     // messages in one request or answer
)

// copyTimeout bounds how long a primary waits for its backup. Then it looks for another.
const copyTimeout = 5 * time.Second

// Why a node refuses.
var (
	errNotHere = errors.New("this node is not the primary, or has no backup now: ask again")
	errFull    = errors.New("the topic is full")
	errStale   = errors.New("a later primary is known here")
)

// topic is a node's copy of a topic, and its part in it.
type topic struct {
	name string

	mu      sync.Mutex // protects the fields below
	log     *Log
	epoch   client.Version // the newest known here
	primary bool
	backup  string // its address; "" while nothing can be acknowledged
	failed  bool   // the backup of this epoch has failed
	safe    int    // every later primary has this many messages: they can be read
}

// publish accepts a message, and returns when both nodes have it on their disks.
func (t *topic) publish(m Message) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case !t.primary || t.backup == "":
		return errNotHere
	case t.log.Has(m): // and the backup, because there is one
		return nil
	case len(t.log.messages) >= maxTopic:
		return errFull
	}
	after := len(t.log.messages)
	if err := t.log.Append(m); err != nil {
		return diskError{err}
	}
	if err := t.send(context.Background(), t.backup, t.epoch, after, t.log.messages[after:]); err != nil {
		t.backup, t.failed = "", true
		return fmt.Errorf("%w (the backup: %w)", errNotHere, err)
	}
	t.safe = len(t.log.messages)
	return nil
}

// send sends another node the messages after the first ones.
func (t *topic) send(
	ctx context.Context, to string, epoch client.Version, after int, messages []Message,
) error {
	ctx, cancel := context.WithTimeout(ctx, copyTimeout)
	defer cancel()
	return ask(ctx, http.MethodPut, to, fmt.Sprintf("%s?epoch=%d&after=%d", t.name, epoch, after), messages, nil)
}

// sendAll sends another node a copy of everything. Nothing is published meanwhile,
// because there is no backup.
func (t *topic) sendAll(ctx context.Context, to string) error {
	t.mu.Lock()
	messages, epoch := t.log.messages, t.epoch
	t.mu.Unlock()
	for after := 0; after == 0 || after < len(messages); after += maxBatch {
		if err := t.send(ctx, to, epoch, after, messages[after:min(after+maxBatch, len(messages))]); err != nil {
			return err
		}
	}
	return nil
}

// receive is the other side of send. A primary that has been replaced is refused: its
// epoch is too low.
func (t *topic) receive(epoch client.Version, after int, messages []Message) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if epoch < t.epoch || after > len(t.log.messages) {
		return errStale
	}
	t.epoch, t.primary, t.backup = epoch, false, ""
	if after < len(t.log.messages) {
		if err := t.log.Truncate(after); err != nil {
			return diskError{err}
		}
	}
	if err := t.log.Append(messages...); err != nil {
		return diskError{err}
	}
	return nil
}

// read returns messages after an id.
func (t *topic) read(after int) ([]Message, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.primary {
		return nil, errNotHere
	}
	if after >= t.safe {
		return []Message{}, nil
	}
	return slices.Clone(t.log.messages[after:min(after+maxBatch, t.safe)]), nil
}

// follow makes the node stop being the primary.
func (t *topic) follow(epoch client.Version) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if epoch >= t.epoch {
		t.epoch, t.primary, t.backup = epoch, false, ""
	}
}

// lead makes the node the primary, with a backup or, if that has failed or there is
// none, without. It reports false if the epoch has ended.
//
// Without a backup no other node may become the primary, so its messages cannot be lost
// to another.
func (t *topic) lead(epoch client.Version, backup string) (current, has bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if epoch < t.epoch {
		return false, false
	}
	if epoch > t.epoch || !t.primary {
		t.epoch, t.primary, t.failed = epoch, true, false
		t.safe = len(t.log.messages)
	}
	if t.failed {
		backup = ""
	}
	t.backup = backup
	return true, backup != ""
}

// diskError makes a node end: it no longer knows the content of its disk.
type diskError struct{ error }

// The znodes of the broker; see the package's documentation.
const (
	root           = "/examples/broker"
	nodesPath      = root + "/nodes"
	topicsPath     = root + "/topics"
	shutdownPath   = root + "/shutdown"
	prohibitedPath = root + "/migration_prohibited"
)

// Status is the data of a node's znode.
type Status struct {
	Address string   // host:port
	Load    int      // how many topics it has
	Primary []string // the topics that it is the primary of
	Backup  []string
}

// Pair is the nodes that have every acknowledged message of a topic. No other node may
// become the primary. The version of its znode is the epoch: it grows with every change.
type Pair struct {
	Primary string // the current or the last primary; "" for a new topic
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

// topicName is the form of a topic's name, which is also that of its file and its
// znode.
var topicName = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,63}$`)

// CreateTopic adds a topic unless it exists. A node will take it.
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

// decode reads a znode of a cache; the zero value if it does not exist or cannot be
// decoded.
func decode[T Status | Pair | Server](cache *client.Cache, path string) (v T, stat client.Stat, ok bool) {
	node, ok := cache.Get(path)
	if ok && json.Unmarshal(node.Data, &v) != nil {
		var zero T
		return zero, client.Stat{}, false
	}
	return v, node.Stat, ok
}
