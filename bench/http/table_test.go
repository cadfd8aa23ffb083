package main

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/bench/load"
	"github.com/zk-lite/zk-lite/bench/system"
)

// TestTable_Text_RatioOfMedians: a wild round does not move a figure, and what is
// missing is left empty.
func TestTable_Text_RatioOfMedians(t *testing.T) {
	tab := &table{o: &options{}, site: &system.Site{}, end: errors.New("interrupted"),
		troubles: []string{"etcd, lock-1: `timeout`"}}
	add := func(name string, rates ...float64) {
		for _, v := range rates {
			r := &load.Result{Elapsed: time.Second}
			r.Total.PerSecond = v
			tab.all = append(tab.all, &measurement{Row: "get-64", System: name, Syncs: -1, Result: r})
		}
	}
	add("etcd", 100, 9_999_999, 101)
	add("zk-lite", 303, 1, 305)
	text := tab.text()
	for _, want := range []string{"| GET, 64 connections | **101/s**", "| **303/s**", "| 3.00 x |",
		"| PUT, 1 connection |  |  |  |", "**Not complete** (interrupted)", "Left out of its median: etcd, lock-1"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in:\n%s", want, text)
		}
	}
}
