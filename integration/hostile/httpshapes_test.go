//go:build privileged

package hostile_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/zk-lite/zk-lite/integration/cluster"
	"github.com/zk-lite/zk-lite/internal/testkit/seed"
	"github.com/zk-lite/zk-lite/internal/wire"
)

const (
	httpURLRoom  = 60 << 10                 // bytes of a parameter at its largest: more than any path needs, and less than headers may have
	httpBodyRoom = 4 * wire.DefaultMaxFrame // the bound of a transaction
)

// httpShape is a request of an operation of the OpenAPI document, and its extremes.
type httpShape struct {
	method, pattern string
	what            []string
	path            map[string]string // of the pattern's variables
	query, headers  []string
	body            func() string // nil: none
}

func (s *httpShape) String() string {
	return s.method + " " + s.pattern + " " + strings.Join(s.what, ", ")
}

// httpChoice is an extreme of one field of a request.
type httpChoice struct {
	field, what string
	set         func(*httpShape)
}

// with returns the request with these fields at an extreme.
func (s *httpShape) with(choices ...httpChoice) *httpShape {
	x := *s
	x.path = maps.Clone(s.path)
	for _, c := range choices {
		x.what = append(x.what, c.field+"="+c.what)
		c.set(&x)
	}
	return &x
}

