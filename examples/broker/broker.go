package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/recipes"
)

// The bounds of a broker's memory.
const (
	maxMessage = 64 << 10 // bytes
	maxTopic   = 10_000   // messages of one topic, after which publishers are refused
)

// Broker takes the messages of the topics that are placed at it, and gives them to
// whoever asks.
type Broker struct {
	Client *client.Client
	ID     string    // no two brokers may have the same
	Log    io.Writer // what happens, for people

	directory *recipes.Value[Directory]

	mu           sync.Mutex // protects the fields below
	session      client.Session
	registration int64 // that the session owns; 0 before there is one
	topics       map[string][]string
}

// Run serves until ctx ends. The broker listens before it can be found.
func (b *Broker) Run(ctx context.Context) error {
	var err error
	if b.directory, err = followDirectory(ctx, b.Client); err != nil {
		return err
	}
	defer b.directory.Close()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Fprintf(b.Log, "%s: listens at %s\n", b.ID, listener.Addr())
	mux := http.NewServeMux()
	mux.HandleFunc("POST /{topic}", b.publish)
	mux.HandleFunc("GET /{topic}", b.read)
	server := &http.Server{Handler: mux}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	for err == nil {
		err = b.live(ctx, listener.Addr().String())
	}
	err = errors.Join(err, server.Close())
	if served := <-ended; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return err
}

// live registers the broker, and returns nil when the session is lost that owns the
// registration. With the session the broker gives up its topics and their messages:
// whoever has the topics next begins anew, and so does the broker in its next life.
func (b *Broker) live(ctx context.Context, address string) error {
	session := b.Client.Session()
	r, err := recipes.NewRegistry(b.Client, registryPath).Register(ctx,
		recipes.Instance{Service: service, ID: b.ID, Address: address})
	if err != nil {
		return err
	}
	defer func() { _ = r.Leave(ctx) }() // or gone with the session
	token := r.FencingToken()
	if session.Err() != nil {
		return nil // lost by now: it is not certain which session the token is of
	}
	b.mu.Lock()
	b.session, b.registration, b.topics = session, token, map[string][]string{}
	b.mu.Unlock()
	fmt.Fprintf(b.Log, "%s: is registered, token %#x\n", b.ID, token)
	select {
	case <-session.Done():
		fmt.Fprintf(b.Log, "%s: has lost its session\n", b.ID)
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// hasLocked reports whether a topic is here. The session is asked and not only the
// directory: the directory of a broker that is cut off is old.
func (b *Broker) hasLocked(topic string) bool {
	d, _ := b.directory.Get()
	p, ok := d.Topics[topic]
	return ok && p.Registration == b.registration && b.registration != 0 && b.session.Err() == nil
}

func (b *Broker) publish(w http.ResponseWriter, r *http.Request) {
	message, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxMessage))
	if err != nil {
		http.Error(w, err.Error(), http.StatusRequestEntityTooLarge)
		return
	}
	topic := r.PathValue("topic")
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case !b.hasLocked(topic):
		http.Error(w, "the topic is not here", http.StatusMisdirectedRequest)
	case len(b.topics[topic]) >= maxTopic:
		http.Error(w, "the topic is full", http.StatusInsufficientStorage)
	default:
		b.topics[topic] = append(b.topics[topic], string(message))
		fmt.Fprintf(b.Log, "%s: has message %d of %s\n", b.ID, len(b.topics[topic]), topic)
	}
}

// read answers with the messages of a topic from a number on, as JSON.
func (b *Broker) read(w http.ResponseWriter, r *http.Request) {
	from, err := strconv.Atoi(r.FormValue("from"))
	if err != nil || from < 0 {
		http.Error(w, "from= is to be the number of a message", http.StatusBadRequest)
		return
	}
	topic, messages := r.PathValue("topic"), []string{}
	b.mu.Lock()
	here := b.hasLocked(topic)
	if all := b.topics[topic]; from < len(all) {
		messages = all[from:len(all):len(all)]
	}
	b.mu.Unlock()
	if !here {
		http.Error(w, "the topic is not here", http.StatusMisdirectedRequest)
		return
	}
	_ = json.NewEncoder(w).Encode(messages) // a reader who is gone asks again
}
