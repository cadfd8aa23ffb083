package api_test

import (
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/zk-lite/zk-lite/api"
	"github.com/zk-lite/zk-lite/api/rest"
)

// Every operation is documented with all of its query parameters, and what is
// documented exists.
func TestRoutes_EqualTheDocument(t *testing.T) {
	type object = map[string]any
	doc := newClient(t, shared().urls[0]).get("/openapi.json").is(200).json
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
		delete(documented, key)
	}
	for key := range documented {
		t.Errorf("%s is documented and does not exist", key)
	}
}
