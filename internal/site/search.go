package site

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// searched is what the script of the search is given. Sections are numbered through all pages, in their order.
type searched struct {
	Pages    [][2]string // path and title
	Sections []section
	Words    string // all words, sorted
	// In has the sections of each word: the first one's number, and the distances of those that follow, to base 36.
	In string
}

// section is a heading, and the number of its page.
type section struct {
	Page     int
	ID, Text string
}

// MarshalJSON makes a list of a section, which is shorter.
func (s section) MarshalJSON() ([]byte, error) { return json.Marshal([]any{s.Page, s.ID, s.Text}) }

// index is a script that sets the variable searched.
func index(pages []*page) []byte {
	var s searched
	in := map[string][]int{}
	for i, p := range pages {
		s.Pages = append(s.Pages, [2]string{p.url, p.title})
		for _, h := range p.headings {
			number := len(s.Sections)
			s.Sections = append(s.Sections, section{i, h.ID, h.Text})
			for _, word := range wordsOf(h.Text + " " + h.words) {
				if list := in[word]; len(list) == 0 || list[len(list)-1] != number {
					in[word] = append(list, number)
				}
			}
		}
	}
	words := slices.Sorted(maps.Keys(in))
	s.Words = strings.Join(words, " ")
	lists := make([]string, len(words))
	for i, word := range words {
		numbers, last := make([]string, len(in[word])), 0
		for k, n := range in[word] {
			numbers[k], last = strconv.FormatInt(int64(n-last), 36), n
		}
		lists[i] = strings.Join(numbers, ",")
	}
	s.In = strings.Join(lists, " ")
	text, err := json.Marshal(s)
	if err != nil {
		panic("site: invariant broken: the index of the search: " + err.Error()) // strings and numbers
	}
	return append(append([]byte("globalThis.searched = "), text...), ";\n"...)
}

// wordsOf splits a text as the script splits what is typed.
func wordsOf(text string) []string {
	return strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r)
	})
}
