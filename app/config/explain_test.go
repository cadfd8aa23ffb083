package config

import (
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// TestExplain: each value with its place, as it is after all rules; the super user's hash is not repeated.
func TestExplain(t *testing.T) {
	const hash = "lK75jTNcA+U9vtVEw5vB51mj/w4="
	cfg := "dataDir=data\nserver.1=a:2888:3888;2181\nserver.2=b:2888:3888:observer;10.0.0.2:2182\n" +
		"superDigest=super:" + hash + "\nsnapCount=1\n4lw.commands.whitelist=ruok,srvr\n"
	load(t, cfg, nil) // writes zoo.cfg
	fs := pflag.NewFlagSet("server", pflag.ContinueOnError)
	BindFlags(fs)
	if err := fs.Parse([]string{"--config", "zoo.cfg", "--myid", "2"}); err != nil {
		t.Fatal(err)
	}
	env := map[string]string{"ZK_LITE_TICK_TIME": "3000"}
	values, err := Explain(fs, func(name string) (string, bool) { v, ok := env[name]; return v, ok })
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []Value{
		{"tickTime", "3s", "environment ZK_LITE_TICK_TIME"},
		{"dataDir", "data", "zoo.cfg:1"},
		{"dataLogDir", "data", "default"},
		{"minSessionTimeout", "6s", "default"},
		{"server.1", "a:2888:3888:participant;0.0.0.0:2181", "zoo.cfg:2"},
		{"server.2", "b:2888:3888:observer;10.0.0.2:2182", "zoo.cfg:3"},
		{"--myid", "2", "flag --myid"},
		{"peerType", "observer", "zoo.cfg:3"},
		{"clientPort", "2182", "zoo.cfg:3"},
		{"clientPortAddress", "10.0.0.2", "zoo.cfg:3"},
		{"4lw.commands.whitelist", "ruok,srvr", "zoo.cfg:6"},
		{"DigestAuthenticationProvider.superDigest", "set, and not shown", "zoo.cfg:4"},
		{"snapCount", "2", "zoo.cfg:5"},
		{"admin.allowedHosts", "none", "default"},
		{"logger.level", "info", "default"},
	} {
		if !slices.Contains(values, want) {
			i := slices.IndexFunc(values, func(v Value) bool { return v.Name == want.Name })
			t.Errorf("want %+v, have %+v", want, values[max(i, 0)])
		}
	}
	for _, v := range values {
		if strings.Contains(v.Text, hash) {
			t.Errorf("%s shows the hash", v.Name)
		}
		if v.Text == "" || v.Source == "" {
			t.Errorf("%+v is incomplete", v)
		}
	}
	// Without the file and the list, with two servers.
	if rows := len(table(new(Settings))) - len(retiredRows()) - 2 + 2; len(values) != rows {
		t.Errorf("%d values, want %d", len(values), rows)
	}
}
