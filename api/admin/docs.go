package admin

import (
	"bytes"
	_ "embed" // for the template
	"encoding/json"
	"html/template"
	"net/http"
	"slices"
	"strings"

	"github.com/zk-lite/zk-lite/api/rest"
	"github.com/zk-lite/zk-lite/znode"
)

//go:embed docs.html
var pageTemplate string

// root leads those who open the address in a browser to the page.
func root(q *rest.Request) error {
	q.W.Header().Set("Location", "/docs")
	q.Begin(http.StatusFound)
	return nil
}

// page answers with a page for people. It is made from the OpenAPI document and
// fetches nothing.
func (h *handlers) page(q *rest.Request) error {
	q.W.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'")
	q.SendBytes(http.StatusOK, "text/html; charset=utf-8", h.docs.html)
	return nil
}

// What the page's template is given.
type (
	pageData struct {
		Title, Version, Description string
		Tags                        []pageTag
		Schemas                     []pageSchema
		Errors                      []pageError
	}
	pageTag struct {
		Name, Description string
		Operations        []pageOperation
	}
	pageOperation struct {
		ID, Method, Path, Summary, Description string
		Params                                 []pageParam
		Answers                                []pageAnswer
		Example                                string
	}
	pageParam  struct{ Name, In, Type, Description string }
	pageAnswer struct{ Status, Description string }
	pageSchema struct{ Name, Text string }
	pageError  struct {
		Anchor, Name string
		Code         int32
		Status       int
		Meaning      string
		Hint         string
	}
)

func buildPage(doc object) ([]byte, error) {
	info := doc["info"].(object)
	data := pageData{
		Title: info["title"].(string), Version: info["version"].(string),
		Description: info["description"].(string), Errors: pageErrors(),
	}
	for _, t := range doc["tags"].([]any) {
		tag := pageTag{
			Name: t.(object)["name"].(string), Description: t.(object)["description"].(string),
		}
		tag.Operations = pageOperations(doc, tag.Name)
		data.Tags = append(data.Tags, tag)
	}
	schemas := doc["components"].(object)["schemas"].(object)
	for _, name := range sortedKeys(schemas) {
		text, err := json.MarshalIndent(schemas[name], "", "  ")
		if err != nil {
			return nil, err
		}
		data.Schemas = append(data.Schemas, pageSchema{name, string(text)})
	}
	t, err := template.New("docs").Funcs(template.FuncMap{"anchor": rest.Anchor}).Parse(pageTemplate)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	err = t.Execute(&b, data)
	return b.Bytes(), err
}

func pageOperations(doc object, tag string) (list []pageOperation) {
	paths := doc["paths"].(object)
	for _, path := range sortedKeys(paths) {
		item := paths[path].(object)
		for _, method := range []string{"get", "post", "put", "delete"} {
			op, ok := item[method].(object)
			if !ok || !slices.Contains(op["tags"].([]any), any(tag)) {
				continue
			}
			o := pageOperation{
				ID: op["operationId"].(string), Method: strings.ToUpper(method), Path: path,
				Summary: text(op["summary"]), Description: text(op["description"]),
			}
			own, _ := op["parameters"].([]any)
			above, _ := item["parameters"].([]any)
			for _, p := range slices.Concat(above, own) {
				o.Params = append(o.Params, pageParamOf(resolve(doc, p)))
			}
			responses := op["responses"].(object)
			for _, status := range sortedKeys(responses) {
				r := resolve(doc, responses[status])
				o.Answers = append(o.Answers, pageAnswer{status, text(r["description"])})
			}
			list = append(list, o)
		}
	}
	return list
}

func pageParamOf(p object) pageParam {
	schema, _ := p["schema"].(object)
	kind := text(schema["type"])
	if to := text(schema["$ref"]); to != "" {
		kind = to[strings.LastIndexByte(to, '/')+1:]
	}
	return pageParam{text(p["name"]), text(p["in"]), kind, text(p["description"])}
}

// resolve follows a reference within the document.
func resolve(doc object, v any) object {
	o := v.(object)
	way, ok := strings.CutPrefix(text(o["$ref"]), "#/")
	if !ok {
		return o
	}
	at := doc
	for name := range strings.SplitSeq(way, "/") {
		at = at[name].(object)
	}
	return at
}

func text(v any) string {
	s, _ := v.(string)
	return s
}

// pageErrors explains the problems: those with ZooKeeper's codes, then the others.
func pageErrors() (list []pageError) {
	for _, code := range []znode.Error{
		znode.ErrNoNode, znode.ErrNodeExists, znode.ErrNotEmpty, znode.ErrNoChildrenForEphemeral,
		znode.ErrBadVersion, znode.ErrNoAuth, znode.ErrAuthFailed, znode.ErrInvalidACL,
		znode.ErrBadArguments, znode.ErrQuotaExceeded, znode.ErrSessionExpired,
		znode.ErrUnimplemented, znode.ErrThrottled, znode.ErrSystem,
	} {
		p := rest.Explain(code, "", false)
		list = append(list, pageError{
			rest.Anchor(code.Name()), code.Name(), int32(code), p.Status, code.Error(), p.Hint,
		})
	}
	for _, p := range []*rest.Problem{
		rest.Unavailable("no quorum"), rest.UnknownOutcome(znode.ErrConnectionLoss, false),
	} {
		list = append(list, pageError{
			rest.Anchor(p.Code.Name()), p.Code.Name(), int32(p.Code), p.Status, p.Title, p.Hint,
		})
	}
	for status, hint := range map[int]string{
		http.StatusForbidden:             "the request's Origin is another site's",
		http.StatusNotFound:              "there is nothing at this URL",
		http.StatusMethodNotAllowed:      "see the header Allow",
		http.StatusRequestTimeout:        "send the body faster",
		http.StatusGone:                  "read afresh, and watch since that answer's Zk-Zxid",
		http.StatusRequestEntityTooLarge: "store less",
	} {
		name := http.StatusText(status)
		list = append(list, pageError{Anchor: rest.Anchor(name), Name: name, Status: status, Hint: hint})
	}
	slices.SortStableFunc(list, func(a, b pageError) int { return a.Status - b.Status })
	return list
}
