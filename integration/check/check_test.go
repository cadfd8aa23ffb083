package check

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/znode"
)

const ms = time.Millisecond

// builder writes a history down as a careful recorder would.
type builder struct {
	h       History
	now     time.Duration
	sent    map[int]int
	arrived map[int]int
}

func newBuilder() *builder { return &builder{sent: map[int]int{}, arrived: map[int]int{}} }

// op adds an operation that lasts 10 ms, answered unless its outcome says otherwise.
func (b *builder) op(o Op) *Op {
	b.sent[o.Conn]++
	o.ID, o.Sent, o.Client = len(b.h.Ops)+1, b.sent[o.Conn], o.Conn/10
	if o.Outcome == 0 {
		o.Outcome = OK
	}
	if o.Call == 0 {
		o.Call = b.now
		b.now += 10 * ms
		o.Return = b.now
		b.now += ms
	}
	if o.Outcome != Unknown {
		b.arrived[o.Conn]++
		o.Arrival = b.arrived[o.Conn]
	}
	b.h.Ops = append(b.h.Ops, o)
	return &b.h.Ops[len(b.h.Ops)-1]
}

func (b *builder) event(conn int, typ znode.EventType, path string, z znode.Zxid) {
	b.arrived[conn]++
	b.h.Events = append(b.h.Events, Event{
		Conn: conn, Client: conn / 10, At: b.now, Arrival: b.arrived[conn], Type: typ, Path: path, Zxid: z,
	})
}

func (b *builder) change(typ znode.EventType, path, value string, z znode.Zxid) {
	b.h.Changes = append(b.h.Changes, Change{Zxid: z, Type: typ, Path: path, Value: value})
}

// good is a history in which everything is as promised; bad ones are made of it.
func good() *builder {
	b := newBuilder()
	b.change(znode.EventCreated, "/a", "a0", 1)
	b.op(Op{Conn: 10, Kind: Create, Path: "/a", Created: "/a", Value: "a0", Zxid: 1})
	b.op(Op{Conn: 20, Kind: Get, Path: "/a", Data: "a0", Stat: znode.Stat{Mzxid: 1, Czxid: 1}, Zxid: 1,
		Watch: DataWatch})
	b.change(znode.EventDataChanged, "/a", "a1", 2)
	b.op(Op{Conn: 10, Kind: Set, Path: "/a", Value: "a1", Version: 0, Stat: znode.Stat{Version: 1}, Zxid: 2})
	b.event(20, znode.EventDataChanged, "/a", 2)
	b.op(Op{Conn: 20, Kind: Get, Path: "/a", Data: "a1", Stat: znode.Stat{Mzxid: 2, Version: 1}, Zxid: 2,
		Synced: true})
	b.op(Op{Conn: 10, Kind: Set, Path: "/a", Value: "a1'", Version: 7, Outcome: Failed,
		Code: znode.ErrBadVersion, Zxid: 3})
	b.change(znode.EventCreated, "/q/n-0000000000", "q0", 4)
	b.change(znode.EventCreated, "/q/n-0000000001", "q1", 5)
	for i, z := range []znode.Zxid{4, 5} {
		b.op(Op{Conn: 10 + 10*i, Kind: Create, Mode: znode.PersistentSequential, Path: "/q/n-",
			Created: "/q/n-000000000" + string(rune('0'+i)), Value: "q" + string(rune('0'+i)), Zxid: z})
	}
	b.h.Changes = append(b.h.Changes, Change{Zxid: 6, Type: znode.EventCreated, Path: "/e", Value: "e", Owner: 77})
	b.op(Op{Conn: 10, Session: 77, Kind: Create, Mode: znode.Ephemeral, Path: "/e", Created: "/e",
		Value: "e", Zxid: 6})
	b.h.Sessions = []Session{{ID: 77, Client: 1, Timeout: 4000 * ms, NotBefore: 4000 * ms,
		Ended: Expired, EndedAt: 5000 * ms, EndZxid: 7}}
	b.change(znode.EventDeleted, "/e", "", 7)
	b.h.Final = []Znode{{Path: "/a", Value: "a1"}, {Path: "/q/n-0000000000", Value: "q0"},
		{Path: "/q/n-0000000001", Value: "q1"}}
	b.h.Holds = []Hold{
		{Lock: "/l", Client: 1, Token: 1, Asked: ms, From: 2 * ms, To: 5 * ms},
		{Lock: "/l", Client: 2, Token: 2, Asked: 3 * ms, From: 6 * ms, To: 9 * ms},
	}
	b.h.Uses = []Use{{"/l", 1, 3 * ms}, {"/l", 2, 7 * ms}}
	return b
}

