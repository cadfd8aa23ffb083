package api_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"mime"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// contract is the OpenAPI document as the server serves it, and which of its answers
// the tests have seen.
type contract struct {
	doc        *openapi3.T
	components any                       // of the document, to which its schemas refer
	paths      map[string]*regexp.Regexp // by their templates

	mu      sync.Mutex // protects the fields below
	seen    map[string]bool
	schemas map[*openapi3.Schema]*jsonschema.Schema // compiled
}

var theContract = sync.OnceValues(func() (*contract, error) {
	resp, err := http.Get(shared().urls[0] + "/openapi.json")
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	loader := openapi3.NewLoader()
	var b bytes.Buffer
	if _, err := b.ReadFrom(resp.Body); err != nil {
		return nil, err
	}
	doc, err := loader.LoadFromData(b.Bytes())
	if err != nil {
		return nil, err
	}
	c := &contract{doc: doc, paths: map[string]*regexp.Regexp{}, seen: map[string]bool{},
		schemas: map[*openapi3.Schema]*jsonschema.Schema{}}
	for template := range doc.Paths.Map() {
		pattern := regexp.QuoteMeta(template)
		pattern = strings.Replace(pattern, `/\{path\}`, `(/.*)?`, 1)
		pattern = regexp.MustCompile(`\\\{[a-z]+\\\}`).ReplaceAllString(pattern, `[^/]+`)
		c.paths[template] = regexp.MustCompile("^" + pattern + "$")
	}
	var whole map[string]any
	err = json.Unmarshal(b.Bytes(), &whole)
	c.components = whole["components"]
	return c, err
})

// find returns the operation for a request: the paths' variables are the only ones with a
// meaning, {path} takes slashes. The method distinguishes a part of a {path} from what follows
// it.
func (c *contract) find(method, path string) (template string, op *openapi3.Operation) {
	if method == http.MethodHead {
		method = http.MethodGet
	}
	for template, item := range c.doc.Paths.Map() {
		op := item.GetOperation(method)
		if op != nil && c.paths[template].MatchString(path) {
			return template, op
		}
	}
	return "", nil
}

// validate checks an answer against the document.
func validate(req *http.Request, resp *http.Response, body []byte) error {
	c, err := theContract()
	if err != nil {
		return err
	}
	template, op := c.find(req.Method, req.URL.EscapedPath())
	if req.Method == http.MethodOptions && resp.StatusCode == http.StatusNoContent {
		return nil // CORS is no operation of ours
	}
	if template == "" || op == nil {
		// The document cannot describe this, but it is a problem all the same.
		return c.matches("Problem", body)
	}
	status := fmt.Sprint(resp.StatusCode)
	key := req.Method + " " + template + " " + status
	ref := op.Responses.Value(status)
	if ref == nil {
		return fmt.Errorf("%s is not documented", key)
	}
	c.mu.Lock()
	c.seen[key] = true
	c.mu.Unlock()
	for name, h := range ref.Value.Headers {
		values := resp.Header.Values(name)
		switch {
		case len(values) == 0 && h.Value.Required:
			return fmt.Errorf("no header %s", name)
		case len(values) == 1:
			if err := c.check(h.Value.Schema, values[0]); err != nil {
				return fmt.Errorf("header %s: %w", name, err)
			}
		case len(values) > 1:
			return fmt.Errorf("header %s: %q", name, values)
		}
	}
	if len(body) == 0 {
		return nil
	}
	kind, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if err != nil {
		return err
	}
	media := ref.Value.Content[kind]
	if media == nil {
		return fmt.Errorf("an answer of type %s is not documented", kind)
	}
	switch {
	case kind == "application/x-ndjson":
		lines := bytes.SplitAfter(bytes.TrimSpace(body), []byte("\n"))
		for i, line := range lines {
			if i > maxChecked && i < len(lines)-1 {
				continue
			}
			if err := c.visit(media.Schema, line); err != nil {
				return fmt.Errorf("%s: %w", line, err)
			}
		}
		return nil
	case !strings.Contains(kind, "json"):
		return nil
	}
	return c.visit(media.Schema, body)
}

// matches checks a JSON text against a schema of the document.
func (c *contract) matches(schema string, text []byte) error {
	s := c.doc.Components.Schemas[schema]
	if s == nil {
		return fmt.Errorf("there is no schema %s", schema)
	}
	return c.visit(s, text)
}

func (c *contract) visit(s *openapi3.SchemaRef, text []byte) error {
	var v any
	if err := json.Unmarshal(text, &v); err != nil {
		return err
	}
	return c.check(s, v)
}

// check compares a value with a schema, which it compiles once: package openapi3 does so for each value.
func (c *contract) check(s *openapi3.SchemaRef, v any) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	compiled := c.schemas[s.Value]
	if compiled == nil {
		text, err := json.Marshal(s.Value)
		if err != nil {
			return err
		}
		var schema any
		if err := json.Unmarshal(text, &schema); err != nil {
			return err
		}
		if root, ok := schema.(map[string]any); ok { // no schema of all values
			root["components"] = c.components
		}
		compiler := jsonschema.NewCompiler()
		compiler.DefaultDraft(jsonschema.Draft2020)
		compiler.AssertFormat()
		const url = "zk-lite:schema"
		if err := compiler.AddResource(url, schema); err != nil {
			return err
		}
		if compiled, err = compiler.Compile(url); err != nil {
			return err
		}
		c.schemas[s.Value] = compiled
	}
	return compiled.Validate(v)
}

