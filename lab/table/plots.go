package table

import (
	"slices"

	"github.com/zk-lite/zk-lite/lab/chart"
)

// NamedPlot is a plot and the name of its file.
type NamedPlot struct {
	File string
	Plot chart.Plot
}

// line picks the rows of one line of a plot.
type line struct{ name, family, algorithm, kind, quantity string }

// Plots draws the growth of messages and time over N from measured rows.
func Plots(rows []Row) []NamedPlot {
	messages := []line{
		{"broadcast", "election", "broadcast", "every", "all messages"},
		{"bully, worst", "election", "bully", "worst", "all messages"},
		{"LCR, worst", "election", "lcr", "worst (descending)", "all messages"},
		{"LCR, average", "election", "lcr", "average (arrangement)", "all messages"},
		{"HS, worst found", "election", "hs", "worst (searched)", "all messages"},
		{"ring, worst", "election", "ring", "worst", "all messages"},
		{"majority, one stands", "election", "majority", "best (one stands)", "all messages"},
		{"ZooKeeper, herd", "election", "zookeeper-herd", "leader dies, N wait", "all messages"},
		{"ZooKeeper", "election", "zookeeper", "leader dies, N wait", "all messages"},
	}
	return []NamedPlot{
		{"election-messages.svg", chart.Plot{Title: "All messages of one election", X: "N",
			Y: "messages", Series: series(rows, messages)}},
		{"election-messages-linear.svg", chart.Plot{Title: "All messages of one election", X: "N",
			Y: "messages", Linear: true, Series: series(upTo(rows, 32), messages)}},
		{"election-time.svg", chart.Plot{Title: "Time of one election", X: "N",
			Y: "message times", Series: series(rows, []line{
				{"HS worst", "election", "hs", "worst (searched)", "time"},
				{"ring worst", "election", "ring", "worst", "time"},
				{"ring best", "election", "ring", "best", "time"},
				{"LCR", "election", "lcr", "worst (descending)", "time"},
				{"bully worst", "election", "bully", "worst", "time"},
				{"majority, one stands", "election", "majority", "best (one stands)", "time"},
				{"bully best", "election", "bully", "best", "time"},
				{"broadcast", "election", "broadcast", "every", "time"},
			})}},
		{"mutex-messages.svg", chart.Plot{Title: "Messages per entry, nobody else asking",
			X: "N", Y: "messages", Series: series(rows, []line{
				{"Lamport", "mutex", "lamport", "best (alone)", "messages per entry"},
				{"Ricart-Agrawala", "mutex", "ricart-agrawala", "best (alone)", "messages per entry"},
				{"Maekawa", "mutex", "maekawa", "best (alone)", "messages per entry"},
				{"ZooKeeper lock", "mutex", "zookeeper", "best (alone)", "messages per entry"},
				{"central", "mutex", "central", "best (alone)", "messages per entry"},
			})}},
		{"mutex-time.svg", chart.Plot{Title: "Synchronisation delay: from an exit to the next entry",
			X: "N", Y: "message times", Series: series(rows, []line{
				{"token ring worst", "mutex", "token-ring", "worst (predecessor)", "synchronisation delay"},
				{"ZooKeeper lock", "mutex", "zookeeper", "one waits", "synchronisation delay"},
				{"Maekawa", "mutex", "maekawa", "one waits", "synchronisation delay"},
				{"central", "mutex", "central", "one waits", "synchronisation delay"},
				{"Ricart-Agrawala, Lamport", "mutex", "ricart-agrawala", "one waits", "synchronisation delay"},
				{"token ring best", "mutex", "token-ring", "best (successor)", "synchronisation delay"},
			})}},
	}
}

// upTo leaves larger sizes out: next to a square of 256 the rest is one line.
func upTo(rows []Row, n int) []Row {
	return slices.DeleteFunc(slices.Clone(rows), func(r Row) bool { return r.N > n })
}

func series(rows []Row, lines []line) []chart.Series {
	var all []chart.Series
	for _, l := range lines {
		s := chart.Series{Name: l.name}
		for _, r := range rows {
			if r.Family == l.family && r.Algorithm == l.algorithm && r.Case == l.kind &&
				r.Quantity == l.quantity && (len(s.Points) == 0 || s.Points[len(s.Points)-1][0] != float64(r.N)) {
				s.Points = append(s.Points, [2]float64{float64(r.N), r.Measured})
			}
		}
		all = append(all, s)
	}
	return all
}

// ThroughputSource is where the figures of Throughput come from: they were measured, not simulated.
const ThroughputSource = "measured by zk-lite's bench on 2026-11-24: 64 connections,\n" +
	"16 requests in flight each; three to seven servers share the two cores of one machine"

// Throughput draws answers a second against the share of reads, as ZooKeeper's paper does (figure 5): every
// server answers reads by itself, and a write is stored by a majority. On one machine more servers add no
// processors, as they would on machines of their own.
func Throughput() chart.Plot {
	return chart.Plot{Title: "Answers a second against the share of reads", X: "reads, %", Y: "answers a second",
		Linear: true, Series: []chart.Series{
			{Name: "3 servers", Points: [][2]float64{{0, 335249}, {20, 378051}, {40, 396548}, {60, 425885},
				{80, 428344}, {90, 409691}, {95, 631372}, {100, 1607608}}},
			{Name: "5 servers", Points: [][2]float64{{0, 228616}, {20, 222712}, {40, 266291}, {60, 276611},
				{80, 268664}, {90, 364498}, {95, 514258}, {100, 1568316}}},
			{Name: "7 servers", Points: [][2]float64{{0, 164340}, {20, 194612}, {40, 211245}, {60, 248452},
				{80, 310792}, {90, 348921}, {95, 471735}, {100, 1579340}}},
		}}
}
