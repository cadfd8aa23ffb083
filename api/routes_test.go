package api_test

import (
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/zk-lite/zk-lite/api"
	"github.com/zk-lite/zk-lite/api/rest"
)

// Every operation is documented with all of its query parameters, and every documented one exists.
func TestRoutes_EqualTheDocument(t *testing.T) {
	type object = map[string]any
	doc := newClient(t, shared().urls[0]).get("/openapi.json").want(200).json
	parameters := doc["components"].(object)["parameters"].(object)
	documented := map[string][]string{}
	for pattern, item := range doc["paths"].(object) {
		for method, op := range item.(object) {
			if method == "parameters" {
				continue
			}
			names := []string{}
			list, _ := op.(object)["parameters"].([]any)
			for _, p := range list {
				p := p.(object)
				if to, ok := p["$ref"].(string); ok {
					p = parameters[path.Base(to)].(object)
				}
				if p["in"] == "query" {
					names = append(names, p["name"].(string))
				}
			}
			slices.Sort(names)
			documented[strings.ToUpper(method)+" "+pattern] = names
		}
	}
	for _, r := range api.Routes() {
		key := r.Method + " " + r.Pattern
		want := slices.Clone(r.Params)
		if !r.Local {
			want = append(want, rest.CommonParams[:]...)
		}
		slices.Sort(want)
		if got, ok := documented[key]; !ok || !slices.Equal(got, want) {
			t.Errorf("%s: documented %t with %q, it has %q", key, ok, got, want)
		}
		checkAccess(t, doc, &r)
		delete(documented, key)
	}
	for key := range documented {
		t.Errorf("%s is documented and does not exist", key)
	}
}

// checkAccess: what an operation needs is in the document, for programs and for people.
func checkAccess(t *testing.T, doc map[string]any, r *rest.Route) {
	t.Helper()
	op, _ := doc["paths"].(map[string]any)[r.Pattern].(map[string]any)[strings.ToLower(r.Method)].(map[string]any)
	security, own := op["security"].([]any)
	text, _ := op["description"].(string)
	want := map[rest.Access]struct {
		schemes int // of its own; -1: the document's
		text    string
	}{rest.ByACL: {-1, "ACLs"}, rest.Open: {1, "Anybody"}, rest.Linked: {1, "Anybody"}, rest.Administrators: {3, "Needs an administrator"}}[r.Access]
	if own != (want.schemes >= 0) || own && len(security) != want.schemes || !strings.Contains(text, want.text) {
		t.Errorf("%s %s: security %v, description %q", r.Method, r.Pattern, security, text)
	}
}
