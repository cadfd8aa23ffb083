package scale

import (
	"cmp"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/zk-lite/zk-lite/bench/report"
	"github.com/zk-lite/zk-lite/internal/sizing"
)

// machine is what each server runs on.
type machine struct {
	cores  int
	gbit   float64 // each way
	memory int64
}

var machines = []machine{{8, 10, 64 << 30}, {32, 100, 256 << 30}}

// bound is the most of something, and what it runs into.
type bound struct {
	most float64
	by   string
}

// least returns the bound that is reached first.
func least(all ...bound) bound {
	return slices.MinFunc(all, func(a, b bound) int { return cmp.Compare(a.most, b.most) })
}

const (
	valueSize = 100 // bytes
	// applyTime is that of a command in the tree, in one goroutine (docs/performance.md).
	applyTime = 2 * time.Microsecond
	// eventTime is that of an event to one of many watchers, in one goroutine (BenchmarkStage_Fanout).
	eventTime = 3 * time.Microsecond
	// mostBytes is what an entry holds (consensus/forward).
	mostBytes = 1 << 20
	// pingEvery is that of a session with a timeout of 30 s.
	pingEvery = 10 * time.Second
)

// writes is the most that clients who send many together can have written in a second. rtt is the round trip between
// the leader and the majority.
func (c *costs) writes(m machine, voters int, rtt time.Duration) bound {
	per := sizing.Load{Servers: voters, Bytes: valueSize, Writes: 1}
	e := per.Estimate()
	// The leader's part of a command is what it has of three servers' time, and as much again of the sending for each
	// two followers more.
	leader := float64(c.Piped.Write) * c.Leader * (1 + float64(voters-servers)/4)
	entry := (c.Step + c.Entry/servers + rtt).Seconds()
	commands := min(mostCommands, float64(mostBytes)/float64(e.LogPerSet))
	return least(
		bound{float64(m.cores) * float64(time.Second) / leader, "the leader's processors"},
		bound{float64(time.Second) / float64(applyTime), "one goroutine applies"},
		bound{m.gbit * 1e9 / 8 / max(e.LeaderOut, e.LeaderIn), "the leader's network"},
		bound{commands / entry, "one entry at a time"},
	)
}

// reads is the most of one server.
func (c *costs) reads(m machine, k *kinds) bound {
	const reply = 88 + valueSize + 40 // with the headers of packets that hold many
	return least(
		bound{float64(m.cores) * float64(time.Second) / float64(k.Read), "processors"},
		bound{m.gbit * 1e9 / 8 / reply, "network"},
	)
}

// usable is the part of a memory that may be in use: Go collects a heap when it has doubled.
const usable = 0.45

// fit is how many times a load of a million of something fits into a server's memory, in millions, while one of three
// is down.
func (m machine) fit(l sizing.Load) bound {
	l.Servers = servers
	none := sizing.Load{Servers: servers}
	each := float64(l.Estimate().Live-none.Estimate().Live) / million
	return bound{float64(m.memory) * usable / each, "memory"}
}

const million = 1_000_000

// sessions is the most of clients who do nothing else, each with an ephemeral, while one server of three is down.
func (c *costs) sessions(m machine) bound {
	pings := float64(m.cores) * float64(pingEvery) / float64(c.Single.Read) * (servers - 1)
	return least(m.fit(sizing.Load{Sessions: million, Znodes: million}),
		bound{pings / 2, "pings take half of the processors"})
}

// limits is the table of what one ensemble can bear.
func (c *costs) limits() *report.Table {
	columns := []string{"the most, alone"}
	for _, m := range machines {
		columns = append(columns, fmt.Sprintf("%d cores, %.0f Gbit/s, %s", m.cores, m.gbit, report.Bytes(m.memory)))
	}
	t := report.NewTable(columns...)
	row := func(name, unit string, of func(machine) bound) {
		cells := []any{name}
		for _, m := range machines {
			b := of(m)
			cells = append(cells, fmt.Sprintf("%s%s: %s", rounded(b.most), unit, b.by))
		}
		t.Row(cells...)
	}
	for _, voters := range []int{3, 5, 7} {
		row(fmt.Sprintf("writes, %d voters", voters), "/s", func(m machine) bound { return c.writes(m, voters, 0) })
	}
	for _, rtt := range []time.Duration{2 * time.Millisecond, 20 * time.Millisecond, 100 * time.Millisecond} {
		row(fmt.Sprintf("writes, 3 voters, %v apart", rtt), "/s", func(m machine) bound { return c.writes(m, 3, rtt) })
	}
	row("reads, one at a time, each server", "/s", func(m machine) bound { return c.reads(m, &c.Single) })
	row("reads, many together, each server", "/s", func(m machine) bound { return c.reads(m, &c.Piped) })
	row("events to watchers of one znode, each server", "/s",
		func(machine) bound { return bound{float64(time.Second) / float64(eventTime), "one goroutine"} })
	row("sessions with an ephemeral, three servers", "", c.sessions)
	row("watches of paths of their own, three servers", "",
		func(m machine) bound { return m.fit(sizing.Load{Watches: million}) })
	row("znodes of 100 bytes", "",
		func(m machine) bound { return m.fit(sizing.Load{Znodes: million, Bytes: valueSize}) })
	return t
}

func cores() int { return runtime.NumCPU() }

// rounded has two digits: a bound is no measurement.
func rounded(v float64) string {
	digit := math.Pow(10, math.Floor(math.Log10(v))-1)
	return report.Count(math.Round(v/digit) * digit)
}

func (w *workload) title() string {
	what := fmt.Sprintf("%.0f %% set", w.Writes*100)
	switch w.Writes {
	case 0:
		what = "get"
	case 1:
		what = "set"
	}
	if w.InFlight > 1 {
		return fmt.Sprintf("%s, %d connections x %d in flight", what, w.Connections, w.InFlight)
	}
	return fmt.Sprintf("%s, %d connections", what, w.Connections)
}

// text is the section of the document, from its first table.
func text(c *costs, given, checked []*measured) string {
	var b strings.Builder
	t := report.NewTable("cost, CPU time of this machine", "of a client with one request under way", "of one with many")
	t.Row("entry of the log, three servers", report.Time(c.Entry), report.Time(c.Entry))
	t.Row("write, three servers", report.Time(c.Single.Write), report.Time(c.Piped.Write))
	t.Row("read", report.Time(c.Single.Read), report.Time(c.Piped.Read))
	t.Row("the generator's part of a write", report.Time(c.Single.WriteClient), report.Time(c.Piped.WriteClient))
	t.Row("the generator's part of a read", report.Time(c.Single.ReadClient), report.Time(c.Piped.ReadClient))
	fmt.Fprintf(&b, "%s\nAn entry waits %s for disks and threads beside that; the leader has %.0f %% of the time.\n\n",
		t, report.Time(c.Step), c.Leader*100)
	t = report.NewTable("load", "", "measured", "simulated", "ratio", "commands in an entry: measured, simulated")
	for _, m := range append(slices.Clone(given), checked...) {
		kind := "checks"
		if slices.Contains(given, m) {
			kind = "calibrates"
		}
		t.Row(m.title(), kind, report.Count(m.PerSecond)+"/s", report.Count(m.Foretold.PerSecond)+"/s",
			fmt.Sprintf("%.2f", m.Foretold.PerSecond/m.PerSecond),
			fmt.Sprintf("%.0f, %.0f", m.PerEntry, m.Foretold.PerEntry))
	}
	fmt.Fprintf(&b, "%s\n%s", t, c.limits())
	return b.String()
}
