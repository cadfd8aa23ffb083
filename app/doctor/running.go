package doctor

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/zk-lite/zk-lite/api/body"
	"github.com/zk-lite/zk-lite/app"
)

// most bounds an answer; that of /metrics has some tens of kilobytes.
const most = 1 << 20

// answers are what a server says of itself.
type answers struct {
	url     string
	version string
	ready   body.Ready
	ok      bool          // /readyz is 200
	ahead   time.Duration // of its clock before ours; precise to a second, as the header Date is
	metrics map[string]float64
}

// own are the answers of this server; nil: it does not run, or has no HTTP port.
func (d *doctor) own() *answers {
	s := &d.Settings
	if !s.AdminEnabled || s.AdminPort == 0 {
		return nil
	}
	host := s.AdminAddress
	if host == "" || net.ParseIP(host).IsUnspecified() {
		host = "127.0.0.1"
	}
	a, err := d.ask(d.url(host))
	if err != nil || a.ready.Server != s.MyID {
		return nil
	}
	return a
}

func (d *doctor) url(host string) string {
	scheme := "http://"
	if d.Settings.AdminForceHTTPS {
		scheme = "https://"
	}
	return scheme + net.JoinHostPort(host, strconv.Itoa(d.Settings.AdminPort))
}

// running compares this server's answers with those of the others.
func (d *doctor) running(own *answers) {
	d.ready(own)
	d.counted(own)
	for _, a := range d.neighbours() {
		if a.ready.Leader >= 0 && own.ready.Leader >= 0 && a.ready.Term == own.ready.Term &&
			a.ready.Leader != own.ready.Leader {
			d.fail("ensemble", fmt.Sprintf("in term %d this server follows server %d, and %s server %d",
				own.ready.Term, own.ready.Leader, a.url, a.ready.Leader),
				"they are of two ensembles: compare server.N of both, and their data directories")
		}
		d.compare(a, own.version)
	}
}

// before compares the answers of the others with this program, which does not run as a server yet.
func (d *doctor) before() {
	for _, a := range d.neighbours() {
		d.compare(a, d.Version)
	}
}

func (d *doctor) compare(a *answers, version string) {
	if a.version != version {
		d.warn("versions", fmt.Sprintf("%s runs version %s, and this server %s", a.url, a.version, version),
			"finish the update (docs/operations.md)")
	}
	if off := a.ahead.Abs(); off > d.Limits.Clock {
		d.warn("clock", fmt.Sprintf("the clock of %s differs from this one by %v", a.url, off.Round(time.Second)),
			"run chrony or systemd-timesyncd on both: the times of znodes, and TTLs, follow the leader's clock")
	}
	if !a.ok {
		d.warn("ensemble", fmt.Sprintf("%s serves no one: %s", a.url, a.ready.Status),
			"run zk-lite doctor there")
	}
}

// remedies are for the checks of /readyz?verbose.
var remedies = map[string]string{
	"formed": "do what it says: at the first start all voters must be up, and their peer ports open; later a new " +
		"server is let in by zk-lite member add or member token",
	"not_draining": "zk-lite drain ID --undo, or restart it",
	"leader":       "start the others, and let firewalls pass their peer ports: a majority of the voters must be up",
	"majority":     "start the others, and let firewalls pass their peer ports: a majority of the voters must be up",
	"disk":         "make room, or replace the disk; the server goes on by itself",
	"data": "if the directory was moved, put it back; else take a backup now, while the server runs (zk-lite backup; " +
		"without its admin.token: zk-lite export /), then remove it, and add it again with empty directories",
	"progress":   "look at the disks of a majority of the servers: nothing is applied until they write",
	"memory":     "delete znodes, or give all servers more memory (limits.treeBytes)",
	"mirror":     "see docs/migration.md, \"Mirror\"; zk-lite mirror --restart begins again after a fault",
	"not_halted": "see docs/operations.md, \"When a server halts\"",
	"certificate": "correct what it says, as by letting this server's user read the file, or issue a new one, " +
		"in place",
}

func (d *doctor) ready(a *answers) {
	if !a.ok {
		d.fail("ready", strings.TrimSuffix("this server serves no one: "+a.ready.Status+": "+a.ready.Reason, ": "),
			"see the findings beside this one, and the server's log")
	}
	for _, c := range a.ready.Checks {
		if c.OK {
			continue
		}
		do := remedies[strings.TrimPrefix(c.Name, "peer_")]
		if do == "" {
			do = "see docs/operations.md"
		}
		severity := Error
		if a.ok {
			severity = Warning
		}
		d.found(severity, "ready", strings.TrimSuffix(c.Name+" fails: "+c.Detail, ": "), do)
	}
}

