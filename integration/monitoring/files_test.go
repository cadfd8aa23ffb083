package monitoring_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/zk-lite/zk-lite/api/metrics"
)

const (
	alertsFile     = "../../packaging/prometheus/alerts.yml"
	alertsTestFile = "../../packaging/prometheus/alerts_test.yml"
	dashboardFile  = "../../packaging/grafana/zk-lite.json"
	monitoringPage = "../../docs/monitoring.md"
)

var updateAlerts = flag.Bool("update", false, "rewrite the table of alerts in docs/monitoring.md")

// TestFiles_MetricsExist: every metric that a rule, a panel or the page asks for is in the table of metrics.
// The test's log has those of the table that are not used.
func TestFiles_MetricsExist(t *testing.T) {
	known := map[string]bool{"up": true} // Prometheus's own
	for _, m := range metrics.Table() {
		known[m.Name] = true
		if m.Type == metrics.Histogram {
			known[m.Name+"_bucket"], known[m.Name+"_count"], known[m.Name+"_sum"] = true, true, true
		}
	}
	for _, m := range regexp.MustCompile(`(?m)^ +- record: (\S+)`).FindAllStringSubmatch(read(t, alertsFile), -1) {
		known[m[1]] = true
	}
	used := map[string]bool{}
	for file, expressions := range queries(t) {
		if len(expressions) < 5 {
			t.Errorf("%s: only %d queries found: is it still the format that is read here?", file, len(expressions))
		}
		for _, e := range expressions {
			for _, name := range metricsOf(e) {
				used[name] = true
				if !known[name] {
					t.Errorf("%s asks for %s, which no server reports: %s", file, name, e)
				}
			}
		}
	}
	var unused []string
	for _, m := range metrics.Table() {
		if !used[m.Name] && !used[m.Name+"_bucket"] && !used[m.Name+"_count"] {
			unused = append(unused, m.Name)
		}
	}
	t.Log("nobody asks for ", strings.Join(unused, ", "))
}

// queries are the PromQL in each file.
func queries(t *testing.T) map[string][]string {
	t.Helper()
	all := map[string][]string{}
	find := func(file, pattern string) {
		for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(read(t, file), -1) {
			all[file] = append(all[file], m[1])
		}
	}
	find(alertsFile, `(?m)^ +expr: (.*)`)
	find(monitoringPage, "(?s)```promql\n(.*?)```")
	var board struct {
		Panels []struct{ Targets []struct{ Expr string } }
	}
	if err := json.Unmarshal([]byte(read(t, dashboardFile)), &board); err != nil {
		t.Fatalf("%s: %v", dashboardFile, err)
	}
	for _, p := range board.Panels {
		for _, target := range p.Targets {
			all[dashboardFile] = append(all[dashboardFile], target.Expr)
		}
	}
	return all
}

var (
	// noMetrics are the parts of PromQL with other names than metrics'.
	noMetrics = regexp.MustCompile(`\{[^}]*\}|\[[^\]]*\]|offset \w+|` +
		`\b(?:\w+ +)?(?:by|on) *\([^)]*\)(?: *group_left)?|\b\w+ *\(|\b(?:and|or|unless)\b|> bool\b|\b[\d.]\w*`)
	metricName = regexp.MustCompile(`[a-zA-Z_][\w:]*`)
)

// metricsOf are the names of metrics in PromQL.
func metricsOf(expression string) []string {
	return metricName.FindAllString(noMetrics.ReplaceAllString(expression, " "), -1)
}

func TestFiles_MetricsOf(t *testing.T) {
	for expression, want := range map[string]string{
		`max by (job) (a{job=~"x"}) - 1e9 > on (job) group_left 0.8 * (b:c > bool 0)`: "a b:c",
		`sum by (x) (rate(a_total[5m])) unless b{c="d"} offset 1m or vector(0)`:       "a_total b",
	} {
		if got := strings.Join(metricsOf(expression), " "); got != want {
			t.Errorf("%s: %s, not %s", expression, got, want)
		}
	}
}

// alert is a rule of alertsFile.
type alert struct{ Name, Severity, Summary, Action, Runbook string }

func alerts(t *testing.T) (all []alert) {
	t.Helper()
	for line := range strings.Lines(read(t, alertsFile)) {
		key, value, _ := strings.Cut(strings.TrimLeft(strings.TrimSpace(line), "- "), ": ")
		value = strings.Trim(value, `"`)
		if key == "alert" {
			all = append(all, alert{Name: value})
			continue
		}
		if len(all) == 0 {
			continue
		}
		a := &all[len(all)-1]
		switch key {
		case "labels":
			a.Severity = strings.TrimSuffix(strings.TrimPrefix(value, "{severity: "), "}")
		case "summary":
			a.Summary = value
		case "action":
			a.Action = value
		case "runbook_url":
			a.Runbook = value
		}
	}
	return all
}

// TestFiles_Alerts: each alert states the fault, the remedy, and where to read more, fires in promtool's test, and is
// in the page's table, whose links another test follows. -update rewrites the table.
func TestFiles_Alerts(t *testing.T) {
	const head = "| alert | severity | what is wrong | what to do |\n|---|---|---|---|\n"
	fired := read(t, alertsTestFile)
	label := regexp.MustCompile(`\{\{ \$labels\.(\w+) \}\}`)
	var table strings.Builder
	for _, a := range alerts(t) {
		if !slices.Contains([]string{"page", "ticket"}, a.Severity) || a.Summary == "" || a.Action == "" {
			t.Errorf("it says too little: %+v", a)
		}
		page, anchor, _ := strings.Cut(strings.TrimPrefix(a.Runbook, "https://github.com/zk-lite/zk-lite/blob/main/"), "#")
		if !strings.Contains(fired, fmt.Sprintf("alertname=%q", a.Name)) {
			t.Errorf("%s does not expect %s to fire", alertsTestFile, a.Name)
		}
		page = strings.TrimPrefix(strings.TrimPrefix(page, "docs/"), "monitoring.md")
		fmt.Fprintf(&table, "| `%s` | %s | %s | %s [More](%s#%s) |\n", a.Name, a.Severity,
			label.ReplaceAllStringFunc(a.Summary, func(s string) string {
				return strings.ToUpper(label.FindStringSubmatch(s)[1])
			}), a.Action, page, anchor)
	}
	text := read(t, monitoringPage)
	before, rest, found := strings.Cut(text, head)
	_, after, _ := strings.Cut("\n"+rest, "\n\n") // an empty line ends it
	want := before + head + table.String() + "\n" + after
	switch {
	case !found:
		t.Fatalf("%s has no table of alerts, which begins with\n%s", monitoringPage, head)
	case text == want:
	case *updateAlerts:
		if err := os.WriteFile(monitoringPage, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("the table of %s differs from %s; run go test -update", monitoringPage, alertsFile)
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
