package api_test

import (
	"bufio"
	"bytes"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/zk-lite/zk-lite/api"
	"github.com/zk-lite/zk-lite/api/metrics"
	"github.com/zk-lite/zk-lite/consensus"
	"github.com/zk-lite/zk-lite/server"
)

// sample is a line of Prometheus's text format.
type sample struct {
	kind   string
	labels string
	value  float64
}

var (
	helpLine   = regexp.MustCompile(`^# HELP ([a-zA-Z_:][a-zA-Z0-9_:]*) (\S.*)$`)
	typeLine   = regexp.MustCompile(`^# TYPE ([a-zA-Z_:][a-zA-Z0-9_:]*) (counter|gauge|untyped|histogram|summary)$`)
	sampleLine = regexp.MustCompile(`^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(` + label + `(?:,` + label + `)*)\})? (\S+)$`)
)

const label = `[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\["\\n])*"`

// parseMetrics reads the text format as strictly as its description is: for each name
// its HELP, its TYPE and its samples, once and in this order, each line ended. A figure
// with several samples has each by its name and labels, as name{labels}.
func parseMetrics(text []byte) (map[string]sample, error) {
	all := map[string]sample{}
	if !bytes.HasSuffix(text, []byte("\n")) {
		return nil, fmt.Errorf("the last line is not ended")
	}
	lines := bufio.NewScanner(bytes.NewReader(text))
	names := map[string]bool{}
	var kind []string // the last TYPE line
	var samples int   // since then
	for lines.Scan() {
		if help := helpLine.FindStringSubmatch(lines.Text()); help != nil {
			if kind != nil && samples == 0 {
				return nil, fmt.Errorf("%s has no sample", kind[1])
			}
			samples = 0
			if kind = nil; lines.Scan() {
				kind = typeLine.FindStringSubmatch(lines.Text())
			}
			if kind == nil || kind[1] != help[1] || names[help[1]] {
				return nil, fmt.Errorf("%q follows the HELP of %s, which is there twice: %v",
					lines.Text(), help[1], names[help[1]])
			}
			names[help[1]] = true
			continue
		}
		line := sampleLine.FindStringSubmatch(lines.Text())
		if line == nil || kind == nil || !belongs(line[1], kind[1], kind[2]) {
			return nil, fmt.Errorf("%q follows %v", lines.Text(), kind)
		}
		v, err := strconv.ParseFloat(line[3], 64)
		if err != nil {
			return nil, fmt.Errorf("%q: %w", lines.Text(), err)
		}
		key := line[1]
		if _, there := all[key]; there || strings.Contains(line[2], ",") {
			key += "{" + line[2] + "}"
		}
		if _, twice := all[key]; twice {
			return nil, fmt.Errorf("%s is there twice", key)
		}
		all[key] = sample{kind[2], line[2], v}
		samples++
	}
	if samples == 0 {
		return nil, fmt.Errorf("it ends without a sample")
	}
	return all, lines.Err()
}

// belongs reports whether a sample belongs to a metric.
func belongs(sample, name, kind string) bool {
	if kind != "histogram" && kind != "summary" {
		return sample == name
	}
	part, found := strings.CutPrefix(sample, name)
	return found && (part == "_bucket" && kind == "histogram" || part == "" && kind == "summary" || part == "_sum" || part == "_count")
}

func TestMetrics_AreInTheTextFormat(t *testing.T) {
	e := shared()
	i := e.leading(t)
	c := newClient(t, e.urls[i])
	root(t, c)
	a := c.get("/metrics").want(200)
	if got := a.header.Get("Content-Type"); got != "text/plain; version=0.0.4; charset=utf-8" {
		t.Errorf("the content type is %q", got)
	}
	all, err := parseMetrics(a.body)
	if err != nil {
		t.Fatalf("%v in\n%s", err, a.body)
	}
	for name, least := range map[string]float64{
		"znode_count": 5, "ephemerals_count": 0, "approximate_data_size": 1, "watch_count": 0,
		"global_sessions": 0, "quorum_size": 3, "raft_term": 1, "raft_leader": float64(i + 1),
		"raft_applied_index": 1, "raft_last_index": 1, "uptime": 0, "synced_followers": 1,
		"serving": 1, "draining": 0, "disk_fault": 0, "raft_role": 1, "zk_lite_info": 1,
		"last_zxid": 1, "http_streams": 0, "failures_tolerated_now": 0, "go_goroutines": 1,
	} {
		if got, ok := all[name]; !ok || got.value < least || got.kind != "gauge" {
			t.Errorf("%s is %v %v", name, ok, got)
		}
	}
	if all["raft_role"].labels != `role="leader"` || all["zk_lite_info"].labels != `version="test"` {
		t.Errorf("the labels are %v and %v, want the role leader and the version test",
			all["raft_role"], all["zk_lite_info"])
	}
	for _, m := range metrics.Table() {
		if _, there := all[m.Name]; !there && !strings.HasPrefix(m.Name, "http_request") && m.Source != "TLS" && m.Source != "scheduled backups" && m.Type != metrics.Histogram {
			t.Errorf("%s is not reported", m.Name)
		}
	}
	for _, histogram := range []string{
		"raft_commit_seconds", "raft_apply_seconds", "forward_queue_seconds", "log_fsync_seconds",
	} {
		if all[histogram+"_count"].value < 1 || all[histogram+"_sum"].value <= 0 {
			t.Errorf("%s has counted nothing", histogram)
		}
	}
	for name, s := range all {
		if s.kind == "untyped" {
			t.Errorf("%s is not in the table of metrics", name)
		}
	}
	other, err := parseMetrics(newClient(t, e.urls[(i+1)%3]).get("/metrics").want(200).body)
	if _, has := other["synced_followers"]; has || err != nil {
		t.Errorf("a follower: %v %v", has, err)
	}
}

