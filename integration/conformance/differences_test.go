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

// difference is something in which zk-lite may differ from a ZooKeeper. Both sides' lines are
// rewritten before they are compared.
type difference struct {
	name, why string
	// applies chooses the steps; nil: all.
	applies func(s *step) bool
	// what is matched in a line becomes with.
	what *regexp.Regexp
	with string
	// once has a line that is the same as the one before count for nothing; what is nil.
	once bool
}

// differences are those from the oracle, of the version that zk-lite follows.
func differences() []difference {
	return []difference{
		{
			name: "the znode of the configuration",
			why: "ZooKeeper makes it of its zoo.cfg at every start, outside of any transaction; " +
				"zk-lite by one transaction, when the ensemble is formed",
			applies: func(s *step) bool { return s.onPath("/zookeeper/config") },
			what:    regexp.MustCompile(`\{czxid=[^}]*\}`),
			with:    "configuration",
		},
		{
			name: "reconfig that is disabled",
			why:  "ZooKeeper refuses it at the leader, with a zxid, zk-lite at the port, without",
			what: regexp.MustCompile(`^(reconfig xid=\d+) zxid=\S+ err=RECONFIGDISABLED$`),
			with: "$1 refused",
		},
		{
			name: "what cannot be decoded",
			why: "ZooKeeper's leader decodes a multi after it has given it a zxid, zk-lite before; " +
				"a multiRead that fails has an end mark behind its header",
			what: regexp.MustCompile(`zxid=\S+ err=MARSHALLINGERROR.*`),
			with: "err=MARSHALLINGERROR",
		},
		{
			name: "a hard quota inside a multi",
			why: "ZooKeeper compares each operation with the figures of what is already applied, so that a multi may " +
				"exceed a limit, or may not replace a znode; zk-lite with those that the operations before it have left",
			applies: func(s *step) bool { return s.below("/hm/") },
			what:    regexp.MustCompile(`^(multi xid=\d+ zxid=\+1) .*$`),
			with:    "$1 answered",
		},
		{
			name: "ids of schemes that are not configured",
			why: "ZooKeeper refuses an ACL of sasl or x509 where it has no such users; zk-lite's servers must all say the " +
				"same, whatever each is configured for",
			applies: func(s *step) bool { return s.below("/sch/") },
			what:    regexp.MustCompile(`^(\w+ xid=\d+) .*$`),
			with:    "$1 answered",
		},
		{
			name: "notations of addresses in ids of scheme ip",
			why: "ZooKeeper takes numbers with leading zeros and signs, and no IPv4 address at the end of an IPv6 one; " +
				"zk-lite what Go and RFC 4291 take",
			applies: func(s *step) bool { return s.below("/ip/odd-") },
			what:    regexp.MustCompile(`^(\w+ xid=\d+) .*$`),
			with:    "$1 answered",
		},
	}
}

// olderDifferences are the further ones from ZooKeeper 3.8, and what its clients see when they come here, or to a
// ZooKeeper 3.9.
func olderDifferences() []difference {
	return append(differences(), []difference{
		{
			name: "zxid of a notification",
			why: "since 3.9 a notification carries the zxid of its transaction (ZOOKEEPER-4655); " +
				"before, and for what setWatches catches up with, -1",
			what: regexp.MustCompile(`^(event .*) zxid=(-1|\d+\+\d+)$`),
			with: "$1",
		},
		{
			name:    "who may ask whether a znode exists",
			why:     "since 3.9 those who may read it (ZOOKEEPER-2590), before, all",
			applies: func(s *step) bool { return s.onPath("/perm/n") },
			what:    regexp.MustCompile(`^(exists xid=\d+) zxid=old err=(NOAUTH|OK .*)$`),
			with:    "$1 answered",
		},
		{
			name: "create2 inside a multi",
			why:  "since 3.9 its result has a Stat, as outside (ZOOKEEPER-4026); before, that of create",
			what: regexp.MustCompile(`create2 err=OK (path="[^"]*") \{[^}]*\}([;\]])`),
			with: "create err=OK $1$2",
		},
		{
			name: "modes inside a multi",
			why: "since 3.9 a create with a mode that is unknown, or needs a TTL, fails the whole multi " +
				"(ZOOKEEPER-4026), before, it failed itself",
			applies: oddModes,
			what:    regexp.MustCompile(`^(multi xid=\d+) .*err=(MARSHALLINGERROR|OK \[(error err=\w+[;\]] ?)+)$`),
			with:    "$1 refused",
		},
	}...)
}

