// Package jaas reads the login configuration files of Java's Authentication and Authorization Service, in the syntax
// of javax.security.auth.login.Configuration:
//
//	Server {
//	    some.package.LoginModule required option="value";
//	};
//
// Its users interpret the modules and options. It opens no files and starts no goroutine.
package jaas

import (
	"fmt"
	"slices"
	"strings"
)

// Module is a login module of a section.
type Module struct {
	Class   string // in full
	Options map[string]string
}

// Parse returns the modules of each section. An error names the line, and repeats no values, which may be secret.
func Parse(text string) (map[string][]Module, error) {
	p := &parser{text: text, line: 1}
	p.next()
	sections := map[string][]Module{}
	for p.err == nil && p.kind != end {
		name := p.word("the name of a section")
		if _, twice := sections[name]; twice {
			p.fail("the section %q is there twice", name)
		}
		p.take("{")
		var modules []Module
		for p.err == nil && !p.is("}") {
			modules = append(modules, p.module())
		}
		p.take("}")
		p.take(";")
		if p.err == nil && len(modules) == 0 {
			p.fail("the section %q has no module", name)
		}
		sections[name] = modules
	}
	return sections, p.err
}

type kind int

const (
	end kind = iota
	sign
	word
	quoted
)

// parser has one token in hand.
type parser struct {
	text  string // the rest
	line  int    // where the token in hand ends
	kind  kind
	token string
	err   error
}

func (p *parser) fail(format string, args ...any) {
	if p.err == nil {
		p.err = fmt.Errorf("line %d: "+format, append([]any{p.line}, args...)...)
	}
	p.kind, p.token = end, ""
}

func (p *parser) is(s string) bool { return p.kind == sign && p.token == s }

func (p *parser) take(s string) {
	if p.err == nil && !p.is(s) {
		p.fail("want %q", s)
	}
	p.next()
}

// word takes a word, with or without quotation marks.
func (p *parser) word(what string) string {
	text := p.token
	if p.err == nil && p.kind != word && p.kind != quoted {
		p.fail("want %s", what)
	}
	p.next()
	return text
}

var flags = []string{"required", "requisite", "sufficient", "optional"}

func (p *parser) module() Module {
	m := Module{Class: p.word("the class of a module"), Options: map[string]string{}}
	flag := p.word("one of " + strings.Join(flags, ", "))
	if p.err == nil && !slices.Contains(flags, strings.ToLower(flag)) {
		p.fail("want one of %s behind the class %.100q", strings.Join(flags, ", "), m.Class)
	}
	for p.err == nil && !p.is(";") {
		name := p.word("an option or \";\"")
		p.take("=")
		v := p.word("a value for " + name)
		if p.err == nil && strings.Contains(v, "${") {
			p.fail("the value of %.100q has ${...}, which is not replaced here", name)
		}
		if _, twice := m.Options[name]; twice {
			p.fail("the option %.100q is there twice", name)
		}
		m.Options[name] = v
	}
	p.take(";")
	return m
}

// next reads the next token.
func (p *parser) next() {
	if p.err != nil || !p.blanks() {
		p.kind, p.token = end, ""
		return
	}
	switch c := p.text[0]; {
	case strings.IndexByte("{}=;", c) >= 0:
		p.kind = sign
		p.token = p.cut(1)
	case c == '"':
		p.quotation()
	default:
		n := strings.IndexAny(p.text, " \t\r\n\f{}=;\"")
		if n < 0 {
			n = len(p.text)
		}
		p.kind = word
		p.token = p.cut(n)
	}
}

// blanks passes blanks and comments. It reports false at the end.
func (p *parser) blanks() bool {
	for {
		p.cut(len(p.text) - len(strings.TrimLeft(p.text, " \t\r\n\f")))
		stop := ""
		switch {
		case p.text == "":
			return false
		case strings.HasPrefix(p.text, "//"), p.text[0] == '#':
			stop = "\n"
		case strings.HasPrefix(p.text, "/*"):
			stop = "*/"
		default:
			return true
		}
		n := strings.Index(p.text, stop)
		if n < 0 && stop == "*/" {
			p.fail("a comment has no end")
			return false
		}
		if n < 0 {
			n = len(p.text) - len(stop)
		}
		p.cut(n + len(stop))
	}
}

// quotation reads text within quotation marks, with Java's escapes.
func (p *parser) quotation() {
	var b strings.Builder
	for i := 1; i < len(p.text) && p.text[i] != '\n'; i++ {
		switch c := p.text[i]; {
		case c == '"':
			p.kind, p.token = quoted, b.String()
			p.cut(i + 1)
			return
		case c == '\\' && i+1 < len(p.text):
			i++
			if at := strings.IndexByte("tnrf", p.text[i]); at >= 0 {
				b.WriteByte("\t\n\r\f"[at])
				continue
			}
		}
		b.WriteByte(p.text[i])
	}
	p.fail("a quotation has no end in its line")
}

// cut takes n bytes off.
func (p *parser) cut(n int) (head string) {
	head, p.text = p.text[:n], p.text[n:]
	p.line += strings.Count(head, "\n")
	return head
}
