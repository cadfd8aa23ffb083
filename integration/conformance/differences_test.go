//go:build interop

package conformance_test

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/zk-lite/zk-lite/internal/wire"
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
			what: regexp.MustCompile(`^(event .*) zxid=(-1|\d+\+\d+)$`),
			with: "$1",
		},
		{
			name: "the znode of the configuration",
			why: "ZooKeeper makes it of its zoo.cfg at every start, outside of any transaction; " +
				"zk-lite by one transaction, when the ensemble is formed",
			applies: func(s *step) bool { return s.onPath("/zookeeper/config") },
			what:    regexp.MustCompile(`(data="[^"]*" )?\{czxid=[^}]*\}`),
			with:    "configuration",
		},
		{
			name:    "who may ask whether a znode exists",
			why:     "since 3.9 those who may read it (ZOOKEEPER-2590), before, all",
			applies: func(s *step) bool { return s.onPath("/perm/n") },
			what:    regexp.MustCompile(`^(exists xid=\d+) zxid=old err=(NOAUTH|OK .*)$`),
			with:    "$1 answered",
		},
		{
			name: "reconfig",
			why:  "ZooKeeper refuses it at the leader, with a zxid, zk-lite at the port, without",
			what: regexp.MustCompile(`^(reconfig xid=\d+) zxid=\S+ err=RECONFIGDISABLED$`),
			with: "$1 refused",
		},
		{
			name: "create2 inside a multi",
			why:  "since 3.9 its result has a Stat, as outside (ZOOKEEPER-4026); before, that of create",
			what: regexp.MustCompile(`create2 err=OK (path="[^"]*") \{[^}]*\}([;\]])`),
			with: "create err=OK $1$2",
		},
		{
			name: "zxid of what cannot be decoded",
			why: "ZooKeeper's leader decodes a multi after it has given it a zxid, zk-lite before; " +
				"a multiRead that fails has an end mark behind its header in 3.8",
			what: regexp.MustCompile(`zxid=\S+ err=MARSHALLINGERROR.*`),
			with: "err=MARSHALLINGERROR",
		},
		{
			name: "modes inside a multi",
			why: "since 3.9 a create with an unknown mode fails the whole multi, before it failed itself; " +
				"with one that needs a TTL it is the other way around (ZOOKEEPER-4026)",
			applies: oddModes,
			what:    regexp.MustCompile(`^(multi xid=\d+) .*err=(MARSHALLINGERROR|OK \[(error err=\w+[;\]] ?)+)$`),
			with:    "$1 refused",
		},
	}
}

// onPath reports whether a request of the step names a path.
func (s *step) onPath(path string) bool {
	for _, q := range s.requests {
		if strings.Contains(fmt.Sprintf("%+v", describe(q.body)), "Path:"+path+" ") ||
			strings.Contains(fmt.Sprintf("%+v", describe(q.body)), "Path:"+path+"}") {
			return true
		}
	}
	return false
}

// oddModes reports whether a step is a multi with a create whose mode is
// unknown, or needs a TTL that a create does not have.
func oddModes(s *step) bool {
	for _, q := range s.requests {
		m, ok := q.body.(*wire.MultiRequest)
		if !ok {
			continue
		}
		for _, op := range m.Ops {
			r, ok := op.Request.(*wire.CreateRequest)
			if ok && (!r.Mode.Valid() || r.Mode.TTL()) {
				return true
			}
		}
	}
	return false
}

// compare fails the test for every step in which two runs differ.
func compare(t *testing.T, script []step, zookeeper, zklite []record) {
	t.Helper()
	t.Logf("%d steps, %d differences", len(script), differ(t, script, zookeeper, zklite))
}

// differ is compare, and returns how many differences there are.
func differ(t *testing.T, script []step, zookeeper, zklite []record) (wrong int) {
	t.Helper()
	rows := differences()
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
	return wrong
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
