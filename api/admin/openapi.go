package admin

import (
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/zk-lite/zk-lite/api/rest"
)

// openapiFiles are the parts of the OpenAPI document, one for each group of
// resources. They say what is particular about an operation; what all have in common
// is added by complete.
//
//go:embed openapi/*.json
var openapiFiles embed.FS

// documents are what the server publishes about itself.
type documents struct{ openapi, html []byte }

// object is a JSON object.
type object = map[string]any

// openapi answers with the OpenAPI document.
func (h *handlers) openapi(q *rest.Request) error {
	q.SendBytes(http.StatusOK, "application/json", h.docs.openapi)
	return nil
}

// buildDocuments puts the documents together. They are part of the program, so that
// a fault in them is one of the program.
func buildDocuments(version string, routes []rest.Route) documents {
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
	return documents{openapi: append(text, '\n'), html: page}
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

// complete adds what all operations have: common parameters, headers, problems, and who may ask. routes are those that
// are not for whom an ACL permits.
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

// completeAccess says who may ask for an operation, for people and for programs.
func completeAccess(op object, access rest.Access) {
	needs := "Needs what the ACLs of the znodes ask for."
	switch access {
	case rest.Open:
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
		names := []string{"consistency", "min_zxid", "session"}
		common = append(common, "401", "410", "429", "503")
		if method != "get" {
			names = append(names, "key")
			common = append(common, "408", "422", "504", "507")
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
	} {
		headers[name] = ref("headers", name)
	}
	response["headers"] = headers
}

func ref(kind, name string) object { return object{"$ref": "#/components/" + kind + "/" + name} }

// sortedKeys is for what has to be in one order.
func sortedKeys(o object) []string { return slices.Sorted(maps.Keys(o)) }
