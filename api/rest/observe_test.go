package rest

import (
	"bytes"
	"net/http"
	"strings"
	"testing"
	"time"
)

// A latency is counted in all buckets that it is within, a bound's own included.
func TestMetrics_Latencies(t *testing.T) {
	r := newRouteMetrics("GET", "/")
	for _, took := range []time.Duration{
		0, 500 * time.Microsecond, 500*time.Microsecond + 1, 10 * time.Second, 11 * time.Second,
	} {
		r.count(http.StatusOK, took)
	}
	var b bytes.Buffer
	r.writeSeconds(&b, "x")
	text := b.String()
	for _, want := range []string{
		`x_bucket{method="GET",route="/",le="0.0005"} 2`, `x_bucket{method="GET",route="/",le="0.001"} 3`,
		`x_bucket{method="GET",route="/",le="5"} 3`, `x_bucket{method="GET",route="/",le="10"} 4`,
		`x_bucket{method="GET",route="/",le="+Inf"} 5`, `x_count{method="GET",route="/"} 5`,
		`x_sum{method="GET",route="/"} 21.001000001`,
	} {
		if !strings.Contains(text, want+"\n") {
			t.Errorf("%s is not in\n%s", want, text)
		}
	}
}
