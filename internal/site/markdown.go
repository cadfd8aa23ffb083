package site

import (
	"bytes"
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"path"
	"strconv"
	"strings"
	"unicode"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/text"
)

// markdown is GitHub's form of it, as far as the pages use it. They are our own, so their comments and <br> may pass.
var markdown = goldmark.New(goldmark.WithExtensions(extension.Table), goldmark.WithRendererOptions(html.WithUnsafe()))

// scrolls lets a keyboard scroll what is wider than the page. Within code, < is written otherwise.
var scrolls = strings.NewReplacer(
	"<table>", `<div class="wide" tabindex="0"><table>`, "</table>", "</table></div>", "<pre>", `<pre tabindex="0">`)

// page is one file of Markdown.
type page struct {
	name     string // in Source.Files
	url      string // in the site
	source   []byte
	title    string
	headings []heading
	body     template.HTML
}

// heading begins a section of a page.
type heading struct {
	ID, Text string
	Level    int
	words    string // the section's text, for the search
}

// render fills in what is shown of the page, and finds the pages and pictures that it needs.
func (p *page) render(b *builder) error {
	doc := markdown.Parser().Parse(text.NewReader(p.source))
	p.sections(doc)
	if len(p.headings) == 0 || p.headings[0].Level != 1 {
		return fmt.Errorf("%s: the page does not begin with a heading of the first level", p.name)
	}
	p.title = p.headings[0].Text
	if err := p.resolve(b, doc, p.url); err != nil {
		return err
	}
	body, err := p.html(doc)
	p.body = body
	return err
}

// lists are the page's headings and lists, without the rest, as the page of shown links to them.
func (p *page) lists(b *builder, shown *page) (template.HTML, error) {
	doc := markdown.Parser().Parse(text.NewReader(p.source))
	for n := doc.FirstChild(); n != nil; {
		next := n.NextSibling()
		h, isHeading := n.(*ast.Heading)
		if n.Kind() != ast.KindList && (!isHeading || h.Level == 1) {
			doc.RemoveChild(doc, n)
		}
		n = next
	}
	if err := p.resolve(b, doc, shown.url); err != nil {
		return "", err
	}
	links, err := p.html(doc)
	here := `<a href="` + up(shown.url) + shown.url + `"`
	text := strings.ReplaceAll(string(links), here, here+` aria-current="page"`)
	return template.HTML(text), err //nolint:gosec // made of our own pages
}

func (p *page) html(doc ast.Node) (template.HTML, error) {
	var out bytes.Buffer
	if err := markdown.Renderer().Render(&out, p.source, doc); err != nil {
		return "", fmt.Errorf("%s: %w", p.name, err)
	}
	return template.HTML(scrolls.Replace(out.String())), nil //nolint:gosec // made of our own pages
}

// sections gives the headings the names that they have on GitHub, and collects the text behind each.
func (p *page) sections(doc ast.Node) {
	seen := map[string]int{}
	for n := doc.FirstChild(); n != nil; n = n.NextSibling() {
		words := p.plain(n)
		if h, is := n.(*ast.Heading); is {
			id := slug(words)
			seen[id]++
			if again := seen[id] - 1; again > 0 {
				id += "-" + strconv.Itoa(again)
			}
			h.SetAttributeString("id", []byte(id))
			p.headings = append(p.headings, heading{ID: id, Text: words, Level: h.Level})
		} else if last := len(p.headings) - 1; last >= 0 {
			p.headings[last].words += " " + words
		}
	}
}

// slug is the name by which links know a heading.
func slug(heading string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
			return unicode.ToLower(r)
		}
		return -1
	}, heading)
}

// plain is the text of a node and of all below it.
func (p *page) plain(n ast.Node) string {
	var words strings.Builder
	_ = ast.Walk(n, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		switch x := n.(type) {
		case *ast.Text:
			if entering {
				words.Write(x.Segment.Value(p.source))
				if x.SoftLineBreak() {
					words.WriteByte(' ')
				}
			}
		case *ast.FencedCodeBlock, *ast.CodeBlock:
			if entering {
				words.Write(x.Lines().Value(p.source))
			}
		default:
			if !entering && n.Type() == ast.TypeBlock {
				words.WriteByte(' ')
			}
		}
		return ast.WalkContinue, nil
	}) // the function returns no error
	return strings.TrimSpace(words.String())
}

// resolve makes the links and pictures of a document lead to their places, seen from the page at url. A picture that
// the site lacks is replaced by its description.
func (p *page) resolve(b *builder, doc ast.Node, url string) error {
	var missing []*ast.Image
	err := ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch x := n.(type) {
		case *ast.Link:
			to, err := p.target(b, string(x.Destination), url)
			x.Destination = []byte(to)
			return ast.WalkContinue, err
		case *ast.Image:
			name := path.Join(path.Dir(p.name), string(x.Destination))
			data, err := fs.ReadFile(b.Files, name)
			if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrInvalid) {
				missing = append(missing, x)
				return ast.WalkSkipChildren, nil
			}
			b.files[name] = data
			x.Destination = []byte(up(url) + name)
			return ast.WalkContinue, err
		}
		return ast.WalkContinue, nil
	})
	for _, x := range missing {
		x.Parent().ReplaceChild(x.Parent(), x, ast.NewString([]byte("["+p.plain(x)+"]")))
	}
	return err
}

// target is where a link of the page leads to, seen from the page at url.
func (p *page) target(b *builder, link, url string) (string, error) {
	to, anchor, has := strings.Cut(link, "#")
	if to == "" || strings.Contains(to, ":") {
		return link, nil
	}
	if has {
		anchor = "#" + anchor
	}
	name := path.Join(path.Dir(p.name), to)
	page, err := b.page(name)
	if err != nil {
		return "", err
	}
	if page != nil {
		return up(url) + page.url + anchor, nil
	}
	return repository + path.Join(b.Folder, name) + anchor, nil
}
