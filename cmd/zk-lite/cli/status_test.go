package cli

import (
	"bytes"
	"reflect"
	"testing"

	"github.com/zk-lite/zk-lite/api/body"
	"github.com/zk-lite/zk-lite/cmd/zk-lite/cli/locate"
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

func TestParseConfig(t *testing.T) {
	got := parseConfig("server.1=zk1:2888:3888:participant;0.0.0.0:2181\nserver.2=[::1]:2888:3888:observer;[::]:2182\n" +
		"server.3=zk3:2888:3888:participant;10.0.0.3:2181\nserver.4=zk4:2888:3888\nserver.5=zk5:1:2;2181\nversion=100000000")
	want := []locate.Server{
		{ID: 1, Client: "zk1:2181"}, {ID: 2, Client: "[::1]:2182"}, {ID: 3, Client: "10.0.0.3:2181"}, {ID: 4},
		{ID: 5, Client: "zk5:2181"},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
}

func TestSameServer(t *testing.T) {
	for pair, want := range map[[2]string]bool{
		{"127.0.0.1:2181", "127.0.0.1:2181"}: true, {"localhost:2181", "127.0.0.1:2181"}: true,
		{"127.0.0.1:2181", "127.0.0.1:2182"}: false, {"127.0.0.2:2181", "127.0.0.1:2181"}: false, {"a", "127.0.0.1:1"}: false,
	} {
		if got := sameServer(t.Context(), pair[0], pair[1]); got != want {
			t.Errorf("%v: got %t, want %t", pair, got, want)
		}
	}
}
