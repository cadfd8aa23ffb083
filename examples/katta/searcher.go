package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"time"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/znode"
)

const (
	// retryAfter is the pause after no node has answered for a shard.
	retryAfter = 50 * time.Millisecond
	// maxAnswer bounds a node's answer, in bytes.
	maxAnswer = 16 << 20
)

// Searcher asks all shards. All methods are safe for concurrent use.
type Searcher struct {
	shards  *client.Cache // all shards
	serving *client.Cache // the nodes that have them
}

// NewSearcher returns a searcher; Close ends it.
func NewSearcher(ctx context.Context, c *client.Client) (*Searcher, error) {
	shards, err := client.NewCache(ctx, c, shardsPath)
	if err != nil {
		return nil, err
	}
	serving, err := client.NewCache(ctx, c, servingPath)
	if err != nil {
		shards.Close()
		return nil, err
	}
	return &Searcher{shards, serving}, nil
}

// Close ends the searcher.
func (s *Searcher) Close() {
	s.shards.Close()
	s.serving.Close()
}

// Search returns the documents of all shards that have a word of the query, the
// best first. It is complete or fails: if no node has a shard it waits for one
// until ctx ends.
func (s *Searcher) Search(ctx context.Context, query string) ([]Hit, error) {
	type answer struct {
		hits []Hit
		err  error
	}
	names := s.shards.Children(shardsPath)
	if len(names) == 0 {
		return nil, errors.New("the index has no shards yet: start a node")
	}
	answers := make(chan answer, len(names))
	for _, shard := range names {
		go func() {
			hits, err := s.searchShard(ctx, shard, query)
			answers <- answer{hits, err}
		}()
	}
	var all []Hit
	var failed error
	for range names {
		a := <-answers
		all = append(all, a.hits...)
		if a.err != nil {
			failed = a.err
		}
	}
	if failed != nil {
		return nil, failed
	}
	sortHits(all)
	return all, nil
}

// searchShard asks the nodes that have a shard, in random order, until one answers.
func (s *Searcher) searchShard(ctx context.Context, shard, query string) ([]Hit, error) {
	path := znode.Join(servingPath, shard)
	err := errors.New("no node has it")
	for {
		changed := s.serving.Changed()
		nodes := s.serving.Children(path)
		rand.Shuffle(len(nodes), func(i, j int) { nodes[i], nodes[j] = nodes[j], nodes[i] })
		for _, name := range nodes {
			var hits []Hit
			if node, ok := s.serving.Get(znode.Join(path, name)); ok {
				hits, err = ask(ctx, string(node.Data), shard, query)
				if err == nil {
					return hits, nil
				}
			}
		}
		select {
		case <-changed:
		case <-time.After(retryAfter):
		case <-ctx.Done():
			return nil, fmt.Errorf("searching %s: %w: %w", shard, ctx.Err(), err)
		}
	}
}

// ask asks one node.
func ask(ctx context.Context, address, shard, query string) ([]Hit, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/"+
		url.PathEscape(shard)+"?q="+url.QueryEscape(query), nil)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("node at %s: %s", address, response.Status)
	}
	var hits []Hit
	err = json.Unmarshal(body, &hits)
	return hits, err
}
