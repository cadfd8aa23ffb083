package admin

import (
	"bytes"
	"fmt"
	"math"
	"net/http"
	"runtime"
	"slices"
	"strconv"
	"time"

	"github.com/zk-lite/zk-lite/api/body"
	"github.com/zk-lite/zk-lite/api/metrics"
	"github.com/zk-lite/zk-lite/api/rest"
	"github.com/zk-lite/zk-lite/consensus"
	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/internal/process"
	"github.com/zk-lite/zk-lite/server"
)

// health shows whether the server lives and serves.
type health struct {
	server Server
	cfg    *Config
}

// livez reports that the process answers.
func (h *health) livez(q *rest.Request) error {
	return q.Answer(http.StatusOK, map[string]any{"status": "ok", "version": h.cfg.Version})
}

// readyz reports whether a client that comes now would be served: whether this server knows of a
// leader with a majority, at this moment, and can write. With verbose it lists the checks.
func (h *health) readyz(q *rest.Request) error {
	verbose, err := q.Query.Flag("verbose")
	if err != nil {
		return err
	}
	s := q.Core.Server.Status()
	out := body.Ready{
		Status: "ok", Server: number(q.Core.Config.ID), Role: string(s.Role), Leader: number(s.Leader), Term: s.Term,
	}
	if verbose {
		out.Checks = slices.Concat(h.readyChecks(q, &s), h.otherChecks(),
			certificateCheck("certificate", h.cfg.Certificate),
			certificateCheck("peer_certificate", h.cfg.PeerCertificate))
	}
	status, reason := h.unready(q, &s)
	if status == "" {
		q.Core.Server.View(func(v *server.View) {
			switch m, mirrors := v.Machine().Mirror(); {
			case m.Fault != "":
				out.Reason = "its mirror of ZooKeeper has stopped: it answers reads over HTTP, and takes no clients"
			case mirrors && !m.Online:
				out.Reason = "it mirrors ZooKeeper, whose leader is out of reach: it answers reads over " +
					"HTTP, and takes no clients"
			case mirrors:
				out.Reason = "it mirrors ZooKeeper, and serves clients"
			}
		})
		return q.Answer(http.StatusOK, out)
	}
	out.Status, out.Reason = status, reason
	q.W.Header().Set("Retry-After", "1")
	return q.Answer(http.StatusServiceUnavailable, out)
}

// unready is why a client would not be served; an empty status: it would. The first of several reasons counts.
func (h *health) unready(q *rest.Request, s *consensus.Status) (status, reason string) {
	switch {
	case q.Core.Stopping.Err() != nil:
		return "stopping", ""
	case s.Halt != nil: // and so it is drained, too
		return "halted: " + string(s.Halt.Kind), s.Halt.Reason
	case q.Core.Server.Draining():
		return "draining", ""
	case s.Ensemble == [16]byte{}:
		return "waiting to form or join the ensemble", s.Waiting
	case !q.Core.Server.Serving():
		return "no leader with a majority is known", ""
	case s.Leader == state.NoServer: // clients that are here already are kept for a while
		return "no leader is known", ""
	case s.DiskFault != "": // a server that cannot write applies nothing, no matter who leads
		return "the disk refuses writes", ""
	case s.DataLost != "": // what it acknowledges does not outlive it
		return "the data directory is gone", s.DataLost
	case h.server.Stalled(): // as when the disks of the others are full
		return "nothing is applied, though requests wait", ""
	}
	return "", ""
}

func check(name string, ok bool, detail string) body.Check {
	return body.Check{Name: name, OK: ok, Detail: detail}
}

// certificateCheck is about the certificate of a server that has one. It is reported and does not count: open
// connections are kept.
func certificateCheck(name string, c Certificate) []body.Check {
	if c == nil {
		return nil
	}
	expires, err := c.Expires(), c.Err()
	left := time.Until(expires)
	text := fmt.Sprintf("it expires in %.1f days, at %s", left.Hours()/24, expires.UTC().Format(time.RFC3339))
	if left < 0 {
		text = "it expired at " + expires.UTC().Format(time.RFC3339)
	}
	if err != nil {
		text += "; the newer files cannot be used: " + err.Error()
	}
	return []body.Check{check(name, left > 0 && err == nil, text)}
}

// otherChecks are those of other parts of the server. They are reported and do not count.
func (h *health) otherChecks() []body.Check {
	if h.cfg.Checks == nil {
		return nil
	}
	return h.cfg.Checks()
}

// memoryShown is for how long a refused write is reported.
const memoryShown = time.Minute

