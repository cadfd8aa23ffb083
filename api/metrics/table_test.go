package metrics_test

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/zk-lite/zk-lite/api/metrics"
)

var update = flag.Bool("update", false, "rewrite docs/reference/metrics.md")

// Our names follow Prometheus's rules (promlint): they end with the base unit, counters with _total. Each metric has a
// help text of its own.
func TestTable_FollowsTheRules(t *testing.T) {
	name := regexp.MustCompile(`^[a-z][a-z0-9]*(_[a-z0-9]+)*$`)
	names, helps := map[string]bool{}, map[string]bool{}
	for _, m := range metrics.Table() {
		switch {
		case names[m.Name], helps[m.Help]:
			t.Errorf("%s or its help is there twice", m.Name)
		case m.Source == "", !strings.HasSuffix(m.Help, "."), strings.ContainsAny(m.Help, "|\n"):
			t.Errorf("%s has no source, or its help %q is no sentence", m.Name, m.Help)
		case !name.MatchString(m.Name):
			t.Errorf("%q is no name", m.Name)
		}
		names[m.Name], helps[m.Help] = true, true
		if !m.ZooKeeper {
			checkOurs(t, &m)
		}
	}
}

func checkOurs(t *testing.T, m *metrics.Metric) {
	t.Helper()
	base, total := strings.CutSuffix(m.Name, "_total")
	switch {
	case total != (m.Type == metrics.Counter):
		t.Errorf("%s is a %s", m.Name, m.Type)
	case m.Unit != "" && m.Unit != "seconds" && m.Unit != "bytes":
		t.Errorf("%s is in %s, which is no base unit", m.Name, m.Unit)
	case m.Unit != "" && !strings.HasSuffix(base, "_"+m.Unit):
		t.Errorf("%s does not end with its unit %s", m.Name, m.Unit)
	}
	for part := range strings.SplitSeq(base, "_") {
		switch part {
		case "count", "sum", "bucket", "gauge", "counter", "histogram", "ms", "us", "ns", "millis", "micros", "kb", "mb":
			t.Errorf("%s contains %s", m.Name, part)
		}
	}
}

// TestDocs_Metrics keeps docs/reference/metrics.md equal to the table; -update rewrites it.
func TestDocs_Metrics(t *testing.T) {
	const file = "../../docs/reference/metrics.md"
	var b strings.Builder
	b.WriteString(`# Metrics

A test of api/metrics writes this page from the table there. Every server reports these metrics at ` + "`/metrics`" + ` of its
HTTP port in Prometheus's text format, as numbers in JSON at ` + "`/commands/monitor`" + `, and with ` + "`zk_`" + ` in front of the name by
the four-letter word ` + "`mntr`" + `, which leaves out those of the HTTP port. Names marked with Z are ZooKeeper's, with its
units. An L marks what a leader of an ensemble alone reports. A summary is several numbers in ` + "`mntr`" + `: ` + "`avg_`" + `, ` + "`cnt_`" + `,
` + "`sum_`" + `, ` + "`p50_`" + `, ` + "`p95_`" + `, ` + "`p99_`" + ` and ` + "`p999_`" + `. Those of TLS are there where a port speaks TLS.
Latencies, packets and sizes of the ZooKeeper port are those since the start or the four-letter word ` + "`srst`" + `.
`)
	source := ""
	for _, m := range metrics.Table() {
		if m.Source != source {
			source = m.Source
			fmt.Fprintf(&b, "\n## %s\n\n| name | type | meaning |\n|---|---|---|\n",
				strings.ToUpper(source[:1])+source[1:])
		}
		marks, kind := "", string(m.Type)
		if m.ZooKeeper {
			marks = " Z"
		}
		if m.LeaderOnly {
			marks += " L"
		}
		if m.Unit != "" {
			kind += ", " + m.Unit
		}
		fmt.Fprintf(&b, "| `%s`%s | %s | %s |\n", m.Name, marks, kind, m.Help)
	}
	text, err := os.ReadFile(file)
	switch {
	case err == nil && string(text) == b.String():
	case *update:
		if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Fatalf("%s differs from the table (%v); run go test ./api/metrics -update", file, err)
	}
}
