package admin

import (
	"bytes"
	"fmt"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/zk-lite/zk-lite/api/rest"
	"github.com/zk-lite/zk-lite/server"
	"github.com/zk-lite/zk-lite/watch"
	"github.com/zk-lite/zk-lite/znode"
)

// Metrics lists figures of other parts of the server: emit is called with a name in
// the style of ZooKeeper's mntr, without zk_, and an integer or a float64. Others are
// left out.
type Metrics func(emit func(name string, value any))

// metric is one figure.
type metric struct {
	name  string
	kind  metricKind
	help  string
	label string // name="value", escaped; may be empty
	value float64
}

type metricKind string

const (
	gauge   metricKind = "gauge"
	counter metricKind = "counter"
	untyped metricKind = "untyped"
)

// metrics answers with all figures in Prometheus's text format (version 0.0.4). Those
// that ZooKeeper has, too, have its PrometheusMetricsProvider's names.
func (h *handlers) metrics(q *rest.Request) error {
	var b bytes.Buffer
	for _, m := range h.measure() {
		m.write(&b)
	}
	h.core.Metrics.Write(&b)
	q.SendBytes(http.StatusOK, "text/plain; version=0.0.4; charset=utf-8", b.Bytes())
	return nil
}

func (m *metric) write(b *bytes.Buffer) {
	fmt.Fprintf(b, "# HELP %s %s\n# TYPE %s %s\n%s", m.name, m.help, m.name, m.kind, m.name)
	if m.label != "" {
		fmt.Fprintf(b, "{%s}", m.label)
	}
	fmt.Fprintf(b, " %s\n", strconv.FormatFloat(m.value, 'g', -1, 64))
}

// measure takes all figures, each name once.
func (h *handlers) measure() []metric {
	s := h.core.Server.Status()
	all := append(h.measureState(), h.measureAgreement(&s)...)
	all = append(all, h.measureHTTP()...)
	known := map[string]bool{}
	for _, m := range all {
		known[m.name] = true
	}
	add := func(name string, value any) {
		v, ok := number(value)
		if !ok || known[name] || !isMetricName(name) {
			return
		}
		known[name] = true
		kind, help := describeMetric(name)
		all = append(all, metric{name: name, kind: kind, help: help, value: v})
	}
	if h.cfg.Port != nil {
		h.cfg.Port.Emit(add)
	}
	if h.cfg.Metrics != nil {
		h.cfg.Metrics(add)
	}
	return all
}

// measureState is about the tree, the sessions and the watches.
func (h *handlers) measureState() []metric {
	var size znode.Size
	var watches watch.Summary
	var sessions int
	var zxid znode.Zxid
	h.core.Server.View(func(v *server.View) {
		size, watches, zxid = v.Tree().Size(), v.Watches().Summary(), v.Zxid()
		sessions = v.Machine().Sessions().Len()
	})
	return []metric{
		// ZooKeeper counts the root twice, as / and as the empty path.
		{"znode_count", gauge, "Znodes.", "", float64(size.Znodes + 1)},
		{"ephemerals_count", gauge, "Ephemeral znodes.", "", float64(size.Ephemerals)},
		{"approximate_data_size", gauge, "Bytes of all paths and data.", "", float64(size.Bytes)},
		{"watch_count", gauge, "Watches of this server's connections.", "", float64(watches.Total)},
		{"global_sessions", gauge, "Sessions of the whole ensemble.", "", float64(sessions)},
		{"local_sessions", gauge, "Always 0: there is no such kind here.", "", 0},
		{"last_zxid", gauge, "The last transaction that this server has applied.", "", float64(zxid)},
	}
}

