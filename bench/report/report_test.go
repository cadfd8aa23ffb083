package report

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/bench/load"
)

// sample is a result with everything in it, and names that need escaping.
func sample() *load.Result {
	var h load.Histogram
	for i := range 1000 {
		h.Record(time.Duration(i) * time.Microsecond)
	}
	var c load.Counts
	h.AddTo(&c)
	cfg := load.Default()
	cfg.Hosts = []string{"<host>:1"}
	r := &load.Result{Kind: "load", Started: time.Unix(1_700_000_000, 0), Config: cfg,
		Elapsed: 3 * time.Second, Unanswered: 2, Dropped: 1,
		Total: load.OpResult{Name: "total", PerSecond: 12345.6, Latency: c.Latency()},
		Ops: []load.OpResult{
			{Name: "get", PerSecond: 12000, Latency: c.Latency()},
			{Name: "set", PerSecond: 345.6, Latency: c.Latency(),
				Errors: map[string]uint64{"no node <&>": 3}},
		},
		Servers: []load.Process{{PID: 42, CPU: 2 * time.Second, RSS: 3 << 20, PeakRSS: 4 << 20},
			{PID: 43, Ended: true}},
		Failover: &load.Outage{Killed: "<host>:1", KilledAt: time.Second,
			Longest: load.Micros(31 * time.Millisecond), DroppedOfKilled: 21},
	}
	for i := range 4 {
		r.Timeline = append(r.Timeline, load.Sample{At: time.Duration(i) * time.Second,
			PerSecond: float64(100 * i), P50: load.Micros(time.Millisecond * time.Duration(i)),
			P99: load.Micros(time.Second), Max: load.Micros(2 * time.Second)})
	}
	return r
}

func TestText_ShowsEverything(t *testing.T) {
	var b bytes.Buffer
	if err := Text(&b, sample()); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"12,346", "p99.99", "set answered 3 times with: no node <&>",
		"2 requests were never answered", "1 connections ended early", "process 42: CPU 2.00 s",
		"process 43 has ended", "nobody had an answer for 31.0 ms", "killed <host>:1 after 1.00 s",
		"dropped connections: 21 of the killed server, 0 of others", "CPU of the servers for one answer: 54.0 us"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the text has no %q:\n%s", want, b.String())
		}
	}
}

// TestHTML_SelfContained: escaped, well-formed pictures, nothing to be fetched.
func TestHTML_SelfContained(t *testing.T) {
	var b, again bytes.Buffer
	if err := errors.Join(HTML(&b, sample()), HTML(&again, sample())); err != nil {
		t.Fatal(err)
	}
	text := b.String()
	if text != again.String() {
		t.Error("the same result gives two different pages")
	}
	if n := strings.Count(text, "<svg "); n != 3 {
		t.Errorf("%d plots, want 3", n)
	}
	for _, bad := range []string{"<host>", "<&>", "src=", "href=", "NaN", "Inf"} {
		if strings.Contains(text, bad) {
			t.Errorf("the page contains %q", bad)
		}
	}
}

func TestSVG_WellFormed(t *testing.T) {
	empty := &load.Result{Config: load.Default()}
	flat := sample()
	for i := range flat.Timeline {
		flat.Timeline[i] = load.Sample{At: time.Second}
	}
	for name, r := range map[string]*load.Result{"full": sample(), "empty": empty, "flat": flat} {
		var b bytes.Buffer
		if err := SVG(&b, r); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(b.String(), "NaN") || strings.Contains(b.String(), "Inf") {
			t.Errorf("%s: a coordinate is not a number", name)
		}
		d := xml.NewDecoder(&b)
		for {
			if _, err := d.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
	}
}

// TestPlot_SVG_ToScale: the ends of the data are at the ends of the axes.
func TestPlot_SVG_ToScale(t *testing.T) {
	p := Plot{Series: []Series{{Name: "a", Points: [][2]float64{{0, 0}, {5, 50}, {10, 100}}}}}
	if s := p.SVG(); !strings.Contains(s, `points="80.0,276.0 350.0,155.0 620.0,34.0"`) {
		t.Errorf("linear: %s", s)
	}
	p.LogY, p.Series[0].Points = true, [][2]float64{{0, 1}, {5, 10}, {7, 0}, {10, 100}}
	if s := p.SVG(); !strings.Contains(s, `points="80.0,276.0 350.0,155.0 620.0,34.0"`) {
		t.Errorf("logarithmic: %s", s)
	}
}

func TestJSON_ReadsBack(t *testing.T) {
	var b bytes.Buffer
	if err := JSON(&b, sample()); err != nil {
		t.Fatal(err)
	}
	var r load.Result
	if err := json.Unmarshal(b.Bytes(), &r); err != nil {
		t.Fatal(err)
	}
	if r.Ops[1].Errors["no node <&>"] != 3 || r.Failover.Longest != sample().Failover.Longest {
		t.Errorf("%+v, want %+v", r, sample())
	}
}

func TestUnits(t *testing.T) {
	for d, want := range map[time.Duration]string{0: "0 ns", 999: "999 ns", 1234: "1.23 us",
		12_345: "12.3 us", 123_456: "123 us", 1_500_000: "1.50 ms", 90 * time.Second: "90.0 s"} {
		if got := Time(d); got != want {
			t.Errorf("%d ns is %q, want %q", d, got, want)
		}
	}
	for v, want := range map[float64]string{0: "0", 1.234: "1.23", 999.6: "1,000", 123456: "123,456",
		1234567: "1,234,567", 99.96: "100"} {
		if got := Count(v); got != want {
			t.Errorf("%g is %q, want %q", v, got, want)
		}
	}
	for n, want := range map[int64]string{0: "0 B", 1023: "1023 B", 1536: "1.50 KiB", 5 << 30: "5.00 GiB"} {
		if got := Bytes(n); got != want {
			t.Errorf("%d is %q, want %q", n, got, want)
		}
	}
}
