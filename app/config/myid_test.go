package config

import (
	"os"
	"strings"
	"testing"
)

// The example for a missing myid was the first id of the list: pasted on the machine of server 3, it made that server
// another one's double.
func TestRegression_Load_MyIDsExampleIsThisMachines(t *testing.T) {
	name, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	for hosts, want := range map[string]string{
		"zk1.invalid,zk2.invalid," + name:         "as in: echo 3 > data/myid",
		"zk1.invalid," + name + ".invalid,zk3":    "as in: echo 2 > data/myid",
		"zk1.invalid,0.0.0.0,zk3.invalid":         "as in: echo 2 > data/myid",
		"zk1.invalid,zk2.invalid,zk3.invalid":     "(1 for zk1.invalid, 2 for zk2.invalid, 3 for zk3.invalid), as in: echo N > data",
		"127.0.0.1,127.0.0.2,127.0.0.3":           "(1 for 127.0.0.1, 2 for 127.0.0.2, 3 for 127.0.0.3), as in: echo N > data",
		name + "," + name + ",zk3.invalid":        "(1 for " + name + ", 2 for " + name + ", 3 for zk3.invalid), as in: echo N >",
		"192.0.2.1,[2001:db8::1],zk3.example.org": "(1 for 192.0.2.1, 2 for 2001:db8::1, 3 for zk3.example.org), as in",
	} {
		cfg := "dataDir=data\n"
		for i, host := range strings.Split(hosts, ",") {
			cfg += "server." + string(rune('1'+i)) + "=" + host + ":288" + string(rune('1'+i)) + ":3888\n"
		}
		if _, _, err := load(t, cfg, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v\nwant %q", hosts, err, want)
		}
	}
}
