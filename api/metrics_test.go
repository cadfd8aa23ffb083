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
	"github.com/zk-lite/zk-lite/server"
)

// sample is what a line of Prometheus's text format says.
type sample struct {
	kind   string
	labels string
	value  float64
}

var (
	helpLine   = regexp.MustCompile(`^# HELP ([a-zA-Z_:][a-zA-Z0-9_:]*) (\S.*)$`)
	typeLine   = regexp.MustCompile(`^# TYPE ([a-zA-Z_:][a-zA-Z0-9_:]*) (counter|gauge|untyped)$`)
	sampleLine = regexp.MustCompile(`^([a-zA-Z_:][a-zA-Z0-9_:]*)` +
		`(?:\{([a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\["\\n])*")\})? (\S+)$`)
)

// parseMetrics reads the text format as strictly as its description is: for each name
// its HELP, its TYPE and its sample, once and in this order, each line ended.
func parseMetrics(text []byte) (map[string]sample, error) {
	all := map[string]sample{}
	if !bytes.HasSuffix(text, []byte("\n")) {
		return nil, fmt.Errorf("the last line is not ended")
	}
	lines := bufio.NewScanner(bytes.NewReader(text))
	next := func(pattern *regexp.Regexp) ([]string, error) {
		if !lines.Scan() {
			return nil, fmt.Errorf("it ends before %v", pattern)
		}
		m := pattern.FindStringSubmatch(lines.Text())
		if m == nil {
			return nil, fmt.Errorf("%q does not match %v", lines.Text(), pattern)
		}
		return m, nil
	}
	for lines.Scan() {
		help := helpLine.FindStringSubmatch(lines.Text())
		if help == nil {
			return nil, fmt.Errorf("%q is not a HELP line", lines.Text())
		}
		kind, err := next(typeLine)
		if err != nil {
			return nil, err
		}
		line, err := next(sampleLine)
		if err != nil {
			return nil, err
		}
		name := help[1]
		if kind[1] != name || line[1] != name {
			return nil, fmt.Errorf("%s, then %s and %s", name, kind[1], line[1])
		}
		if _, twice := all[name]; twice {
			return nil, fmt.Errorf("%s is there twice", name)
		}
		v, err := strconv.ParseFloat(line[3], 64)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		all[name] = sample{kind[2], line[2], v}
	}
	return all, lines.Err()
}

func TestMetrics_AreInTheTextFormat(t *testing.T) {
	e := shared()
	i := e.leading(t)
	c := newClient(t, e.urls[i])
	root(t, c)
	a := c.get("/metrics").is(200)
	if got := a.header.Get("Content-Type"); got != "text/plain; version=0.0.4; charset=utf-8" {
		t.Error(got)
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
		"last_zxid": 1, "http_streams": 0, "survivable_failures": 0, "go_goroutines": 1,
	} {
		if got, ok := all[name]; !ok || got.value < least || got.kind != "gauge" {
			t.Errorf("%s is %v %v", name, ok, got)
		}
	}
	if all["raft_role"].labels != `role="leader"` || all["zk_lite_info"].labels != `version="test"` {
		t.Errorf("%v %v", all["raft_role"], all["zk_lite_info"])
	}
	other, err := parseMetrics(newClient(t, e.urls[(i+1)%3]).get("/metrics").is(200).body)
	if _, has := other["synced_followers"]; has || err != nil {
		t.Errorf("a follower: %v %v", has, err)
	}
}

// What other parts report is added, each name once; what cannot be said is left out.
func TestMetrics_OfOtherParts(t *testing.T) {
	srv := diskless{shared().nodes[0].Server()}
	_, url := door(t, srv, func(c *api.Config) {
		c.Version = "1\n\"\\"
		c.Metrics = func(emit func(string, any)) {
			emit("fsync_count", int64(7))
			emit("fsync_count", int64(8))
			emit("fsync_max_us", 5)
			emit("znode_count", 9)
			emit("new_thing", 0.5)
			emit("server_state", "leader")
			emit("no name", 1)
			emit("9", 1)
			emit("", 1)
		}
	})
	a := newClient(t, url).get("/metrics").is(200)
	all, err := parseMetrics(a.body)
	if err != nil {
		t.Fatalf("%v in\n%s", err, a.body)
	}
	for name, want := range map[string]sample{
		"fsync_count": {"counter", "", 7}, "fsync_max_us": {"gauge", "", 5},
		"new_thing": {"untyped", "", 0.5}, "disk_fault": {"gauge", "", 1},
		"zk_lite_info": {"gauge", `version="1\n\"\\"`, 1}, "raft_contact_seconds": {"gauge", "", -1},
	} {
		if all[name] != want {
			t.Errorf("%s: %v, want %v", name, all[name], want)
		}
	}
	if all["znode_count"].value == 9 {
		t.Error("the own figure was replaced")
	}
	for _, name := range []string{"server_state", "no name", "9", ""} {
		if _, there := all[name]; there {
			t.Errorf("%q is there", name)
		}
	}
	newClient(t, url).get("/commands/mntr").is(200).has("new_thing", 0.5).has("disk_fault", 1)
}

// diskless is a server whose disk has a fault.
type diskless struct{ *server.Server }

func (s diskless) Status() server.Status {
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