// measureAgreement is about this server's place in the ensemble.
func (h *handlers) measureAgreement(s *server.Status) []metric {
	contact := s.Contact.Seconds()
	if s.Contact >= contactNever {
		contact = -1
	}
	all := []metric{
		{"quorum_size", gauge, "Servers that vote.", "", float64(s.Voters)},
		{"pending_commands", gauge, "Commands of this server that await their result.", "",
			float64(s.Pending)},
		{"raft_role", gauge, "What this server is in the ensemble.",
			`role="` + string(s.Role) + `"`, 1},
		{"raft_term", gauge, "Raft's term.", "", float64(s.Term)},
		{"raft_leader", gauge, "The leader's id; 0: unknown.", "", float64(s.Leader)},
		{"raft_last_index", gauge, "The last entry in this server's log.", "", float64(s.LastIndex)},
		{"raft_applied_index", gauge, "The last entry that this server has applied.", "",
			float64(s.AppliedIndex)},
		{"raft_contact_seconds", gauge,
			"How long ago a majority was last known; -1: never.", "", contact},
		{"disk_fault", gauge, "1: this server could not write its log, vote or term when it last tried.",
			"", truth(s.DiskFault != "")},
		{"serving", gauge, "1: this server serves clients.", "", truth(h.core.Server.Serving())},
		{"draining", gauge, "1: this server is drained, to be stopped.", "", truth(h.core.Server.Draining())},
	}
	if s.Role != server.RoleLeader {
		return all
	}
	return append(all, []metric{
		{"learners", gauge, "Servers that are connected to this leader.", "",
			float64(s.Followers + s.Observers)},
		{"synced_followers", gauge, "Voters that are connected to this leader.", "",
			float64(s.Followers)},
		{"synced_observers", gauge, "Observers that are connected to this leader.", "",
			float64(s.Observers)},
		{"survivable_failures", gauge, "How many connected voters may fail without loss of the majority.",
			"", float64(*failuresToleratedNow(s))},
	}...)
}

// measureHTTP is about the HTTP server and the process.
func (h *handlers) measureHTTP() []metric {
	open, _ := h.core.Long.Open()
	return []metric{
		{"uptime", gauge, "Milliseconds since the start.", "",
			float64(time.Since(h.started).Milliseconds())},
		{"http_streams", gauge, "Streams and long polls that are open.", "", float64(open)},
		{"http_writes", gauge, "Commands of HTTP clients on their way.", "", float64(h.core.Writes())},
		{"http_body_bytes", gauge, "Bytes held of HTTP requests' bodies.", "", float64(h.core.BodyBytes())},
		{"go_goroutines", gauge, "Goroutines.", "", float64(runtime.NumGoroutine())},
		{"zk_lite_info", gauge, "The version.", "version=" + rest.QuoteLabel(h.cfg.Version), 1},
	}
}

// describeMetric says what a figure of another part is.
func describeMetric(name string) (metricKind, string) {
	switch name {
	case "fsync_count":
		return counter, "Times that the log was synced to disk."
	case "fsync_last_us":
		return gauge, "Microseconds of the last sync."
	case "fsync_max_us":
		return gauge, "Microseconds of the longest sync."
	case "raft_log_bytes":
		return gauge, "Bytes of the log on disk."
	case "raft_log_segments":
		return gauge, "Files of the log."
	case "raft_log_first_index", "raft_log_last_index":
		return gauge, "An end of the log."
	}
	if kind, help, ok := describePort(name); ok {
		return kind, help
	}
	if strings.HasSuffix(name, "_count") {
		return counter, "Counted since the start, as mntr tells it."
	}
	return untyped, "As mntr tells it."
}

// describePort says what a figure of the ZooKeeper port is.
func describePort(name string) (kind metricKind, help string, ok bool) {
	switch name {
	case "min_latency", "avg_latency", "max_latency":
		return gauge, "Milliseconds from a request's arrival to its reply.", true
	case "packets_received", "packets_sent":
		return counter, "Packets of the ZooKeeper port, since the start or a reset.", true
	case "bytes_received_count", "response_bytes":
		return counter, "Bytes of the ZooKeeper port, since the start or a reset.", true
	case "last_client_response_size", "min_client_response_size", "max_client_response_size":
		return gauge, "Bytes of a reply of the ZooKeeper port; -1: none yet.", true
	case "num_alive_connections":
		return gauge, "Open connections to the ZooKeeper port.", true
	case "outstanding_requests":
		return gauge, "Requests of the ZooKeeper port that are not answered yet.", true
	case "connection_rejected":
		return counter, "Connections to the ZooKeeper port over a limit.", true
	case "auth_failed_count":
		return counter, "Failed authentications at the ZooKeeper port.", true
	case "open_file_descriptor_count", "max_file_descriptor_count":
		return gauge, "File descriptors of the process.", true
	}
	return "", "", false
}

func number(value any) (float64, bool) {
	switch v := value.(type) {
	case int:
		return float64(v), true
	case int64:
		return float64(v), true
	case uint64:
		return float64(v), true
	case float64:
		return v, true
	}
	return 0, false
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// isMetricName reports whether Prometheus takes the name.
func isMetricName(name string) bool {
	return name != "" && strings.Trim(name, "abcdefghijklmnopqrstuvwxyz_0123456789") == "" &&
		(name[0] < '0' || name[0] > '9')
}