// find is the operation of a kind, the nth.
func (b *builder) find(k Kind, nth int) *Op {
	for i := range b.h.Ops {
		if b.h.Ops[i].Kind == k {
			if nth--; nth < 0 {
				return &b.h.Ops[i]
			}
		}
	}
	panic("no such operation")
}

func TestAll_GoodHistory_HasNoViolation(t *testing.T) {
	for _, v := range All(&good().h) {
		t.Errorf("violation %v, want none", v)
	}
	b := good()
	b.h.Changes = nil
	for _, v := range All(&b.h) {
		t.Errorf("without changes: %v", v)
	}
}

// Every rule has a history that breaks it, and is named by its guarantee.
func TestAll_BadHistories_AreNamed(t *testing.T) {
	cases := []struct {
		name, guarantee string
		blind           bool // it shows without Changes too
		spoil           func(b *builder)
	}{
		{"a set that two clients won", "Linearizable writes", true, func(b *builder) {
			b.op(Op{Conn: 30, Kind: Set, Path: "/a", Value: "x", Version: 1, Stat: znode.Stat{Version: 2}, Zxid: 8})
			b.op(Op{Conn: 40, Kind: Set, Path: "/a", Value: "y", Version: 1, Stat: znode.Stat{Version: 2}, Zxid: 9})
		}},
		{"a stale read behind a sync", "Linearizable writes", true, func(b *builder) {
			o := b.find(Get, 1)
			o.Data, o.Stat = "a0", znode.Stat{Mzxid: 1}
		}},
		{"an acknowledged write that is lost", "Durability", false, func(b *builder) {
			b.op(Op{Conn: 30, Kind: Set, Path: "/z", Value: "zz", Version: -1, Zxid: 9})
		}},
		{"a write twice", "Once", false, func(b *builder) {
			b.change(znode.EventCreated, "/q/n-0000000002", "q1", 8)
		}},
		{"a sequential create twice, seen in the final tree", "Once", true, func(b *builder) {
			b.h.Changes = nil
			b.h.Final = append(b.h.Final, Znode{Path: "/q/n-0000000002", Value: "q1"})
		}},
		{"a refused write that happened", "Once", false, func(b *builder) {
			b.change(znode.EventDataChanged, "/a", "a1'", 8)
		}},
		{"a lost write that happens after the session moved on", "Once", false, func(b *builder) {
			b.op(Op{Conn: 10, Session: 5, Kind: Set, Path: "/b", Value: "late", Outcome: Unknown})
			b.op(Op{Conn: 11, Session: 5, Kind: AttachSession, Zxid: 8})
			b.change(znode.EventDataChanged, "/b", "late", 9)
		}},
		{"half a multi", "Atomicity", false, func(b *builder) {
			b.change(znode.EventCreated, "/m1", "m1", 8)
			b.op(Op{Conn: 30, Kind: Multi, Zxid: 8, Outcome: Unknown, Ops: []Op{
				{Kind: Create, Path: "/m1", Value: "m1"}, {Kind: Create, Path: "/m2", Value: "m2"}}})
		}},
		{"a read that goes back", "Single system image", true, func(b *builder) {
			b.op(Op{Conn: 21, Kind: Get, Path: "/a", Data: "a0", Stat: znode.Stat{Mzxid: 1}, Zxid: 1})
		}},
		{"a read that shows what was not there", "Single system image", false, func(b *builder) {
			b.op(Op{Conn: 30, Kind: Get, Path: "/a", Data: "never", Stat: znode.Stat{Mzxid: 2, Version: 1}, Zxid: 7})
		}},
		{"a listing without a child", "Single system image", false, func(b *builder) {
			b.op(Op{Conn: 30, Kind: Children, Path: "/q", Names: []string{"n-0000000001"}, Zxid: 7})
		}},
		{"answers out of order", "Order", true, func(b *builder) {
			x, y := b.find(Set, 0), b.find(Set, 1)
			x.Arrival, y.Arrival = y.Arrival, x.Arrival
		}},
		{"an earlier zxid for a later write", "Zxids", true, func(b *builder) {
			b.op(Op{Conn: 30, Kind: Set, Path: "/z", Value: "zz", Version: -1, Zxid: 3})
		}},
		{"one zxid for two writes", "Zxids", true, func(b *builder) {
			b.op(Op{Conn: 30, Kind: Set, Path: "/z", Value: "zz", Version: -1, Zxid: 6})
		}},
		{"an event behind its data", "Events before data", true, func(b *builder) {
			e, o := &b.h.Events[0], b.find(Get, 1)
			e.Arrival, o.Arrival = o.Arrival, e.Arrival
		}},
		{"an event that is lost", "Events before data", true, func(b *builder) { b.h.Events = nil }},
		{"a one-shot watch that fires twice", "Events before data", true, func(b *builder) {
			b.change(znode.EventDataChanged, "/a", "a2", 8)
			b.event(20, znode.EventDataChanged, "/a", 8)
		}},
		{"an event of the wrong kind", "No missed change", false, func(b *builder) {
			b.h.Events[0].Type = znode.EventDeleted
		}},
		{"a session that expires early", "Sessions", true, func(b *builder) { b.h.Sessions[0].EndedAt = 3999 * ms }},
		{"an ephemeral that outlives its session", "Ephemerals", false, func(b *builder) {
			b.h.Changes = b.h.Changes[:len(b.h.Changes)-1]
		}},
		{"an ephemeral that goes before its session", "Ephemerals", false, func(b *builder) {
			b.h.Sessions[0].EndZxid = 8
		}},
		{"a ghost", "Ephemerals", true, func(b *builder) {
			b.h.Final = append(b.h.Final, Znode{Path: "/e", Owner: 77})
		}},
		{"a ghost that is read", "Ephemerals", true, func(b *builder) {
			b.op(Op{Conn: 30, Kind: Exists, Path: "/e", Stat: znode.Stat{EphemeralOwner: 77, Mzxid: 6}, Zxid: 8})
		}},
		{"an ephemeral that is lost", "Ephemerals", true, func(b *builder) {
			b.h.Sessions[0] = Session{ID: 77, Client: 1, Timeout: 4000 * ms}
		}},
		{"a number given twice", "Sequence numbers", true, func(b *builder) {
			b.op(Op{Conn: 30, Kind: Create, Mode: znode.PersistentSequential, Path: "/q/n-",
				Created: "/q/n-0000000001", Value: "q2", Zxid: 8})
		}},
		{"a number that falls", "Sequence numbers", true, func(b *builder) {
			b.find(Create, 1).Created, b.find(Create, 2).Created = "/q/n-0000000001", "/q/n-0000000000"
		}},
		{"a token with two holders", "Locks", true, func(b *builder) { b.h.Holds[1].Token = 1 }},
		{"two holders at once", "Locks", true, func(b *builder) { b.h.Holds[1].From = 4 * ms }},
		{"tokens that fall", "Locks", true, func(b *builder) {
			b.h.Holds[0].Token, b.h.Holds[1].Token = 2, 1
			b.h.Holds[0].Asked, b.h.Holds[1].From = 8*ms, 7*ms
		}},
		{"a use with an old token", "Locks", true, func(b *builder) { b.h.Uses = append(b.h.Uses, Use{"/l", 1, 9 * ms}) }},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			for _, blind := range []bool{false, true} {
				b := good()
				c.spoil(b)
				if blind {
					b.h.Changes = nil
				}
				got := All(&b.h)
				named := slices.ContainsFunc(got, func(v Violation) bool { return v.Guarantee == c.guarantee })
				if !named && (!blind || c.blind) {
					t.Errorf("blind=%v: no violation of %q, but %v", blind, c.guarantee, got)
				}
			}
		})
	}
}

