package main

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/bench/load"
	"github.com/zk-lite/zk-lite/bench/system"
)

// TestTable_Text_RatioOfMedians: both sides of the aim, what is missing left empty,
// an interrupt and a stall told of.
func TestTable_Text_RatioOfMedians(t *testing.T) {
	tab := &table{o: &options{systems: "zk-lite"}, site: &system.Site{}, end: errors.New("interrupted")}
	add := func(client string, op load.Op, depth int, rates ...float64) {
		for _, r := range rates {
			tab.all = append(tab.all, &measurement{Server: "zk-lite", Client: client, Op: op,
				Depth: depth, PerSecond: r, P50: time.Millisecond})
		}
	}
	add(goZooKeeper, load.Get, 64, 100, 9_999_999, 101)
	add(blocking, load.Get, 64, 202, 1, 203)
	add(goZooKeeper, load.Set, 1, 100)
	add(blocking, load.Set, 1, 100)
	tab.troubles = []string{"ZooKeeper, set: i/o timeout"}
	text := tab.text()
	for _, want := range []string{"| 2.00 x | yes |", "| 1.00 x | **no** |", "**Not complete** (interrupted)",
		"| zk-lite | get, 1,024 in flight |  |  |  |  |  |", "Left out of its median: ZooKeeper, set"} {
		if !strings.Contains(strings.ReplaceAll(text, "1024", "1,024"), want) {
			t.Errorf("no %q in:\n%s", want, text)
		}
	}
}
