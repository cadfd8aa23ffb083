package admin

import (
	"bytes"
	"net/http"
	"runtime"

	"github.com/zk-lite/zk-lite/api/metrics"
	"github.com/zk-lite/zk-lite/api/rest"
	"github.com/zk-lite/zk-lite/internal/process"
)

// metrics answers with all metrics in Prometheus's text format. Those that ZooKeeper has,
// too, have its PrometheusMetricsProvider's names.
func (h *handlers) metrics(q *rest.Request) error {
	var b bytes.Buffer
	h.measure().Prometheus(&b)
	h.core.Metrics.Write(&b)
	q.SendBytes(http.StatusOK, "text/plain; version=0.0.4; charset=utf-8", b.Bytes())
	return nil
}

// measure takes all metrics but those of requests.
func (h *handlers) measure() *metrics.Samples {
	parts := []metrics.Part{metrics.OfServer(h.server, h.started), h.ofHTTP, h.cfg.Metrics}
	if h.cfg.Port != nil {
		parts = append(parts, h.cfg.Port.Metrics)
	}
	return metrics.Take(parts...)
}

// ofHTTP is the part of the HTTP port and the process.
func (h *handlers) ofHTTP(emit func(name string, value any)) {
	open, _ := h.core.Long.Open()
	emit("http_streams", open)
	emit("http_writes", h.core.Writes())
	emit("http_body_bytes", h.core.BodyBytes())
	emit("go_goroutines", runtime.NumGoroutine())
	emit("backup_downloads_total", h.backups.Load())
	emit("backup_download_failures_total", h.backupsFailed.Load())
	u := process.Now()
	emit("process_start_time_seconds", u.Started.Unix())
	emit("process_cpu_seconds_total", u.CPU.Seconds())
	emit("process_resident_memory_bytes", u.Resident)
	emit("zk_lite_info", metrics.Info{Label: "version", Value: h.cfg.Version})
}
