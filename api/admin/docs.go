package admin

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"html/template"
	"io/fs"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/zk-lite/zk-lite/api/rest"
	"github.com/zk-lite/zk-lite/znode"
)

// openapiFiles are the parts of the OpenAPI document, one for each group of
// resources. They have the particulars of an operation; complete adds what all have in
// common.
//
//go:embed openapi/*.json
var openapiFiles embed.FS

// documents are what the server publishes about itself.
type documents struct{ openapi, html []byte }

// object is a JSON object.
type object = map[string]any

// getOpenAPI answers with the OpenAPI document.
func (d *documents) getOpenAPI(q *rest.Request) error {
	q.SendBytes(http.StatusOK, "application/json", d.openapi)
	return nil
}

// build puts the documents together. They are part of the program, so that
// a fault in them is one of the program.
func (d *documents) build(version string, routes []rest.Route) {
	doc, err := mergeDocument(openapiFiles)
	if err != nil {
		panic("api: invariant broken: the OpenAPI document: " + err.Error())
	}
	doc["info"].(object)["version"] = version
	complete(doc, routes)
	text, err := json.MarshalIndent(doc, "", " ")
	if err != nil {
		panic("api: invariant broken: the OpenAPI document: " + err.Error())
	}
	page, err := buildPage(doc)
	if err != nil {
		panic("api: invariant broken: the page of documentation: " + err.Error())
	}
	d.openapi, d.html = append(text, '\n'), page
}

// mergeDocument joins the parts. Nothing may be in two of them.
func mergeDocument(files fs.FS) (object, error) {
	names, err := fs.Glob(files, "openapi/*.json")
	if err != nil {
		return nil, err
	}
	all := object{}
	for _, name := range names {
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, err
		}
		part := object{}
		if err := json.Unmarshal(text, &part); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if err := merge(all, part, ""); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return all, nil
}

func merge(into, from object, at string) error {
	for key, value := range from {
		have, there := into[key]
		a, isObject := have.(object)
		b, mayJoin := value.(object)
		switch {
		case !there:
			into[key] = value
		case !isObject || !mayJoin:
			return fmt.Errorf("%s/%s is in another part, too", at, key)
		default:
			if err := merge(a, b, at+"/"+key); err != nil {
				return err
			}
		}
	}
	return nil
}

// complete adds what all operations have: common parameters, headers, problems, and who may send them. routes are those
// with another Access than ByACL.
func complete(doc object, routes []rest.Route) {
	shared := doc["components"].(object)["responses"].(object)
	for status, r := range shared {
		response := r.(object)
		if status[0] == '4' || status[0] == '5' {
			response["content"] = object{"application/problem+json": object{
				"schema": ref("schemas", "Problem"),
			}}
			if status == "429" || status == "503" {
				response["headers"] = object{"Retry-After": ref("headers", "Retry-After")}
			}
		}
		addHeaders(response)
	}
	for path, item := range doc["paths"].(object) {
		for method, op := range item.(object) {
			if method != "parameters" {
				completeOperation(path, method, op.(object))
				completeAccess(op.(object), accessOf(routes, path, method))
			}
		}
	}
}

func accessOf(routes []rest.Route, path, method string) rest.Access {
	i := slices.IndexFunc(routes, func(r rest.Route) bool {
		return r.Pattern == path && strings.EqualFold(r.Method, method)
	})
	if i < 0 {
		return rest.ByACL
	}
	return routes[i].Access
}

// completeAccess documents who may send an operation, for people and for programs.
func completeAccess(op object, access rest.Access) {
	needs := "Needs what the ACLs of the znodes ask for."
	switch access {
	case rest.Open, rest.Linked:
		needs = "Anybody may ask; credentials that are not known here do no harm."
		op["security"] = []any{object{}}
	case rest.Administrators:
		needs = "Needs an administrator."
		op["security"] = []any{object{"digest": []any{}}, object{"token": []any{}}, object{"certificate": []any{}}}
	}
	text, _ := op["description"].(string)
	op["description"] = strings.TrimSpace(text + " " + needs)
}

func completeOperation(path, method string, op object) {
	responses := op["responses"].(object)
	common := []string{"400", "403"}
	if op["x-plain"] == true {
		delete(op, "x-plain") // no consistency, no session
		common = append(common, "401")
	} else if strings.HasPrefix(path, "/v1/") {
		list, _ := op["parameters"].([]any)
		names := []string{"consistency", "min_zxid", "max_stale", "session"}
		common = append(common, "401", "410", "429", "503")
		if method != "get" {
			names = append(names, "key")
			common = append(common, "408", "409", "422", "504", "507")
		}
		for _, name := range names {
			list = append(list, ref("parameters", name))
		}
		op["parameters"] = list
	}
	for _, status := range common {
		if responses[status] == nil {
			responses[status] = ref("responses", status)
		}
	}
	for _, r := range responses {
		addHeaders(r.(object))
	}
}

// addHeaders adds the headers of every answer.
func addHeaders(response object) {
	if response["$ref"] != nil {
		return
	}
	headers, _ := response["headers"].(object)
	if headers == nil {
		headers = object{}
	}
	for _, name := range []string{
		rest.HeaderZxid, rest.HeaderConsistency, rest.HeaderServer, rest.HeaderLeader, rest.HeaderReplayed,
		rest.HeaderMaxStale,
	} {
		headers[name] = ref("headers", name)
	}
	response["headers"] = headers
}

func ref(kind, name string) object { return object{"$ref": "#/components/" + kind + "/" + name} }

// sortedKeys are the keys in one order.
func sortedKeys(o object) []string { return slices.Sorted(maps.Keys(o)) }

//go:embed docs.html
var pageTemplate string

// root leads a browser to the dashboard, and other clients to the page about the API.
func root(q *rest.Request) error {
	to := "/docs"
	if strings.Contains(q.HTTP.Header.Get("Accept"), "text/html") {
		to = "/ui/"
	}
	q.W.Header().Set("Vary", "Accept")
	q.W.Header().Set("Location", to)
	q.Begin(http.StatusFound)
	return nil
}

// getPage answers with a page for people. It is made from the OpenAPI document and
// fetches nothing.
func (d *documents) getPage(q *rest.Request) error {
	q.W.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'")
	q.SendBytes(http.StatusOK, "text/html; charset=utf-8", d.html)
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
		znode.ErrUnimplemented, znode.ErrThrottled, znode.ErrSystem, znode.ErrNotReadOnly,
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