// localDifferences are those of local sessions that may not be upgraded, and of reads without a majority.
func localDifferences() []difference {
	return []difference{{
		name:    "sessions of read-only mode",
		why:     "zk-lite's end with their connections (docs/adr/0039)",
		applies: func(s *step) bool { return s.kind == try && s.readOnly },
		what:    regexp.MustCompile(`^(connected, read-only \w+|expired)$`),
		with:    "answered",
	}, {
		name: "an ephemeral znode of a local session",
		why: "ZooKeeper refuses it at the leader, with a zxid, and says SESSIONEXPIRED in a multi, with which clients give " +
			"their session up; zk-lite at the port, before all else that may be wrong, always EPHEMERALONLOCALSESSION",
		applies: func(s *step) bool { return s.who == "d" && s.below("/ls") || s.below("/none/e") || s.below("ls") },
		what: regexp.MustCompile(`^((create\w*|multi) xid=\d+) zxid=\S+ err=(EPHEMERALONLOCALSESSION|SESSIONEXPIRED|` +
			`BADARGUMENTS|OK \[(error err=\w+[;\]] ?)+)$`),
		with: "$1 refused",
	}}
}

// reconfigDifferences are those of reconfig.
func reconfigDifferences() []difference {
	reconfig := func(s *step) bool { return s.requests != nil && s.requests[0].op == wire.OpReconfig }
	return []difference{
		{
			name:    "zxid of a reconfig",
			why:     "ZooKeeper gives each one a zxid, refused ones, too; zk-lite writes several transactions, or none",
			applies: reconfig,
			what:    regexp.MustCompile(`^(reconfig xid=\d+|event .*) zxid=\S+`),
			with:    "$1",
		},
		{
			name:    "the znode of the configuration, in a reply to reconfig",
			why:     "as for other requests",
			applies: reconfig,
			what:    regexp.MustCompile(`\{czxid=[^}]*\}`),
			with:    "configuration",
		},
		{
			name:    "what is no number in a reconfig, and what leaves no voter",
			why:     "ZooKeeper's leader ends in an exception and says MARSHALLINGERROR, zk-lite that the arguments are wrong",
			applies: reconfig,
			what:    regexp.MustCompile(`err=(MARSHALLINGERROR|BADARGUMENTS)$`),
			with:    "err=BADARGUMENTS",
		},
		{
			name:    "events of a reconfig",
			why:     "ZooKeeper has each persistent watch of the configuration fire twice",
			applies: reconfig,
			once:    true,
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

// below reports whether a request of the step names a path that begins so.
func (s *step) below(path string) bool {
	return strings.Contains(s.String(), "Path:"+path)
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

// compare fails the test for every step in which two runs differ, but for what is in the rows.
func compare(t *testing.T, rows []difference, script []step, zookeeper, zklite []record) {
	t.Helper()
	t.Logf("%d steps, %d differences", len(script), differ(t, rows, script, zookeeper, zklite))
}

// differ is compare, and returns how many differences there are.
func differ(t *testing.T, rows []difference, script []step, zookeeper, zklite []record) (wrong int) {
	t.Helper()
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
		out[who] = slices.Clone(all)
		for _, row := range rows {
			switch {
			case row.applies != nil && !row.applies(s):
			case row.once:
				out[who] = slices.Compact(out[who])
			default:
				for i, line := range out[who] {
					out[who][i] = row.what.ReplaceAllString(line, row.with)
				}
			}
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