// A write without an answer may have happened, or not, or happen later; nothing else may.
func TestLinearizable_UnknownOutcome_EitherWay(t *testing.T) {
	for _, seen := range []string{"old", "new"} {
		b := newBuilder()
		b.op(Op{Conn: 10, Kind: Create, Path: "/a", Value: "old", Zxid: 1})
		b.op(Op{Conn: 20, Kind: Set, Path: "/a", Value: "new", Version: -1, Outcome: Unknown})
		read := Op{Conn: 30, Kind: Get, Path: "/a", Data: seen, Synced: true, Zxid: 2}
		if seen == "new" {
			read.Stat.Version = 1
		}
		b.op(read)
		if v, stats := Linearizable(&b.h); len(v) > 0 || stats.Ops != 3 || stats.Groups != 1 {
			t.Errorf("%s was read: %v, %+v", seen, v, stats)
		}
		back := Op{Conn: 30, Kind: Get, Path: "/a", Data: "old", Synced: true, Zxid: 3}
		b.op(back)
		if v, _ := Linearizable(&b.h); (len(v) > 0) != (seen == "new") {
			t.Errorf("old was read after %s: %v", seen, v)
		}
	}
}

// A multi that failed changed nothing; one that succeeded changed all.
func TestLinearizable_Multi_TiesZnodesTogether(t *testing.T) {
	b := newBuilder()
	b.op(Op{Conn: 10, Kind: Create, Path: "/a", Value: "a", Zxid: 1})
	b.op(Op{Conn: 10, Kind: Multi, Zxid: 2, Outcome: Failed, Code: znode.ErrNoNode, Ops: []Op{
		{Kind: Set, Path: "/a", Value: "a1", Version: -1}, {Kind: Set, Path: "/b", Value: "b1", Version: -1}}})
	b.op(Op{Conn: 20, Kind: Get, Path: "/a", Data: "a", Synced: true, Zxid: 2})
	b.op(Op{Conn: 10, Kind: Multi, Zxid: 3, Ops: []Op{
		{Kind: Set, Path: "/a", Value: "a2", Version: 0}, {Kind: Create, Path: "/b", Value: "b2"}}})
	b.op(Op{Conn: 20, Kind: Get, Path: "/b", Data: "b2", Synced: true, Zxid: 3})
	if v, stats := Linearizable(&b.h); len(v) > 0 || stats.Groups != 1 {
		t.Fatalf("violations %v, %+v, want none and one group", v, stats)
	}
	b.op(Op{Conn: 20, Kind: Get, Path: "/a", Data: "a", Synced: true, Zxid: 3})
	v, _ := Linearizable(&b.h)
	if len(v) == 0 || !strings.Contains(v[0].String(), "/a, /b") {
		t.Errorf("half a multi was read: %v", v)
	}
}

