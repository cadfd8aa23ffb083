package benchcli

import (
	"strings"
	"testing"

	"github.com/zk-lite/zk-lite/bench/httpload"
	"github.com/zk-lite/zk-lite/bench/load"
)

// TestCommand_HTTP puts every load on the HTTP ports of three servers in this process,
// each long enough for an answer on a busy machine, and finds the tree as it was before.
func TestCommand_HTTP(t *testing.T) {
	t.Parallel()
	hosts, web, _ := startWith(t, 3, true)
	before := znodes(t, hosts[0])
	for _, c := range []struct {
		args, op string
	}{
		{"http --mix get=50,set=25,create=25", "get"},
		{"http --mix set --rate 200 --keys 3", "set"},
		{"http lock", "lock"},
		{"http streams", "event"},
	} {
		args := strings.Fields(c.args)
		r := run(t, web, append(quick(args...), "--duration", "400ms")...)
		if r.Ops[0].Name != c.op || r.Total.PerSecond <= 0 {
			t.Errorf("%s: %+v", c.args, r.Total)
		}
	}
	if after := znodes(t, hosts[0]); after != before {
		t.Errorf("%s znodes before, %s after", before, after)
	}
}

// TestCommand_HTTP_Errors: what cannot be measured is said before anything is sent.
func TestCommand_HTTP_Errors(t *testing.T) {
	t.Parallel()
	for want, args := range map[string][]string{
		"not of delete": {"http", "--mix", "delete"},
		"connecting":    {"http", "-s", "127.0.0.1:1"},
		"connections 0": {"http", "streams", "-c", "0"},
	} {
		_, _, err := bench(t, []string{"127.0.0.1:1"}, args...)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", args, err, want)
		}
	}
}

// TestHTTPLoad_AnswerIsAnError: a status that is not 2xx counts as an error by its number.
func TestHTTPLoad_AnswerIsAnError(t *testing.T) {
	t.Parallel()
	_, web, _ := startWith(t, 1, true)
	cfg := load.Default()
	cfg.Hosts = web
	if _, err := httpload.Run(t.Context(), cfg, httpload.Etcd{}); err == nil ||
		!strings.Contains(err.Error(), "status 404") {
		t.Errorf("zk-lite is no etcd: %v", err)
	}
}
