//go:build prometheus

package monitoring_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/zk-lite/zk-lite/integration/cluster"
	"github.com/zk-lite/zk-lite/internal/testkit/ports"
	"github.com/zk-lite/zk-lite/internal/testkit/wait"
)

// TestPromtool_Rules: the rules are valid, each alert fires when it should, and none when all is well.
func TestPromtool_Rules(t *testing.T) {
	for _, args := range [][]string{
		{"check", "rules", alertsFile},
		{"test", "rules", alertsTestFile},
	} {
		if out, err := exec.Command("promtool", args...).CombinedOutput(); err != nil {
			t.Errorf("promtool %v (Debian: prometheus): %v\n%s", args, err, out)
		}
	}
}

// prometheus is a process that scrapes an ensemble and evaluates the rules every second, with short durations.
type prometheus struct {
	t   *testing.T
	url string
}

func startPrometheus(t *testing.T, e *cluster.Ensemble) *prometheus {
	t.Helper()
	dir := t.TempDir()
	var targets []string
	for _, s := range e.Servers() {
		targets = append(targets, fmt.Sprintf("%q", s.HTTPAddr()))
	}
	write(t, filepath.Join(dir, "alerts.yml"), shorten(read(t, alertsFile)))
	write(t, filepath.Join(dir, "prometheus.yml"), fmt.Sprintf(
		"global: {scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s}\nrule_files: [alerts.yml]\n"+
			"scrape_configs:\n- {job_name: zk-lite, static_configs: [{targets: [%s]}]}\n", strings.Join(targets, ", ")))
	p := &prometheus{t: t, url: fmt.Sprintf("127.0.0.1:%d", ports.Take(t, 1)[0])}
	c := exec.Command("prometheus", "--config.file="+filepath.Join(dir, "prometheus.yml"),
		"--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+p.url, "--log.level=warn")
	c.Stdout, c.Stderr = t.Output(), t.Output()
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := c.Start(); err != nil {
		t.Fatalf("%v (Debian: prometheus)", err)
	}
	t.Cleanup(func() {
		_ = c.Process.Kill() // its data is thrown away
		_ = c.Wait()
	})
	wait.Succeeds(t, "Prometheus sees all servers", func() error {
		if n := len(p.ask("query", url.Values{"query": {"up == 1"}}).Result); n != len(targets) {
			return fmt.Errorf("it sees %d", n)
		}
		return nil
	})
	return p
}

var durations = regexp.MustCompile(`\[\w+\]|for: \w+|offset \w+`)

// shorten has alerts fire after a second or two, and forget what was ten seconds ago.
func shorten(rules string) string {
	return durations.ReplaceAllStringFunc(rules, func(d string) string {
		switch {
		case strings.HasPrefix(d, "["):
			return "[10s]"
		case strings.HasPrefix(d, "for"):
			return "for: 2s"
		}
		return "offset 5s"
	})
}

// answer is the part of an answer of Prometheus's API that is used here.
type answer struct {
	Result []struct{ Value []any }
	Alerts []struct {
		Labels map[string]string
		State  string
	}
}

// ask sends a request to Prometheus's API; while it starts, the answer is empty.
func (p *prometheus) ask(resource string, query url.Values) (a answer) {
	p.t.Helper()
	r, err := http.Get("http://" + p.url + "/api/v1/" + resource + "?" + query.Encode())
	if err != nil {
		return a
	}
	defer r.Body.Close()
	var body struct {
		Data  answer
		Error string
	}
	if r.StatusCode == http.StatusServiceUnavailable {
		return a
	}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil || body.Error != "" {
		p.t.Errorf("%s %v: status %s, error %v %s; want none", resource, query, r.Status, err, body.Error)
	}
	return body.Data
}

// firing are the names of the alerts that fire.
func (p *prometheus) firing() (names []string) {
	for _, a := range p.ask("alerts", nil).Alerts {
		if a.State == "firing" {
			names = append(names, a.Labels["alertname"])
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// waitFiring waits until each of the alerts has been seen to fire.
func (p *prometheus) waitFiring(alerts ...string) {
	p.t.Helper()
	p.t.Logf("%v should fire", alerts)
	wait.Succeeds(p.t, "alerts that fire", func() error {
		firing := p.firing()
		alerts = slices.DeleteFunc(alerts, func(a string) bool { return slices.Contains(firing, a) })
		if len(alerts) > 0 {
			return fmt.Errorf("these do not: %v; these do: %v", alerts, firing)
		}
		return nil
	})
}

// waitSilent waits until none of the alerts fires; of all, if none is named.
func (p *prometheus) waitSilent(alerts ...string) {
	p.t.Helper()
	wait.Succeeds(p.t, "alerts that end", func() error {
		for _, a := range p.firing() {
			if len(alerts) == 0 || slices.Contains(alerts, a) {
				return fmt.Errorf("%s fires", a)
			}
		}
		return nil
	})
	p.t.Logf("silent: %v", alerts)
}

// check runs every query of the dashboard and the page: each has a result, if the ensemble is well and in use.
func (p *prometheus) check() {
	p.t.Helper()
	for file, all := range queries(p.t) {
		for _, q := range all {
			if file == alertsFile {
				continue // promtool has tested them
			}
			q = strings.NewReplacer("$job", "zk-lite", "$__rate_interval", "10s", "$__range", "10s").Replace(q)
			wait.Succeeds(p.t, "a result of "+q, func() error {
				result := p.ask("query", url.Values{"query": {q}}).Result
				if len(result) == 0 || result[0].Value[1] == "NaN" {
					return fmt.Errorf("%v", result)
				}
				return nil
			})
		}
	}
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
