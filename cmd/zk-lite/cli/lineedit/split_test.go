package lineedit

import (
	"errors"
	"slices"
	"testing"
)

func TestSplit(t *testing.T) {
	for _, c := range []struct {
		line  string
		words []string
	}{
		{"", nil},
		{"  \t ", nil},
		{"get /a", []string{"get", "/a"}},
		{`set /a 'two words' `, []string{"set", "/a", "two words"}},
		{`set /a "a \"b\" \\ 'c'"`, []string{"set", "/a", `a "b" \ 'c'`}},
		{`a\ b 'c\d'e`, []string{"a b", `c\de`}},
		{`set /a '' ""`, []string{"set", "/a", "", ""}},
		{"get /a # and so on", []string{"get", "/a"}},
		{"set /a b#c", []string{"set", "/a", "b#c"}},
		{"set /a grüße", []string{"set", "/a", "grüße"}},
	} {
		if words, err := Split(c.line); err != nil || !slices.Equal(words, c.words) {
			t.Errorf("Split(%q) = %q, %v; want %q", c.line, words, err, c.words)
		}
	}
	for _, line := range []string{"'", `set /a "b`, `a 'b\'`[:4]} {
		if words, err := Split(line); !errors.Is(err, ErrQuote) {
			t.Errorf("Split(%q) = %q, %v", line, words, err)
		}
	}
}

func TestLast(t *testing.T) {
	for _, c := range []struct {
		line  string
		words int
		last  string
		start int
	}{
		{"", 0, "", 0}, {"ge", 0, "ge", 0}, {"get ", 1, "", 4}, {"get /a", 1, "/a", 4},
		{"set '/a b", 1, "/a b", 4}, {"get /a #", 2, "", 8}, {"'", 0, "", 0},
	} {
		words, last, start := Last(c.line)
		if len(words) != c.words || last != c.last || start != c.start {
			t.Errorf("Last(%q) = %q, %q, %d; want %d words, %q, %d", c.line, words, last, start, c.words, c.last, c.start)
		}
	}
}

func FuzzSplit_ReadsWhatQuoteWrites(f *testing.F) {
	f.Add("get", "/a b")
	f.Add("'", `\"#`)
	f.Fuzz(func(t *testing.T, a, b string) {
		words, err := Split(Quote(a) + "  " + Quote(b))
		if err != nil || !slices.Equal(words, []string{a, b}) {
			t.Errorf("%q, %v", words, err)
		}
		_, _ = Split(a) // must not panic
		if _, _, start := Last(a); start > len(a) {
			t.Errorf("Last(%q) starts at %d", a, start)
		}
	})
}
