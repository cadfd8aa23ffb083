package zklite_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
	"testing"
	"unicode"
)

// retired are words that identifiers had once, each with the word to use. Only words that have no
// other use here are in the list. The glossary is in docs/ARCHITECTURE.md.
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
			case *ast.SelectorExpr: // the name that is selected may be another module's
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