// A multi with conditions must take the branch that they choose, and read the state at its place; without an answer it
// may have taken either.
func TestLinearizable_Branches(t *testing.T) {
	for name, x := range map[string]struct {
		first, second Op // both of other clients, one after the other
		want          bool
	}{
		"then":                   {Op{Held: true}, Op{If: []Op{}, Held: true, Ops: []Op{{Kind: Get, Path: "/a", Data: "a1", Outcome: OK}}}, true},
		"then, and an old value": {Op{Held: true}, Op{If: []Op{}, Held: true, Ops: []Op{{Kind: Get, Path: "/a", Data: "a", Outcome: OK}}}, false},
		"else although it holds": {Op{Held: false}, Op{If: []Op{}, Held: true}, false},
		"no answer, happened":    {Op{Outcome: Unknown}, Op{If: []Op{}, Held: true, Ops: []Op{{Kind: Get, Path: "/a", Data: "a1", Outcome: OK}}}, true},
		"no answer, did not":     {Op{Outcome: Unknown}, Op{If: []Op{}, Held: true, Ops: []Op{{Kind: Get, Path: "/a", Data: "a", Outcome: OK}}}, true},
		"twice":                  {Op{Held: true}, Op{Held: true}, false},
		"twice, else":            {Op{Held: true}, Op{Held: false}, true},
		"absent":                 {Op{Held: true}, Op{Ops: []Op{{Kind: Exists, Path: "/b", Outcome: Failed}}}, true},
		"absent, and is not":     {Op{Held: true}, Op{Ops: []Op{{Kind: Exists, Path: "/a", Outcome: Failed}}}, false},
	} {
		b := newBuilder()
		b.op(Op{Conn: 10, Kind: Create, Path: "/a", Value: "a", Zxid: 1})
		for i, o := range []Op{x.first, x.second} {
			if o.Kind = Multi; o.If == nil && o.Ops == nil {
				o.If = []Op{{Kind: Check, Path: "/a", Version: 0}}
				o.Ops = []Op{{Kind: Set, Path: "/a", Value: fmt.Sprint("a", i+1), Version: -1}}
				o.Else = []Op{{Kind: Get, Path: "/a", Data: "a1", Outcome: OK}}
			}
			o.Conn, o.Zxid = 20+10*i, znode.Zxid(2+i)
			b.op(o)
		}
		if v, stats := Linearizable(&b.h); (len(v) == 0) != x.want || stats.Ops < 2 {
			t.Errorf("%s: %v, %+v, want it to be right: %v", name, v, stats, x.want)
		}
	}
}

