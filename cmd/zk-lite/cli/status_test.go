package cli

import (
	"bytes"
	"reflect"
	"testing"

	"github.com/zk-lite/zk-lite/api/body"
)

// What several servers have counted, each over its own time, is added up.
func TestTop_Merge(t *testing.T) {
	pages := []body.Top{
		{Seconds: 10, Total: 1000, Sessions: []body.User{{Name: "0x1", Count: 600}}, Paths: []body.User{{Name: "/a", Count: 500}}},
		{Seconds: 100, Total: 10_000, Sessions: []body.User{{Name: "0x2", Count: 10_000, Over: 5000}},
			Paths: []body.User{{Name: "/a", Count: 1000}, {Name: "/b", Count: 900}}},
	}
	got := mergeTop(pages, "requests", 1)
	want := []topUser{
		{"all", "", "requests", 200, 0, 1},
		{"session", "0x2", "requests", 100, 50, 0.5},
		{"path", "/a", "requests", 60, 0, 0.3},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	var out bytes.Buffer
	if err := printTop(&out, got); err != nil {
		t.Fatal(err)
	}
	if out.String() != `KIND     NAME  REQUESTS/S       SHARE
all      -     200.0            100 %
session  0x2   100.0 (or 50.0)  50 %
path     /a    60.0             30 %
` {
		t.Errorf("got another table than is wanted:\n%s", out.String())
	}
	if got := mergeTop([]body.Top{{Total: 3, Paths: []body.User{{Name: "/a", Count: 3}}}}, topWatches, 9); got[1].Count != 3 {
		t.Errorf("watches have no time: %+v", got)
	}
}