// Metrics of other parts are added; a metric that is not in the table has no type.
func TestMetrics_OfOtherParts(t *testing.T) {
	srv := diskless{shared().nodes[0].Server()}
	_, url := serveReplaced(t, shared().nodes[0], srv, func(c *api.Config) {
		c.Admin.Version = "1\n\"\\"
		c.Admin.Metrics = func(emit func(string, any)) {
			emit("log_fsyncs_total", int64(7))
			emit("log_fsync_max_seconds", 0.005)
			emit("new_thing", 0.5)
		}
	})
	a := newClient(t, url).get("/metrics").want(200)
	all, err := parseMetrics(a.body)
	if err != nil {
		t.Fatalf("%v in\n%s", err, a.body)
	}
	for name, want := range map[string]sample{
		"log_fsyncs_total": {"counter", "", 7}, "log_fsync_max_seconds": {"gauge", "", 0.005},
		"new_thing": {"untyped", "", 0.5}, "disk_fault": {"gauge", "", 1},
		"zk_lite_info": {"gauge", `version="1\n\"\\"`, 1}, "raft_contact_seconds": {"gauge", "", -1},
	} {
		if all[name] != want {
			t.Errorf("%s: %v, want %v", name, all[name], want)
		}
	}
	newClient(t, url).get("/commands/mntr").want(200).has("new_thing", 0.5).has("disk_fault", 1)
}

// diskless is a server whose disk has a fault.
type diskless struct{ *server.Server }

func (s diskless) Status() consensus.Status {
	st := s.Server.Status()
	st.DiskFault, st.Contact = "no space left", 1<<63-1
	return st
}

func TestParseMetrics_RefusesWhatIsNoTextFormat(t *testing.T) {
	const good = "# HELP a A.\n# TYPE a gauge\na 1\n"
	if _, err := parseMetrics([]byte(good)); err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{
		strings.TrimSpace(good), good + good, "a 1\n", "# HELP a A.\na 1\n",
		strings.Replace(good, "gauge", "gage", 1), strings.Replace(good, "a 1", "b 1", 1),
		strings.Replace(good, "a 1", "a one", 1), strings.Replace(good, "a 1", `a{x="} 1`, 1),
	} {
		if _, err := parseMetrics([]byte(bad)); err == nil {
			t.Errorf("%q passes", bad)
		}
	}
}

// Requests are counted by operation and status, and by the time until they were answered;
// those for nothing that there is together, whatever names their clients make up.
func TestMetrics_OfRequests(t *testing.T) {
	_, url := serve(t, shared().nodes[0], func(*api.Config) {})
	c := newClient(t, url)
	if _, err := parseMetrics(c.get("/metrics").want(200).body); err != nil {
		t.Error("before there is anything to tell:", err)
	}
	c.get("/v1/znodes/").want(200)
	c.do("HEAD", "/v1/znodes/", "").want(200)
	c.get("/v1/znodes/missing").want(404)
	c.get("/v1/znodes/?stat=perhaps").want(400)
	c.get("/nothing").want(404)
	c.do("BREW", "/nothing", "").want(404)
	c.do("BREW", "/v1/znodes/", "").want(405)
	c.do("OPTIONS", "/v1/znodes/", "").want(204)
	all, err := parseMetrics(c.get("/metrics").want(200).body)
	if err != nil {
		t.Fatal(err)
	}
	count := func(name, method, route, more string) float64 {
		return all[name+`{method="`+method+`",route="`+route+`"`+more+`}`].value
	}
	const znodes = "/v1/znodes/{path}"
	for _, want := range []struct {
		method, route, code string
		n                   float64
	}{
		{"GET", znodes, "200", 2}, {"GET", znodes, "404", 1}, {"GET", znodes, "400", 1},
		{"none", "none", "404", 2}, {"none", "none", "405", 1}, {"none", "none", "204", 1},
		{"BREW", znodes, "405", 0}, {"GET", "/metrics", "200", 1}, // the other is not answered yet
	} {
		got := count("http_requests_total", want.method, want.route, `,code="`+want.code+`"`)
		if got != want.n {
			t.Errorf("%v requests, want %+v", got, want)
		}
	}
	const seconds = "http_request_duration_seconds"
	if n := count(seconds+"_count", "GET", znodes, ""); n != 4 {
		t.Errorf("%v latencies of four requests", n)
	}
	if sum := count(seconds+"_sum", "GET", znodes, ""); sum <= 0 || sum > 60 {
		t.Errorf("four requests took %v s", sum)
	}
	last := 0.0
	for _, le := range []string{"0.0005", "0.001", "0.0025", "0.005", "0.01", "0.025", "0.05", "0.1",
		"0.25", "0.5", "1", "2.5", "5", "10", "+Inf"} {
		n, there := all[seconds+`_bucket{method="GET",route="`+znodes+`",le="`+le+`"}`]
		if !there || n.value < last {
			t.Errorf("%v (%v) within %s s, and %v earlier", n.value, there, le, last)
		}
		last = n.value
	}
	if last != 4 {
		t.Errorf("%v requests took any time", last)
	}
	for name := range all {
		if strings.Contains(name, "BREW") || strings.Contains(name, "missing") {
			t.Errorf("a client made up %s", name)
		}
	}
}
