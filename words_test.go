package zklite_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// retired are former words in identifiers, each with the word to use. The list has only words
// without another use here. The glossary is in docs/ARCHITECTURE.md.
var retired = map[string]string{
	"births":      "created",
	"canned":      "noop",
	"ceiling":     "noop",
	"contender":   "waiter",
	"contenders":  "waiters",
	"culprit":     "failed",
	"depart":      "startWrite",
	"departed":    "startWrite",
	"door":        "server or listener",
	"doors":       "servers or listeners",
	"excuse":      "extendDeadlines",
	"exorcise":    "clear",
	"farewell":    "last request",
	"ghost":       "stale leader",
	"ghosts":      "stale leaders",
	"governor":    "controller",
	"greet":       "handshake",
	"greeting":    "handshake",
	"grid":        "period",
	"guests":      "long requests",
	"heat":        "JIT warm-up",
	"heated":      "JIT warm-up",
	"hurry":       "StopRetrying",
	"kick":        "disconnect or wake",
	"kicked":      "disconnected",
	"nudge":       "wake or tryFlush",
	"orphan":      "closedElsewhere",
	"orphans":     "closedElsewhere",
	"poke":        "wake",
	"pongs":       "ping replies",
	"reign":       "leadership",
	"spared":      "CheckStop",
	"spares":      "CheckStop",
	"standing":    "suffrage",
	"survey":      "status",
	"tolerates":   "failures tolerated",
	"unannounced": "raw",
	"unheard":     "silent",
	"welcome":     "handshake",
	"withheld":    "delayed",
	"withhold":    "delay",
}

// TestWords_RetiredOnesStayAway: one word for one thing. A second word for it makes a reader look for a
// second thing.
func TestWords_RetiredOnesStayAway(t *testing.T) {
	for _, file := range files(t, ".go") {
		set := token.NewFileSet()
		tree, err := parser.ParseFile(set, file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		check := func(where token.Pos, name string) {
			for _, word := range wordsOf(name) {
				if use, ok := retired[word]; ok {
					t.Errorf("%v: %s contains %q; the word is %s", set.Position(where), name, word, use)
				}
			}
		}
		check(tree.Package, strings.TrimSuffix(file[strings.LastIndex(file, "/")+1:], ".go"))
		ast.Inspect(tree, func(n ast.Node) bool {
			switch x := n.(type) {
			case *ast.SelectorExpr: // the selected name may be another module's
				ast.Inspect(x.X, func(m ast.Node) bool {
					if id, ok := m.(*ast.Ident); ok {
						check(id.Pos(), id.Name)
					}
					return true
				})
				return false
			case *ast.Ident:
				check(x.Pos(), x.Name)
			}
			return true
		})
	}
}

// wordsOf splits an identifier at its capitals, digits and underscores: ZooKeeperURLs has zoo, keeper
// and urls.
func wordsOf(name string) []string {
	var words []string
	var word []rune
	runes := []rune(name)
	end := func() {
		if len(word) > 0 {
			words = append(words, strings.ToLower(string(word)))
		}
		word = word[:0]
	}
	for i, r := range runes {
		switch {
		case !unicode.IsLetter(r):
			end()
			continue
		case unicode.IsUpper(r) && i > 0 &&
			(unicode.IsLower(runes[i-1]) || i+1 < len(runes) && unicode.IsLower(runes[i+1])):
			end()
		}
		word = append(word, r)
	}
	end()
	return words
}

// phrases are what comments and pages do not contain, each with what to write instead: they are old-fashioned, or
// make a sentence harder to read than a plain one.
var phrases = map[string]string{
	"whoever":        "the client that, a server that, any user who",
	"whomever":       "any client that",
	"for ever":       "forever",
	"nobody":         "no one, no client, no server",
	"somebody":       "someone, a client, a server",
	"everybody":      "everyone, all clients, all servers",
	"anybody":        "anyone, any client",
	"anew":           "again, restarted, a new one",
	"afresh":         "again, reset, a new one",
	"had better":     "should, or the reason",
	"what became of": "the outcome of",
	"is told":        "gets, learns; say who reports it",
	"are told":       "get, learn; say who reports it",
	"any more":       "no longer; of a number: more",
	"is to be":       "must be, should be, will be",
	"are to be":      "must be, should be, will be",
}

var (
	anyPhrase = regexp.MustCompile(`(?i)\b(?:` +
		strings.ReplaceAll(strings.Join(slices.Sorted(maps.Keys(phrases)), "|"), " ", `\s+`) + `)\b`)
	code = regexp.MustCompile("(?s)```.*?```|`[^`\n]*`")
)

// TestWords_PlainEnglish: a reader whose first language is another one knows common words and short sentences.
func TestWords_PlainEnglish(t *testing.T) {
	check := func(file string, line int, text string, names map[string]bool) {
		for _, at := range anyPhrase.FindAllStringIndex(text, -1) {
			found := text[at[0]:at[1]]
			if names[found] {
				continue
			}
			instead := phrases[strings.ToLower(strings.Join(strings.Fields(found), " "))]
			t.Errorf("%s:%d: %q; write: %s", file, line+strings.Count(text[:at[0]], "\n"), found, instead)
		}
	}
	for _, file := range files(t, ".go") {
		set := token.NewFileSet()
		tree, err := parser.ParseFile(set, file, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		names := map[string]bool{} // a comment may name what the file declares
		ast.Inspect(tree, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok {
				names[id.Name] = true
			}
			return true
		})
		for _, group := range tree.Comments {
			var lines []string
			for _, c := range group.List {
				lines = append(lines, strings.TrimPrefix(c.Text, "//"))
			}
			check(file, set.Position(group.Pos()).Line, strings.Join(lines, "\n"), names)
		}
	}
	for _, page := range markdown(t) {
		if !strings.HasPrefix(page, "docs/") && !slices.Contains([]string{"README.md", "CONTRIBUTING.md", "SECURITY.md"}, page) ||
			strings.Count(page, "/") > 1 { // decisions are history, and references are written by programs
			continue
		}
		text := code.ReplaceAllStringFunc(read(t, page), func(s string) string {
			return strings.Repeat("\n", strings.Count(s, "\n")) // log messages and options are quoted as they are
		})
		check(page, 1, text, nil)
	}
}
