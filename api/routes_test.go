package api

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// Every operation is documented with all of its query parameters, and what is
// documented exists.
func TestRoutes_EqualTheDocument(t *testing.T) {
	var doc object
	if err := json.Unmarshal(buildDocuments("test").openapi, &doc); err != nil {
		t.Fatal(err)
	}
	documented := map[string][]string{}
	for path, item := range doc["paths"].(object) {
		for method, op := range item.(object) {
			if method == "parameters" {
				continue
			}
			names := []string{}
			list, _ := op.(object)["parameters"].([]any)
			for _, p := range list {
				if p := resolve(doc, p); p["in"] == "query" {
					names = append(names, p["name"].(string))
				}
			}
			slices.Sort(names)
			documented[strings.ToUpper(method)+" "+path] = names
		}
	}
	for _, r := range new(Door).routes() {
		key := r.method + " " + r.pattern
		want := slices.Clone(r.params)
		if !r.plain {
			want = append(want, commonParams[:]...)
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

func TestMerge_RefusesWhatIsThereTwice(t *testing.T) {
	into := object{"a": object{"b": "1"}}
	if err := merge(into, object{"a": object{"c": "2"}}, ""); err != nil {
		t.Error(err)
	}
	if err := merge(into, object{"a": object{"b": "1"}}, ""); err == nil ||
		!strings.Contains(err.Error(), "/a/b") {
		t.Error(err)
	}
}
