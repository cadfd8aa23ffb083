package main

import (
	"cmp"
	"slices"
	"strings"
)

// Document is what is searched for.
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
