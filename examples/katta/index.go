package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Document is a searchable text.
type Document struct {
	ID   string
	Text string
}

// Hit is a document that has words of a query.
type Hit struct {
	ID    string
	Text  string
	Score int // how many of the words it has, each as often as it has it
}

// Index is the inverted index of a shard: for each word, the documents that have
// it and how often.
type Index struct {
	documents []Document
	words     map[string]map[int]int
}

// NewIndex indexes documents.
func NewIndex(documents []Document) *Index {
	x := &Index{documents: documents, words: map[string]map[int]int{}}
	for i, d := range documents {
		for _, word := range wordsOf(d.Text) {
			if x.words[word] == nil {
				x.words[word] = map[int]int{}
			}
			x.words[word][i]++
		}
	}
	return x
}

// Search returns the documents that have a word of the query, the best first.
func (x *Index) Search(query string) []Hit {
	scores := map[int]int{}
	for _, word := range wordsOf(query) {
		for i, n := range x.words[word] {
			scores[i] += n
		}
	}
	hits := []Hit{}
	for i, score := range scores {
		hits = append(hits, Hit{x.documents[i].ID, x.documents[i].Text, score})
	}
	sortHits(hits)
	return hits
}

func sortHits(hits []Hit) {
	slices.SortFunc(hits, func(a, b Hit) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), strings.Compare(a.ID, b.ID))
	})
}

func wordsOf(text string) []string {
	return strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
		return !('a' <= r && r <= 'z' || '0' <= r && r <= '9')
	})
}

// shards is how many shards the program's own documents are in.
const shards = 5

// corpus are the documents, one a line.
const corpus = `
A lock is held by one client at a time
A fencing token grows from holder to holder
A store refuses a token that is older than the newest
A leader is elected by the lowest sequence number
A candidate watches only the one before it
A herd of watchers wakes up for one release
A session lives as long as its client is heard of
An ephemeral znode goes with its session
A watch fires once and is left again
A quorum is a majority of the servers
A write is on the disks of a majority before it is acknowledged
A read is served by the server that the client is connected to
A snapshot is what the log can be cut behind
A barrier makes everybody wait
A group is as large as the number of its living members
A queue gives each item to one consumer
A paused process does not know that it was paused
A token in the hand of the late is no token
`

// ShardNames are the shards of the corpus.
func ShardNames() (names []string) {
	for i := range shards {
		names = append(names, fmt.Sprintf("shard-%d", i))
	}
	return names
}

// Load returns the documents of a shard of the corpus.
func Load(shard string) (documents []Document, err error) {
	for i, line := range strings.Split(strings.TrimSpace(corpus), "\n") {
		if shard == fmt.Sprintf("shard-%d", i%shards) {
			documents = append(documents, Document{ID: fmt.Sprintf("line %d", i+1), Text: line})
		}
	}
	if documents == nil {
		return nil, fmt.Errorf("the corpus has no shard %q; want shard-0 to shard-%d", shard, shards-1)
	}
	return documents, nil
}
