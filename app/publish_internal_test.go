package app

import (
	"testing"

	"github.com/zk-lite/zk-lite/app/config"
)

// admin.serverAddress=0.0.0.0 says where the HTTP port listens, as the chart sets it. It was published as where others
// find it.
func TestRegression_Publish_NoHTTPPortAtAllInterfaces(t *testing.T) {
	for at, want := range map[string]string{
		"": "zk1:8080", "0.0.0.0": "zk1:8080", "::": "zk1:8080", "10.0.0.1": "10.0.0.1:8080", "127.0.0.1": "",
	} {
		o := &Options{Settings: config.Settings{
			MyID: 1, AdminEnabled: true, AdminAddress: at, AdminPort: 8080,
			Servers: []config.Server{{ID: 1, Host: "zk1", PeerPort: 2888, ElectionPort: 3888, ClientPort: -1}},
		}}
		if m := publish(o); m.HTTP != want || m.Peer != "zk1:2888:3888" {
			t.Errorf("at %q: %+v, want %q", at, m, want)
		}
	}
}
