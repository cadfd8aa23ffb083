package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// TestParseProperties_Syntax holds the rules of java.util.Properties.load, its
// documentation's own examples among them.
func TestParseProperties_Syntax(t *testing.T) {
	tests := []struct {
		name, text string
		want       []property
	}{
		{"nothing", "", nil},
		{"separators", "a=1\nb:2\nc 3\nd\t=\t4\ne : 5\nf  \t 6", []property{
			{1, "a", "1"}, {2, "b", "2"}, {3, "c", "3"}, {4, "d", "4"}, {5, "e", "5"}, {6, "f", "6"}}},
		{"only the first separator", "server.1=a:1:2;3\nb==c\nd::e\nf = = g", []property{
			{1, "server.1", "a:1:2;3"}, {2, "b", "=c"}, {3, "d", ":e"}, {4, "f", "= g"}}},
		{"comments", "# a=1\n  ! b=2\n\n \t\f\nc=3 # no comment\n#d \\\ne=4", []property{
			{5, "c", "3 # no comment"}, {7, "e", "4"}}},
		{"line ends", "a=1\r\nb=2\rc=3\n\rd=4", []property{
			{1, "a", "1"}, {2, "b", "2"}, {3, "c", "3"}, {5, "d", "4"}}},
		{"continuation", "fruits  apple, banana, \\\n   pear, \\\r\n # plum\nnext=1", []property{
			{1, "fruits", "apple, banana, pear, # plum"}, {4, "next", "1"}}},
		{"continued key", "a\\\n  b=1", []property{{1, "ab", "1"}}},
		{"no continuation", "a=x\\\\\nb=1", []property{{1, "a", `x\`}, {2, "b", "1"}}},
		{"continuation at the end", "a=1\\", []property{{1, "a", "1"}}},
		{"no value", "cheeses\nb=", []property{{1, "cheeses", ""}, {2, "b", ""}}},
		{"escaped separators", `a\=b\:c\ d=1`, []property{{1, "a=b:c d", "1"}}},
		{"escapes", `a=\z\"\u00e9\uD83D\uDE00\\x\#`, []property{{1, "a", `z"é😀\x#`}}},
		{"control escapes", `a=1\t2\n3\r4\f5`, []property{{1, "a", "1\t2\n3\r4\f5"}}},
		{"blanks around", "  a  =  1 2  ", []property{{1, "a", "1 2"}}},
		{"byte order mark", "\ufeffa=1", []property{{1, "a", "1"}}},
		{"UTF-8", "dataDir=/données", []property{{1, "dataDir", "/données"}}},
		{"repeated", "a=1\na=2", []property{{1, "a", "1"}, {2, "a", "2"}}},
	}
	for _, tt := range tests {
		got, err := parseProperties(tt.text)
		if err != nil || !slices.Equal(got, tt.want) {
			t.Errorf("%s: got %+v, %v; want %+v", tt.name, got, err, tt.want)
		}
	}
}

func TestParseProperties_Errors(t *testing.T) {
	tests := map[string]string{
		"a=1\n\n=2":     "line 3: no key before the separator",
		`a=\u12`:        `line 1: incomplete escape \u12; four hexadecimal digits follow \u`,
		`a=\u12g4`:      `line 1: bad escape \u12g4; four hexadecimal digits follow \u`,
		"\\u+123=1":     `line 1: bad escape \u+123; four hexadecimal digits follow \u`,
		"a=\\\n\\uxyzw": `line 1: bad escape \uxyzw; four hexadecimal digits follow \u`,
	}
	for text, want := range tests {
		_, err := parseProperties(text)
		var at *lineError
		if err == nil || err.Error() != want || !errors.As(err, &at) {
			t.Errorf("%q: got %v, want %s", text, err, want)
		}
	}
}

// FuzzParseProperties feeds any text: no panic, and what comes out, written
// again with every character escaped that could mean something, is read back.
func FuzzParseProperties(f *testing.F) {
	for _, seed := range []string{"a=1\nb : 2\\\n 3\n# c", "\ufeffk\\=\\u00e9 v\\t\\", "\r\r\n=\\", `\uD83D`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		props, err := parseProperties(text)
		if err != nil {
			return
		}
		var again strings.Builder
		lines := len(splitLines(text))
		for i, p := range props {
			if p.line < 1 || p.line > lines || i > 0 && p.line <= props[i-1].line {
				t.Fatalf("entry %d of %d lines is at line %d", i, lines, p.line)
			}
			if p.key == "" {
				t.Fatal("an empty key")
			}
			if !utf8.ValidString(text) {
				return // bytes that are no characters cannot be written as escapes
			}
			fmt.Fprintf(&again, "%s=%s\n", escapeAll(p.key), escapeAll(p.value))
		}
		back, err := parseProperties(again.String())
		if err != nil || len(back) != len(props) {
			t.Fatalf("%q: %v, %d entries of %d", again.String(), err, len(back), len(props))
		}
		for i := range back {
			if back[i].key != props[i].key || back[i].value != props[i].value {
				t.Fatalf("wrote %+v, read %+v", props[i], back[i])
			}
		}
	})
}

func escapeAll(s string) string {
	var b strings.Builder
	for _, r := range s {
		switch at := strings.IndexRune("\t\n\r\f", r); {
		case at >= 0:
			b.WriteString([]string{`\t`, `\n`, `\r`, `\f`}[at])
		case r == '\ufeff': // at the beginning of a file it would be a byte order mark
			b.WriteString(`\ufeff`)
		case strings.ContainsRune(` =:#!\`, r):
			b.WriteString(`\` + string(r))
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// FuzzParseServer: no panic, and an accepted line's canonical form means the
// same server.
func FuzzParseServer(f *testing.F) {
	for _, seed := range []string{"a:1:2", "[::1]:1:2:observer;[::2]:3", "a:1:2;3", "a:1:2;;", ":::", "[", "]["} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		srv, err := parseServer(1, text)
		if err != nil {
			return
		}
		back, err := parseServer(1, srv.String())
		if srv.ClientPort >= 0 && srv.ClientHost == "" {
			srv.ClientHost = "0.0.0.0"
		}
		if err != nil || back != srv {
			t.Fatalf("%q: %+v, canonical %q: %+v, %v", text, srv, srv.String(), back, err)
		}
	})
}