// bytes returns the request as it is sent.
func (s *httpShape) bytes(credentials string) string {
	target := s.pattern
	for name, value := range s.path {
		target = strings.Replace(target, "{"+name+"}", value, 1)
	}
	if len(s.query) > 0 {
		target += "?" + strings.Join(s.query, "&")
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\nHost: localhost\r\n", s.method, target)
	if credentials != "" {
		fmt.Fprintf(&b, "Authorization: Basic %s\r\n", base64.StdEncoding.EncodeToString([]byte(credentials)))
	}
	for _, h := range s.headers {
		b.WriteString(h + "\r\n")
	}
	body := ""
	if s.body != nil {
		body = s.body()
		fmt.Fprintf(&b, "Content-Length: %d\r\n", len(body))
	}
	b.WriteString("\r\n" + body)
	return b.String()
}

// document returns the OpenAPI document of a server.
func document(s *cluster.Server) (*openapi3.T, error) {
	r, err := http.Get("http://" + s.HTTPAddr() + "/openapi.json")
	if err != nil {
		return nil, err
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	return openapi3.NewLoader().LoadFromData(text)
}

// httpShapes are, for every operation, the usual request, those with one field at an extreme, and those with two.
func httpShapes(doc *openapi3.T) (singles, pairs []*httpShape) {
	for _, pattern := range doc.Paths.InMatchingOrder() {
		item := doc.Paths.Value(pattern)
		operations := item.Operations()
		for _, method := range slices.Sorted(maps.Keys(operations)) {
			op := operations[method]
			usual := &httpShape{method: method, pattern: pattern, path: map[string]string{}}
			var choices []httpChoice
			for _, p := range append(slices.Clone(item.Parameters), op.Parameters...) {
				if p.Value.In == openapi3.ParameterInPath {
					usual.path[p.Value.Name] = map[bool]string{true: small[1:], false: "1"}[p.Value.Name == "path"]
				}
				choices = append(choices, parameterChoices(p.Value)...)
			}
			if op.RequestBody != nil {
				usual.body = func() string { return usualBody(op.RequestBody.Value) }
				for what, body := range bodies(op.RequestBody.Value) {
					choices = append(choices, httpChoice{"body", what, func(s *httpShape) { s.body = body }})
				}
			}
			slices.SortFunc(choices, func(x, y httpChoice) int { return strings.Compare(x.field+x.what, y.field+y.what) })
			singles = append(singles, usual)
			for i, c := range choices {
				singles = append(singles, usual.with(c))
				for _, d := range choices[:i] {
					if c.field != d.field {
						pairs = append(pairs, usual.with(d, c))
					}
				}
			}
		}
	}
	return singles, pairs
}

// chosenHTTP are the requests to send: all with one field at an extreme, and pairs.
func (a *arena) chosenHTTP() (all []*httpShape) {
	doc, err := document(a.e.Server(1))
	if err != nil {
		a.t.Fatal(err)
	}
	all, doubles := httpShapes(doc)
	seed.Rand(a.t).Shuffle(len(doubles), func(i, j int) { doubles[i], doubles[j] = doubles[j], doubles[i] })
	if !*everything {
		doubles = doubles[:gatePairs]
	}
	return append(all, doubles...)
}

func parameterChoices(p *openapi3.Parameter) (all []httpChoice) {
	add := func(what string, set func(*httpShape)) { all = append(all, httpChoice{p.Name, what, set}) }
	switch p.In {
	case openapi3.ParameterInPath:
		for what, value := range pathValues(p.Name) {
			add(what, func(s *httpShape) { s.path[p.Name] = value })
		}
	case openapi3.ParameterInHeader:
		for what, value := range parameterValues(p) {
			add(what, func(s *httpShape) { s.headers = append(s.headers, p.Name+": "+value) })
		}
	default:
		for what, value := range parameterValues(p) {
			add(what, func(s *httpShape) { s.query = append(s.query, p.Name+"="+url.QueryEscape(value)) })
		}
		one := p.Name + "=" + url.QueryEscape(small)
		add("many times", func(s *httpShape) {
			s.query = append(s.query, slices.Repeat([]string{one}, httpURLRoom/(1+len(one)))...)
		})
	}
	return all
}

func pathValues(name string) map[string]string {
	if name != "path" {
		return map[string]string{"long": strings.Repeat("9", httpURLRoom), "empty": "", "others": url.PathEscape(others)}
	}
	values := map[string]string{
		"long": strings.Repeat("n", httpURLRoom), "deep": strings.Repeat("d/", httpURLRoom/2), "empty": "",
		"escaped": strings.Repeat("%00", httpURLRoom/3),
	}
	for _, path := range []string{large, wide, guarded, others, others + "/data", others + "/container"} {
		values[path] = path[1:]
	}
	return values
}

func parameterValues(p *openapi3.Parameter) map[string]string {
	values := map[string]string{"long": strings.Repeat("9", httpURLRoom), "most": "9223372036854775807", "least": "-1"}
	if p.Schema == nil {
		return values
	}
	if s := p.Schema.Value; s.Type.Is(openapi3.TypeBoolean) {
		values["true"] = "true"
	}
	for _, v := range p.Schema.Value.Enum {
		values[fmt.Sprint(v)] = fmt.Sprint(v)
	}
	return values
}

// schemaOf returns the schema of a JSON body; nil for bytes.
func schemaOf(b *openapi3.RequestBody) *openapi3.Schema {
	if m := b.Content.Get("application/json"); m != nil && m.Schema != nil {
		return m.Schema.Value
	}
	return nil
}

func usualBody(b *openapi3.RequestBody) string {
	s := schemaOf(b)
	if s == nil {
		return "x"
	}
	text, _ := json.Marshal(example(s, 1, ""))
	return string(text)
}

// bodies are the largest of each kind: bytes, strings, lists, depth, distinct names.
func bodies(b *openapi3.RequestBody) map[string]func() string {
	all := map[string]func() string{
		"bytes":   func() string { return strings.Repeat("\x00", httpBodyRoom) },
		"deep":    func() string { return strings.Repeat("[", httpBodyRoom) },
		"objects": func() string { return strings.Repeat(`{"ops":`, httpBodyRoom/7) },
		"distinct": func() string {
			var text strings.Builder
			for i := 0; text.Len() < httpBodyRoom-20; i++ {
				fmt.Fprintf(&text, `,"%d":0`, i)
			}
			return "{" + text.String()[1:] + "}"
		},
		"numbers": func() string { return strings.Repeat("9", httpBodyRoom) },
	}
	s := schemaOf(b)
	if s == nil {
		return all
	}
	for name, p := range s.Properties {
		for _, path := range []string{small, large, wide, guarded, others + "/data"} {
			all[name+" of "+path] = func() string {
				one, _ := json.Marshal(example(p.Value, 1, path))
				n := max(1, min(10_000, httpBodyRoom/(1+len(one))))
				text, _ := json.Marshal(map[string]any{name: example(p.Value, n, path)})
				return string(text)
			}
		}
		all[name+" long"] = func() string {
			text, _ := json.Marshal(map[string]any{name: strings.Repeat("s", httpBodyRoom-100)})
			return string(text)
		}
	}
	return all
}

// example returns a value of a schema; lists have n elements, and paths are path.
func example(s *openapi3.Schema, n int, path string) any {
	switch {
	case s.Type.Is(openapi3.TypeArray):
		list := make([]any, n)
		for i := range list {
			list[i] = example(s.Items.Value, 1, path)
		}
		return list
	case s.Type.Is(openapi3.TypeObject):
		object := map[string]any{}
		for _, name := range s.Required {
			if p := s.Properties[name]; p != nil {
				object[name] = example(p.Value, n, path)
			}
			if name == "path" {
				object[name] = path
			}
		}
		return object
	case len(s.Enum) > 0:
		return s.Enum[len(s.Enum)/2]
	case s.Type.Is(openapi3.TypeInteger):
		return 1
	case s.Type.Is(openapi3.TypeBoolean):
		return true
	}
	return "x"
}

// TestShapes_EveryOperation fails for an operation of the document that no request is made for.
func TestShapes_EveryOperation(t *testing.T) {
	e := cluster.Start(t, 1, cluster.Options{})
	doc, err := document(e.Server(1))
	if err != nil {
		t.Fatal(err)
	}
	have, operations := map[string]int{}, 0
	singles, pairs := httpShapes(doc)
	for _, s := range singles {
		have[s.method+" "+s.pattern]++
	}
	for pattern, item := range doc.Paths.Map() {
		for method, op := range item.Operations() {
			operations++
			if n := len(item.Parameters) + len(op.Parameters); have[method+" "+pattern] <= n {
				t.Errorf("%s %s: %d requests for %d parameters", method, pattern, have[method+" "+pattern], n)
			}
		}
	}
	t.Logf("%d operations, %d requests with one field at an extreme, %d with two", operations, len(singles), len(pairs))
}
