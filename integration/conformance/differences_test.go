//go:build interop

package conformance_test

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"testing"
)

// difference is something in which zk-lite, which follows ZooKeeper 3.9, may
// differ from the ZooKeeper 3.8 of Debian. Both sides' lines are rewritten
// before they are compared.
type difference struct {
	name, why string
	// applies chooses the steps; nil: all.
	applies func(s *step) bool
	// what is matched in a line becomes with.
	what *regexp.Regexp
	with string
}

// differences is the whole table.
func differences() []difference {
	return []difference{
		{
			name: "zxid of a notification",
			why: "since 3.9 a notification carries the zxid of its transaction (ZOOKEEPER-4655); " +
				"before, and for what setWatches catches up with, -1",
			what: regexp.MustCompile(`^(event .*) zxid=(-1|\+\d+)$`),
			with: "$1",
		},
	}
}

// compare fails the test for every step in which two runs differ.
func compare(t *testing.T, script []step, zookeeper, zklite []record) {
	t.Helper()
	rows := differences()
	wrong := 0
	for i := range script {
		want := rewrite(rows, &script[i], zookeeper[i])
		got := rewrite(rows, &script[i], zklite[i])
		for _, who := range slices.Sorted(maps.Keys(union(want, got))) {
			if slices.Equal(want[who], got[who]) {
				continue
			}
			wrong++
			t.Errorf("step %d, %s; session %s\n  ZooKeeper: %s\n  zk-lite:   %s",
				i, &script[i], who, lines(want[who]), lines(got[who]))
		}
	}
	t.Logf("%d steps, %d differences", len(script), wrong)
}

func rewrite(rows []difference, s *step, r record) record {
	out := record{}
	for who, all := range r {
		for _, line := range all {
			for _, row := range rows {
				if row.applies == nil || row.applies(s) {
					line = row.what.ReplaceAllString(line, row.with)
				}
			}
			out[who] = append(out[who], line)
		}
	}
	return out
}

func union(a, b record) record {
	u := maps.Clone(a)
	maps.Copy(u, b)
	return u
}

func lines(all []string) string {
	text := ""
	for _, line := range all {
		text += fmt.Sprintf("\n    %s", line)
	}
	if text == "" {
		return "nothing"
	}
	return text
}