// A znode that is watched in every way, and the events in the order that package watch promises.
func TestWatches_AllModes_OneZnode(t *testing.T) {
	b := newBuilder()
	b.h.Changes = []Change{}
	b.op(Op{Conn: 10, Kind: Exists, Path: "/p/n", Outcome: Failed, Code: znode.ErrNoNode, Zxid: 1, Watch: DataWatch})
	b.op(Op{Conn: 10, Kind: AddWatch, Path: "/p", Zxid: 1, Watch: Recursive})
	b.op(Op{Conn: 10, Kind: AddWatch, Path: "/p", Zxid: 1, Watch: Persistent})
	b.op(Op{Conn: 10, Kind: Children, Path: "/p", Zxid: 1, Watch: ChildWatch})
	b.change(znode.EventCreated, "/p/n", "1", 2)
	b.change(znode.EventDataChanged, "/p/n", "2", 3)
	b.change(znode.EventDeleted, "/p/n", "", 4)
	b.event(10, znode.EventCreated, "/p/n", 2)
	b.event(10, znode.EventChildrenChanged, "/p", 2)
	b.event(10, znode.EventDataChanged, "/p/n", 3)
	b.event(10, znode.EventDeleted, "/p/n", 4)
	b.event(10, znode.EventChildrenChanged, "/p", 4)
	b.op(Op{Conn: 10, Kind: Sync, Zxid: 4})
	if v := Watches(&b.h); len(v) > 0 {
		t.Errorf("violations %v, want none", v)
	}
	b.h.Events = b.h.Events[:4]
	if v := Watches(&b.h); len(v) == 0 {
		t.Error("a lost event was not noticed")
	}
}

// A reader of a violation finds the promise in docs/guarantees.md.
func TestGuarantees_AreNamedInTheDocs(t *testing.T) {
	docs, err := os.ReadFile("../../docs/guarantees.md")
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile(`(?:f\.add|\.violation|Guarantee:)\(?\s*"([^"]+)"`)
	found := 0
	for _, pattern := range []string{"*.go", "../sim/*.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range named.FindAllStringSubmatch(string(text), -1) {
				found++
				if !strings.Contains(string(docs), "| **"+m[1]) {
					t.Errorf("%s names %q, which is no guarantee of docs/guarantees.md", file, m[1])
				}
			}
		}
	}
	if found < 20 {
		t.Errorf("only %d names were found: the pattern does not fit any more", found)
	}
}

// A feed that loses, repeats, reorders or alters a change is found, and so is a listing that is not that of its zxid.
func TestFeeds(t *testing.T) {
	history := func() *History {
		b := newBuilder()
		b.change(znode.EventCreated, "/a", "0", 1)
		b.change(znode.EventCreated, "/a/b", "1", 2)
		b.change(znode.EventCreated, "/ab", "2", 2)
		b.change(znode.EventDataChanged, "/a/b", "3", 3)
		b.change(znode.EventDataChanged, "/a", "4", 4)
		b.change(znode.EventDeleted, "/a/b", "", 4)
		b.change(znode.EventCreated, "/a/c", "5", 6)
		at := func(i int, value, before string) Fed {
			f := Fed{Change: b.h.Changes[i], Before: before, Server: i % 3}
			f.Value = value
			return f
		}
		b.h.Feeds = []Feed{
			{Path: "/a", Since: 2, UpTo: 5, Start: map[string]string{"/a": "0", "/a/b": "1"},
				Got: []Fed{at(3, "3", "1"), at(4, "4", "0"), at(5, "3", "")}},
			{Path: "/", Since: 6, UpTo: 9, Start: map[string]string{"/a": "4", "/ab": "2", "/a/c": "5"}},
		}
		return &b.h
	}
	if list := Feeds(history()); len(list) > 0 {
		t.Errorf("a good history: %v", list)
	}
	for what, spoil := range map[string]func(f *Feed){
		"the first is missing":      func(f *Feed) { f.Got = f.Got[1:] },
		"the last is missing":       func(f *Feed) { f.Got = f.Got[:2] },
		"half a transaction":        func(f *Feed) { f.Got = slices.Delete(f.Got, 1, 2) },
		"one comes again":           func(f *Feed) { f.Got = append(f.Got, f.Got[2]) },
		"another order":             func(f *Feed) { f.Got[1], f.Got[2] = f.Got[2], f.Got[1] },
		"another value":             func(f *Feed) { f.Got[0].Value = "4" },
		"another value before":      func(f *Feed) { f.Got[0].Before = "" },
		"not the last value":        func(f *Feed) { f.Got[2].Value = "" },
		"an old listing":            func(f *Feed) { delete(f.Start, "/a/b") },
		"a listing with more":       func(f *Feed) { f.Start["/a/d"] = "" },
		"a listing of other values": func(f *Feed) { f.Start["/a"] = "4" },
		"further than it got":       func(f *Feed) { f.UpTo = 6 },
		"not so far":                func(f *Feed) { f.UpTo = 3 },
	} {
		h := history()
		spoil(&h.Feeds[0])
		if list := Feeds(h); len(list) == 0 || list[0].Guarantee != "Resuming" {
			t.Errorf("%s: %v, want a violation", what, list)
		}
	}
}
