package admin

import (
	"net"
	"strings"
	"testing"

	"github.com/zk-lite/zk-lite/consensus/state"
)

func TestParseMember_ReadsWhatConfigurationsHave(t *testing.T) {
	for text, want := range map[string]state.Member{
		"zk4:2888":                       {Addr: "zk4:2888", Peer: "zk4:2888:2888"},
		"zk4:2888:3888":                  {Addr: "zk4:2888", Peer: "zk4:2888:3888"},
		"10.0.0.4:2888:3888;2181":        {Addr: "10.0.0.4:2888", Peer: "10.0.0.4:2888:3888", Client: "10.0.0.4:2181"},
		"[2001:db8::4]:1:2;[::1]:2181":   {Addr: "[2001:db8::4]:1", Peer: "[2001:db8::4]:1:2", Client: "[::1]:2181"},
		"zk4.example.com:1;client.x:218": {Addr: "zk4.example.com:1", Peer: "zk4.example.com:1:1", Client: "client.x:218"},
	} {
		if m, err := parseMember(text); err != nil || m != want {
			t.Errorf("%q is parsed as %+v, %v; want %+v", text, m, err, want)
		}
	}
}

// An accepted member becomes a line of /zookeeper/config, so it must not be able to look like two.
func FuzzParseMember(f *testing.F) {
	for _, text := range []string{"zk4:2888:3888;2181", "[::1]:1:2;[::1]:3", "h:1;h:2", ";", "[", "h\n:1"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		m, err := parseMember(text)
		if err != nil {
			return
		}
		if _, _, err := net.SplitHostPort(m.Addr); err != nil {
			t.Errorf("%q: address %q: %v", text, m.Addr, err)
		}
		if strings.ContainsAny(m.Peer+m.Client, "\r\n;= ") {
			t.Errorf("%q is accepted, and would be two lines of /zookeeper/config: %+v", text, m)
		}
	})
}