// readyChecks are the checks of this server. Memory is reported and does not count: reads and deletes continue. Nor
// does the self check: a server that is known to be wrong is halted, and otherwise all serve. Nor a failed snapshot:
// the log grows. The consequences of a halt, or of belonging to no ensemble yet, are left out.
func (h *health) readyChecks(q *rest.Request, s *consensus.Status) []body.Check {
	majority := "this server has never had contact with a majority"
	if text := contactText(s.Contact); text != nil {
		majority = "the last contact with a majority was " + *text + " ago"
	}
	leader := "none is known"
	if s.Leader != state.NoServer {
		leader = "server " + strconv.FormatUint(uint64(s.Leader), 10)
	}
	memory, room := h.server.Memory(), ""
	if memory.Limit > 0 {
		room = fmt.Sprintf("the tree takes %d of %d bytes", memory.Bytes, memory.Limit)
	}
	full := memory.Refused > 0 && memory.Since < memoryShown
	if full {
		room += "; writes that add to it are refused"
	}
	halt := ""
	if s.Halt != nil {
		halt = string(s.Halt.Kind) + ": " + s.Halt.Reason
	}
	first := []body.Check{
		check("running", q.Core.Stopping.Err() == nil, ""),
		check("not_halted", s.Halt == nil, halt),
		check("formed", s.Ensemble != [16]byte{}, s.Waiting),
	}
	if s.Halt != nil || s.Ensemble == [16]byte{} {
		return append(first, check("disk", s.DiskFault == "", s.DiskFault))
	}
	return append(first, []body.Check{
		check("not_draining", !q.Core.Server.Draining(), ""),
		check("leader", s.Leader != state.NoServer, leader),
		check("majority", q.Core.Server.Serving() || q.Core.Server.Draining() && s.Leader != state.NoServer, majority),
		check("disk", s.DiskFault == "", s.DiskFault),
		check("data", s.DataLost == "", s.DataLost),
		check("progress", !h.server.Stalled(), ""),
		check("memory", !full, room),
		check("self_check", s.Alarm == "", s.Alarm),
		check("snapshot", s.SnapshotFault == "", s.SnapshotFault),
	}...)
}

// monitor shows what the server measures.
type monitor struct {
	core      *rest.Core
	server    Server
	cfg       *Config
	snapshots *snapshots
	started   time.Time
	history   *metrics.History
}

// getMetrics answers with all metrics in Prometheus's text format. Those that ZooKeeper has,
// too, have its PrometheusMetricsProvider's names.
func (h *monitor) getMetrics(q *rest.Request) error {
	var b bytes.Buffer
	h.measure().Prometheus(&b)
	h.core.Metrics.Write(&b)
	q.SendBytes(http.StatusOK, "text/plain; version=0.0.4; charset=utf-8", b.Bytes())
	return nil
}

// measure takes all metrics but those of requests.
func (h *monitor) measure() *metrics.Samples {
	parts := []metrics.Part{metrics.OfServer(h.server, h.started), h.ofHTTP, h.cfg.Metrics}
	if h.cfg.Port != nil {
		parts = append(parts, h.cfg.Port.Metrics)
	}
	return metrics.Take(parts...)
}

// ofHTTP is the part of the HTTP port and the process.
func (h *monitor) ofHTTP(emit func(name string, value any)) {
	open, _ := h.core.Long.Open()
	emit("http_streams", open)
	emit("http_writes", h.core.Writes())
	emit("http_body_bytes", h.core.BodyBytes())
	emit("go_goroutines", runtime.NumGoroutine())
	emit("backup_downloads_total", h.snapshots.sent.Load())
	emit("backup_download_failures_total", h.snapshots.failed.Load())
	u := process.Now()
	emit("process_start_time_seconds", u.Started.Unix())
	emit("process_cpu_seconds_total", u.CPU.Seconds())
	emit("process_resident_memory_bytes", u.Resident)
	emit("zk_lite_info", metrics.Info{Label: "version", Value: h.cfg.Version})
}

// historyBody is a server's load over the last hour.
type historyBody struct {
	Interval string        `json:"interval"`
	Names    []string      `json:"names"` // of the values in each row
	Rows     []metrics.Row `json:"rows"`
}

// getHistory shows the rows after a moment.
func (h *monitor) getHistory(q *rest.Request) error {
	since, err := q.Query.Integer("since", 0, 0, math.MaxInt)
	if err != nil {
		return err
	}
	rows := h.history.Since(int64(since))
	return q.Answer(http.StatusOK, historyBody{metrics.HistoryInterval.String(), metrics.Columns, rows})
}