// notShown are documented answers that no test of this package brings about, with
// the reason.
func notShown(key string) bool {
	switch key {
	case "GET /v1/mirror 502", "GET /v1/takeover 502": // the leader's server does not answer, as with ?server=N
		return true
	case "POST /v1/takeover 413": // more than a hundred megabytes
		return true
	}
	switch status := key[len(key)-3:]; status {
	case "408": // half a minute of waiting
		return true
	case "400", "401", "403", "409", "410", "422", "429", "503", "504", "507":
		// Common to all operations: each is shown at one of them.
		return true
	}
	return false
}

// checkCoverage fails the package's tests when a documented answer was never given.
func checkCoverage() int {
	if f := flag.Lookup("test.run"); f.Value.String() != "" || flag.Lookup("test.fuzz").Value.String() != "" ||
		flag.Lookup("test.list").Value.String() != "" || flag.Lookup("test.skip").Value.String() != "" ||
		testing.Short() {
		return 0
	}
	c, err := theContract()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	status := map[string]bool{}
	for key := range c.seen {
		status[key[len(key)-3:]] = true
	}
	var missing []string
	for template, item := range c.doc.Paths.Map() {
		for method, op := range item.Operations() {
			for code := range op.Responses.Map() {
				key := method + " " + template + " " + code
				if !c.seen[key] && (!notShown(key) || !status[code] && code != "408") {
					missing = append(missing, key)
				}
			}
		}
	}
	if len(missing) > 0 {
		slices.Sort(missing)
		fmt.Fprintf(os.Stderr, "documented, but shown by no test:\n%s\n", strings.Join(missing, "\n"))
		return 1
	}
	return 0
}

func TestOpenAPI_IsValid(t *testing.T) {
	c, err := theContract()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.doc.Validate(t.Context(), openapi3.IsOpenAPI31OrLater()); err != nil {
		t.Fatal(err)
	}
	if c.doc.OpenAPI != "3.1.0" || c.doc.Info.Version != "test" {
		t.Errorf("%s, version %s", c.doc.OpenAPI, c.doc.Info.Version)
	}
	ids := map[string]bool{}
	for path, item := range c.doc.Paths.Map() {
		for method, op := range item.Operations() {
			if op.OperationID == "" || ids[op.OperationID] || op.Summary == "" {
				t.Errorf("%s %s: operationId %q twice or missing, or no summary", method, path, op.OperationID)
			}
			ids[op.OperationID] = true
		}
	}
}

// The validation itself must be able to fail.
func TestOpenAPI_Validation_Refuses(t *testing.T) {
	c, err := theContract()
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct{ schema, text string }{
		{"Problem", `{"type":"/docs#x","title":"t","status":404,"detail":"d"}`},
		{"Problem", `{"type":"/docs#x","title":"t","status":404,"detail":"d","hint":"h","more":1}`},
		{"Changes", `{"events":[{"type":"moved","path":"/a","zxid":"0x1"}],"zxid":"0x1"}`},
		{"Changes", `{"events":null,"zxid":"0x1"}`},
		{"Progress", `{"zxid":"17"}`},
	} {
		if c.matches(x.schema, []byte(x.text)) == nil {
			t.Errorf("%s: %s passes", x.schema, x.text)
		}
	}
	cl := newClient(t, shared().urls[0])
	req := cl.request("GET", "/livez", "")
	bad := &http.Response{StatusCode: http.StatusTeapot, Header: http.Header{}}
	if validate(req, bad, nil) == nil {
		t.Error("an answer that is not documented passes")
	}
	bad.StatusCode = http.StatusOK
	if err := validate(req, bad, nil); err == nil || errors.Is(err, http.ErrBodyNotAllowed) {
		t.Error("an answer without its headers passes")
	}
}

func TestDocs_Page(t *testing.T) {
	c := newClient(t, shared().urls[0])
	c.get("/openapi.json").want(200).has("openapi", "3.1.0")
	for accept, want := range map[string]string{"*/*": "/docs", "text/html,application/xml;q=0.9,*/*;q=0.8": "/ui/"} {
		if to := c.with("Accept: " + accept).get("/").want(302).header.Get("Location"); to != want {
			t.Errorf("/ leads a client that accepts %s to %s, want %s", accept, to, want)
		}
	}
	a := c.get("/docs").want(200)
	for _, text := range []string{"/v1/znodes/{path}", "id=\"nonode\"", "id=\"no-majority\"", "id=\"operationtimeout\"", "Zk-Session"} {
		a.contains(text)
	}
	if regexp.MustCompile(`(?i)(src|href)="(https?:)?//`).Match(a.body) {
		t.Error("the page fetches something")
	}
}
