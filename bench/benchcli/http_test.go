package benchcli

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/bench/httpload"
	"github.com/zk-lite/zk-lite/bench/load"
)

// longer runs an HTTP load for longer and longer until it has answers and no errors,
// since a busy machine may have none of the former in a fraction of a second.
func longer(t *testing.T, web []string, args ...string) *load.Result {
	t.Helper()
	for d := 200 * time.Millisecond; ; d *= 4 {
		out, _, err := bench(t, web, append(args, "--warm-up", "0s", "--connections", "4", "-o", "json",
			"--duration", d.String())...)
		if err != nil {
			t.Fatalf("%v: %v", args, err)
		}
		r := &load.Result{}
		if err := json.Unmarshal([]byte(out), r); err != nil {
			t.Fatalf("%v: decoding the result: %v\n%s", args, err, out)
		}
		if len(r.Total.Errors) == 0 && len(r.Ops) > 0 && r.Ops[0].Latency.Count > 0 {
			return r
		}
		if d > 10*time.Second {
			t.Fatalf("%v: in %v %d answers, errors %v", args, d, r.Total.Latency.Count, r.Total.Errors)
		}
	}
}

// TestCommand_HTTP puts every load on the HTTP port of a server in this process, and
// finds the tree as it was before.
func TestCommand_HTTP(t *testing.T) {
	t.Parallel()
	hosts, web, _ := startWith(t, 1, true)
	before := znodes(t, hosts[0])
	for _, c := range []struct {
		args, op string
	}{
		{"http --keys 9 --mix get=50,set=25,create=25", "get"},
		{"http --keys 3 --mix set --rate 200", "set"},
		{"http lock", "lock"},
		{"http streams", "event"},
	} {
		if r := longer(t, web, strings.Fields(c.args)...); r.Ops[0].Name != c.op {
			t.Errorf("%s: %+v, want %s", c.args, r.Ops[0], c.op)
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
