package learner

import (
	"reflect"
	"strings"
	"testing"
)

func TestParseMembers(t *testing.T) {
	got, err := ParseMembers("server.1=zk1:2888:3888:participant;0.0.0.0:2181\n" +
		"server.2=[fe80::1]:2888:3888|b:2889:3889:observer;2181\r\n" +
		"server.3=10.0.0.3:2888:3888\n" +
		"group.1=1:2\nversion=100000000")
	want := []Member{
		{ID: 1, Peers: []string{"zk1:2888"}, Client: "0.0.0.0:2181"},
		{ID: 2, Peers: []string{"[fe80::1]:2888", "b:2889"}, Observer: true, Client: "2181"},
		{ID: 3, Peers: []string{"10.0.0.3:2888"}},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v\nwant %+v", got, err, want)
	}
	for _, text := range []string{
		"server.x=a:1:2", "server.1", "server.1=a", "server.1=a:1", "server.1=a:0:2", "server.1=a:1:2:leader",
		"server.1=a:1:2;x", "server.1=:1:2", "server.1=a:1:99999", "server.1=a:1:2|;1",
	} {
		if got, err := ParseMembers("server.7=a:1:2\n" + text); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("ParseMembers(%q) = %+v, %v; want an error that names the line", text, got, err)
		}
	}
}

// A text that is an id's line in a configuration is found in any, and no other id's.
func TestRefuseListed(t *testing.T) {
	for id, listed := range map[int64]bool{1: true, 2: true, 20: false, 0: false, 12: false, -1: false} {
		if err := refuseListed([]byte(configText), id); (err != nil) != listed {
			t.Errorf("refuseListed(%d) = %v, want that it is listed: %v", id, err, listed)
		}
	}
}
