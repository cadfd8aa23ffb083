package report

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/zk-lite/zk-lite/bench/load"
)

// JSON writes a result as indented JSON.
func JSON(w io.Writer, r *load.Result) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

// Text writes a result for people.
func Text(w io.Writer, r *load.Result) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", Title(r))
	if len(r.Ops) > 0 {
		ops(&b, r)
	} else {
		fmt.Fprintf(&b, "%s: %s/s, %v\n", r.Total.Name, Count(r.Total.PerSecond), Time(r.Elapsed))
	}
	troubles(&b, r)
	if f := r.Failover; f != nil {
		outage(&b, f)
	}
	for _, p := range r.Servers {
		if p.Ended {
			fmt.Fprintf(&b, "process %d has ended\n", p.PID)
			continue
		}
		fmt.Fprintf(&b, "process %d: CPU %.2f s, memory %s, at most %s\n", p.PID,
			p.CPU.Seconds(), Bytes(p.RSS), Bytes(p.PeakRSS))
	}
	if r.Kind == "idle" && len(r.Servers) > 0 {
		fmt.Fprintf(&b, "CPU of all servers: %s %% of a core\n", digits(100*r.CPUShare()))
	} else if cpu := r.CPUPerOp(); cpu > 0 {
		fmt.Fprintf(&b, "CPU of the servers for one answer: %s\n", Time(cpu))
	}
	fmt.Fprintf(&b, "CPU of the generator: %.2f s\n", r.Generator.Seconds())
	_, err := io.WriteString(w, b.String())
	return err
}

// Title describes the run in one line.
func Title(r *load.Result) string {
	c := &r.Config
	where := fmt.Sprintf("%d connections to %s", c.Connections, strings.Join(c.Hosts, ","))
	switch r.Kind {
	case "watch":
		return fmt.Sprintf("%d watchers of one znode, %s", c.Connections, where)
	case "idle":
		return fmt.Sprintf("%d idle sessions at %s, %v", c.Connections, strings.Join(c.Hosts, ","),
			r.Elapsed.Round(time.Millisecond))
	case "sessions":
		return fmt.Sprintf("sessions opened and closed, %s", where)
	case "fill":
		return fmt.Sprintf("%d znodes of %d bytes at %s", c.Keys, c.ValueSize, strings.Join(c.Hosts, ","))
	}
	loop := fmt.Sprintf("closed loop, %d in flight", c.InFlight)
	if c.Rate > 0 {
		loop = fmt.Sprintf("open loop, %s/s", Count(c.Rate))
	}
	keys := "uniform"
	if c.Zipf != 0 {
		keys = fmt.Sprintf("zipf %g", c.Zipf)
	}
	if c.Latest {
		keys += ", latest first"
	}
	return fmt.Sprintf("%s, %s, %s, %d keys (%s) of %d bytes, %v", c.Mix, where, loop, c.Keys, keys,
		c.ValueSize, r.Elapsed.Round(time.Millisecond))
}

func ops(b *strings.Builder, r *load.Result) {
	t := tabwriter.NewWriter(b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "operation\t/s\tmean\tp50\tp90\tp99\tp99.9\tp99.99\tmax\t")
	rows := r.Ops
	if len(rows) > 1 && r.Kind != "watch" && r.Kind != "sessions" {
		rows = append(slices.Clone(rows), r.Total)
	}
	for _, o := range rows {
		l := &o.Latency
		fmt.Fprintf(t, "%s\t%s\t", o.Name, Count(o.PerSecond))
		for _, d := range []load.Micros{l.Mean, l.P50, l.P90, l.P99, l.P999, l.P9999, l.Max} {
			fmt.Fprintf(t, "%s\t", Time(d.Duration()))
		}
		fmt.Fprintln(t)
	}
	_ = t.Flush() // to a Builder, which takes everything
}

// troubles are the parts that should be empty.
func troubles(b *strings.Builder, r *load.Result) {
	for _, o := range r.Ops {
		for _, code := range slices.Sorted(maps.Keys(o.Errors)) {
			fmt.Fprintf(b, "%s answered %d times with: %s\n", o.Name, o.Errors[code], code)
		}
	}
	if r.Unanswered > 0 {
		fmt.Fprintf(b, "%d requests were never answered\n", r.Unanswered)
	}
	if r.Dropped > 0 {
		fmt.Fprintf(b, "%d connections ended early\n", r.Dropped)
	}
	if r.Expired > 0 {
		fmt.Fprintf(b, "%d sessions expired\n", r.Expired)
	}
}

func outage(b *strings.Builder, f *load.Outage) {
	if f.Killed != "" {
		fmt.Fprintf(b, "killed %s after %s\n", f.Killed, Time(f.KilledAt))
	}
	least := ""
	if f.Open {
		least = "at least "
	}
	fmt.Fprintf(b, "nobody had an answer for %s%s, from %s on\n", least, Time(f.Longest.Duration()),
		Time(f.At))
	fmt.Fprintf(b, "a client had none for %s (median), %s (longest)\n",
		Time(f.Clients.P50.Duration()), Time(f.Clients.Max.Duration()))
	fmt.Fprintf(b, "dropped connections: %d of the killed server, %d of others; %d sessions expired\n",
		f.DroppedOfKilled, f.DroppedOfOthers, f.Expired)
}

// Time is a duration with three digits that count.
func Time(d time.Duration) string {
	unit := time.Duration(1)
	for _, u := range []time.Duration{time.Microsecond, time.Millisecond, time.Second} {
		if d >= u {
			unit = u
		}
	}
	v := float64(d) / float64(unit)
	name := map[time.Duration]string{1: "ns", time.Microsecond: "us", time.Millisecond: "ms",
		time.Second: "s"}[unit]
	return digits(v) + " " + name
}

// digits writes a number with three digits that count, more before the point.
func digits(v float64) string {
	switch {
	case v >= 99.95 || v == 0:
		return fmt.Sprintf("%.0f", v)
	case v >= 9.995:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.2f", v)
}

// Count is a number with commas between thousands.
func Count(v float64) string {
	if v < 99.95 {
		return digits(v)
	}
	s := fmt.Sprintf("%.0f", v)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// Bytes is a number of bytes with a binary unit.
func Bytes(n int64) string {
	v, units := float64(n), []string{"B", "KiB", "MiB", "GiB", "TiB"}
	i := 0
	for ; v >= 1024 && i < len(units)-1; i++ {
		v /= 1024
	}
	return digits(v) + " " + units[i]
}
