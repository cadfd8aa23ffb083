//go:build privileged

package hostile_test

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/integration/cluster"
	"github.com/zk-lite/zk-lite/internal/testkit/seed"
	"github.com/zk-lite/zk-lite/internal/wire"
	"github.com/zk-lite/zk-lite/znode"
)

const (
	httpURLRoom  = 60 << 10                 // bytes of a parameter at its largest: more than any path needs, and less than headers may have
	httpBodyRoom = 4 * wire.DefaultMaxFrame // what a transaction may have
)

// httpShape is a request of an operation of the OpenAPI document, with what is extreme about it.
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

// bytes are what is sent.
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

// document is the OpenAPI document of a server.
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

// schemaOf is that of a JSON body; nil for bytes.
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

// example is a value of a schema; lists have n elements, and paths are path.
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

// overHTTP sends every request of the HTTP port, pipelined where there is no body, reading the answers; then those with
// the largest answers without reading.
func overHTTP(a *arena) {
	queue := make(chan *httpShape)
	var done sync.WaitGroup
	for i := range 16 {
		s := a.e.Server(1 + i%3)
		done.Go(func() {
			for x := range queue {
				sendHTTP(s, x, "hostile:hostile", 2*time.Second)
			}
		})
	}
	for _, x := range a.chosenHTTP() {
		if len(a.dead()) == 0 {
			queue <- x
		}
	}
	close(queue)
	done.Wait()
}

// sendHTTP sends a request several times and reads answers until they are there, or the time is over: some operations
// wait for what never comes.
func sendHTTP(s *cluster.Server, x *httpShape, credentials string, limit time.Duration) (answers int, size int64) {
	nc, err := net.DialTimeout("tcp", s.HTTPAddr(), limit)
	if err != nil {
		return 0, 0
	}
	defer nc.Close()
	_ = nc.SetDeadline(time.Now().Add(limit))
	n := 1
	if x.body == nil && x.method == http.MethodGet {
		n = 4
	}
	go func() { _, _ = io.WriteString(nc, strings.Repeat(x.bytes(credentials), n)) }()
	r := bufio.NewReader(nc)
	for range n {
		answer, err := http.ReadResponse(r, &http.Request{Method: x.method})
		if err != nil {
			return answers, size
		}
		got, _ := io.Copy(io.Discard, answer.Body)
		size += got
		answer.Body.Close()
		answers++
	}
	return answers, size
}

// deafHTTP asks for much over many connections and reads nothing.
func deafHTTP(a *arena) {
	var all []net.Conn
	defer func() {
		for _, nc := range all {
			nc.Close()
		}
	}()
	for _, target := range []string{large + "?raw", wide + "?children=true", wide + "?about=true"} {
		for range 60 {
			nc, err := net.Dial("tcp", a.e.Server(2).HTTPAddr())
			if err != nil {
				a.errorf("%v", err)
				return
			}
			all = append(all, nc)
			q := "GET /v1/znodes" + target + " HTTP/1.1\r\nHost: localhost\r\n\r\n"
			_, _ = io.WriteString(nc, strings.Repeat(q, 40))
		}
		a.rounds(3)
	}
}

// bodiesThatStop announces bodies, the largest first, until there is no room for one more, and sends none.
func bodiesThatStop(a *arena) {
	for _, x := range []struct{ size, n int }{{httpBodyRoom, 64}, {100, 8}, {10, 16}, {1, 32}} {
		for range x.n {
			nc, err := net.Dial("tcp", a.e.Server(2).HTTPAddr())
			if err != nil {
				a.errorf("%v", err)
				return
			}
			defer nc.Close()
			fmt.Fprintf(nc, "POST /v1/multi HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n", x.size)
		}
		a.rounds(3) // so that the largest are first at the server, too
	}
}

// floodHTTP takes all HTTP connections of a server that one address may have.
func floodHTTP(a *arena) {
	const clients, each = 32, 520
	enough := syscall.Rlimit{Cur: 20_000, Max: 20_000}
	if have := (syscall.Rlimit{}); syscall.Getrlimit(syscall.RLIMIT_NOFILE, &have) == nil && have.Cur < enough.Cur {
		if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &enough); err != nil {
			a.t.Fatalf("room for %d open files: %v", enough.Cur, err)
		}
	}
	attacker := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 7)}, Timeout: sessionTimeout}
	var done sync.WaitGroup
	over := make(chan struct{})
	var opened atomic.Int64
	for range clients {
		done.Go(func() {
			for range each {
				nc, err := attacker.Dial("tcp", a.e.Server(2).HTTPAddr())
				if err != nil {
					break // the machine's own limits
				}
				defer nc.Close()
				_, _ = io.WriteString(nc, "GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n") // who says nothing is closed soon
				opened.Add(1)
			}
			<-over
		})
	}
	cluster.Eventually(a.t, "the connections", cluster.Patience, func() error {
		if n := opened.Load(); n < clients*each {
			return fmt.Errorf("%d of %d", n, clients*each)
		}
		return nil
	})
	for _, w := range a.witnesses {
		w.forget()
	}
	a.rounds(3)
	close(over)
	done.Wait()
}

// zeros restores, as an administrator, a small backup of many zeros.
func zeros(a *arena) {
	const znodes, size = 20, 64 << 20
	machine := state.New()
	data := make([]byte, size)
	for i := range znodes {
		x := &znode.Txn{Zxid: znode.Zxid(i + 1), TimeMillis: 1}
		_, _, code := machine.Tree().Create(x, &znode.CreateRequest{Path: fmt.Sprint("/zeros", i), Data: data, ACL: znode.OpenACL})
		if code != znode.OK {
			a.t.Fatal(code)
		}
	}
	frozen := machine.Snapshot()
	defer frozen.Release()
	var file bytes.Buffer
	if err := frozen.Write(&file); err != nil {
		a.t.Fatal(err)
	}
	text := file.String()
	for _, query := range []string{"?dry_run=true&other_ensemble=true", "?other_ensemble=true"} {
		x := &httpShape{method: http.MethodPost, pattern: "/v1/snapshot" + query, body: func() string { return text }}
		sendHTTP(a.e.Server(2), x, cluster.SuperCredentials, 3*sessionTimeout)
	}
}
