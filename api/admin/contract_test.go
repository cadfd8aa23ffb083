package admin

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/api/body"
	"github.com/zk-lite/zk-lite/api/rest"
)

// A type has the fields of its schema in the OpenAPI document, of the same types, and writes those that the schema
// requires.
func TestContract_TypesEqualTheirSchemas(t *testing.T) {
	doc, err := mergeDocument(openapiFiles)
	if err != nil {
		t.Fatal(err)
	}
	c := &contract{T: t, schemas: doc["components"].(object)["schemas"].(object)}
	for name, v := range map[string]any{
		"Problem": body.Problem{}, "Cluster": body.Cluster{}, "Member": body.Member{}, "Restored": body.Restored{},
		"SlowRequests": body.Newest[body.SlowRequest]{}, "SlowRequest": body.SlowRequest{},
		"SlowEntries": body.Newest[body.SlowEntry]{}, "SlowEntry": body.SlowEntry{},
		"ExpiredSessions": body.Newest[body.ExpiredSession]{}, "ExpiredSession": body.ExpiredSession{},
		"Top": body.Top{}, "Subtrees": body.Subtrees{}, "Rights": body.Rights{}, "TopUser": body.User{}, "Ready": body.Ready{},
		"Session": body.SessionRow{}, "SessionDetail": body.SessionDetail{}, "Watch": body.Watch{}, "Place": body.Place{},
		"Participant": body.Participant{}, "Stat": rest.Stat{},
	} {
		schema, ok := c.schemas[name].(object)
		if !ok {
			t.Errorf("the document has no schema %s", name)
			continue
		}
		c.object(name, schema, reflect.TypeOf(v))
	}
}

// Where a type may differ from its schema.
const (
	mayBeMissing  = "a server of an earlier release leaves it out"
	ofSlowAlone   = "slow requests and entries have a threshold, expired sessions do not"
	alwaysForSlow = "it is left out for expired sessions alone"
)

var exceptions = map[string]string{
	"Cluster.ensemble": mayBeMissing, "ExpiredSessions.threshold_ms": ofSlowAlone,
	"SlowRequests.threshold_ms": alwaysForSlow, "SlowEntries.threshold_ms": alwaysForSlow,
}

type contract struct {
	*testing.T
	schemas object
}

// jsonField is a field of a struct as encoding/json writes it.
type jsonField struct {
	kind     reflect.Type
	optional bool
}

// fieldsOf lists the fields of a struct by their names in JSON; those of an embedded pointer are optional.
func fieldsOf(s reflect.Type, optional bool, into map[string]jsonField) {
	for i := range s.NumField() {
		f := s.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && f.Type.Kind() == reflect.Pointer:
			fieldsOf(f.Type.Elem(), true, into)
		case f.Anonymous:
			fieldsOf(f.Type, optional, into)
		case name != "-":
			into[name] = jsonField{f.Type, optional || options == "omitempty"}
		}
	}
}

// object compares a struct with the schema of an object.
func (c *contract) object(at string, schema object, s reflect.Type) {
	fields := map[string]jsonField{}
	fieldsOf(s, false, fields)
	properties, _ := schema["properties"].(object)
	var required []string
	for _, name := range schema["required"].([]any) {
		required = append(required, name.(string))
	}
	for name, f := range fields {
		where := at + "." + name
		property, documented := properties[name].(object)
		switch {
		case exceptions[where] == ofSlowAlone:
			continue
		case !documented:
			c.Errorf("%s is not in the document", where)
			continue
		case slices.Contains(required, name) == f.optional && exceptions[where] == "":
			c.Errorf("%s: the document requires it: %t; the type always writes it: %t", where, f.optional, !f.optional)
		}
		c.value(where, property, f.kind)
	}
	for name := range properties {
		if _, ok := fields[name]; !ok {
			c.Errorf("%s.%s is documented, and the type has no such field", at, name)
		}
	}
}

// value compares a type with a schema.
func (c *contract) value(at string, schema object, v reflect.Type) {
	if ref, ok := schema["$ref"].(string); ok {
		schema = c.schemas[ref[strings.LastIndexByte(ref, '/')+1:]].(object)
	}
	if v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	want := ""
	switch v.Kind() {
	case reflect.String:
		want = "string"
	case reflect.Bool:
		want = "boolean"
	case reflect.Int, reflect.Int32, reflect.Int64, reflect.Uint64:
		want = "integer"
	case reflect.Float64:
		want = "number"
	case reflect.Map:
		want = "object"
	case reflect.Slice:
		want = "array"
		c.value(at+"[]", schema["items"].(object), v.Elem())
	case reflect.Struct:
		if want = "object"; v == reflect.TypeFor[time.Time]() {
			want = "string"
		} else {
			c.object(at, schema, v)
		}
	case reflect.Interface: // anything
		return
	}
	kinds, several := schema["type"].([]any)
	if !several {
		kinds = []any{schema["type"]}
	}
	if !slices.Contains(kinds, any(want)) {
		c.Errorf("%s is documented as %v, and the type is %s", at, schema["type"], v)
	}
}