// counted is what should be 0 in a server's metrics.
var counted = []struct{ metric, problem, do string }{
	{"descriptors_refused_total", "clients were refused, because descriptors were short",
		"raise the limit of open files (LimitNOFILE of the unit, or ulimit -n)"},
	{"snapshot_failures_total", "snapshots could not be written: the log grows",
		"make room, and read the server's log"},
	{"tls_reload_failures_total", "changed TLS files could not be used",
		"correct the files; the log says what is wrong"},
	{"tls_peer_reload_failures_total", "changed TLS files of the peer port could not be used",
		"correct the files; the log says what is wrong"},
	{"refused_writes_total", "writes were refused, because the tree had no room",
		"delete znodes, or give all servers more memory (limits.treeBytes)"},
	{"raft_disk_stalls_total", "the disk of this server, as a leader, hung", "replace the disk"},
	{"audit_events_left_out_total", "the audit log lacks events", "put audit.file on a disk that is faster"},
}

func (d *doctor) counted(a *answers) {
	for _, c := range counted {
		if n := a.metrics[c.metric]; n > 0 {
			d.warn("metrics", fmt.Sprintf("%s: %s is %v since the start", c.problem, c.metric, n), c.do)
		}
	}
}

// neighbours are the answers of the other servers. Those that do not answer are not missed: their HTTP ports may be
// closed to this machine.
func (d *doctor) neighbours() (all []*answers) {
	s, urls := &d.Settings, d.HTTP
	if len(urls) == 0 && s.AdminEnabled && s.AdminPort != 0 && !loopback(s.AdminAddress) {
		for _, srv := range s.Servers {
			if srv.ID != s.MyID {
				urls = append(urls, d.url(srv.Host))
			}
		}
	}
	found := make([]*answers, len(urls))
	errs := make([]error, len(urls))
	atOnce(len(urls), func(i int) { found[i], errs[i] = d.ask(urls[i]) })
	for i, a := range found {
		if errs[i] == nil && a.ready.Server != s.MyID {
			all = append(all, a)
		}
		if errs[i] != nil && len(d.HTTP) > 0 {
			d.warn("ensemble", "--http: "+errs[i].Error(), "correct the URL, or start the server")
		}
	}
	return all
}

// ask asks one server.
func (d *doctor) ask(url string) (*answers, error) {
	a := &answers{url: url, metrics: map[string]float64{}}
	begun := time.Now()
	text, header, code, err := d.get(url + "/readyz?verbose")
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, &a.ready); err != nil || a.ready.Status == "" {
		return nil, fmt.Errorf("%s does not answer as zk-lite does", url)
	}
	a.ok = code == http.StatusOK
	if at, err := http.ParseTime(header.Get("Date")); err == nil {
		a.ahead = at.Sub(begun.Truncate(time.Second))
	}
	if text, _, _, err = d.get(url + "/livez"); err != nil {
		return nil, err
	}
	var live struct {
		Version string `json:"version"`
	}
	if err := json.Unmarshal(text, &live); err != nil {
		return nil, fmt.Errorf("%s/livez: %w", url, err)
	}
	a.version = live.Version
	if text, _, _, err = d.get(url + "/metrics"); err == nil {
		for line := bufio.NewScanner(strings.NewReader(string(text))); line.Scan(); {
			name, value, _ := strings.Cut(line.Text(), " ")
			if n, err := strconv.ParseFloat(value, 64); err == nil {
				a.metrics[name] = n
			}
		}
	}
	return a, nil
}

func (d *doctor) get(url string) ([]byte, http.Header, int, error) {
	ctx, cancel := context.WithTimeout(d.ctx, d.Limits.Answer)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, nil, 0, err
	}
	t := &http.Transport{DisableKeepAlives: true, Proxy: nil}
	if files, err := app.ClientTLS(&d.Settings); err == nil && files != nil {
		t.TLSClientConfig = files.Client(r.URL.Hostname())
	}
	resp, err := (&http.Client{Transport: t}).Do(r)
	if err != nil {
		return nil, nil, 0, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, most))
	return text, resp.Header, resp.StatusCode, err
}
