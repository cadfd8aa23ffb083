package state

import (
	"fmt"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/session"
	"github.com/zk-lite/zk-lite/znode"
)

// recorder is an Observer that records all calls.
type recorder struct {
	lines   []string
	results []Result
	answers []answered
}

func (r *recorder) say(format string, args ...any) {
	r.lines = append(r.lines, fmt.Sprintf(format, args...))
}

func (r *recorder) Event(e *znode.Event) {
	r.say("event %v %s %v %v %v", e.Type, e.Path, e.Zxid, e.ACL, e.ParentACL)
}

func (r *recorder) Result(o Origin, seq uint64, x *Result) {
	c := *x
	c.Multi = append([]OpResult(nil), x.Multi...)
	if c.Session != nil {
		s := *c.Session
		c.Session = &s
	}
	r.results = append(r.results, c)
	r.say("result %v %d %v %v %v %s %+v %+v %+v", o, seq, c.Op, c.Zxid, c.Code, c.Path, c.Stat, c.Multi, c.Session)
}

func (r *recorder) Gap(o Origin, want uint64)        { r.say("gap %v %d", o, want) }
func (r *recorder) SessionOpened(s *session.Session) { r.say("opened %+v", *s) }
func (r *recorder) SessionAttached(s *session.Session, former ServerID) {
	r.say("attached %+v from %d", *s, former)
}
func (r *recorder) SessionClosed(s *session.Session, _ []string, expired bool) {
	r.say("closed %v %v", s.ID, expired)
}
func (r *recorder) QuotaExceeded(path string) { r.say("quota %s", path) }

func (r *recorder) Relayed(number uint64, x *Result) {
	if x == nil {
		r.say("relay %d", number)
		return
	}
	c := *x
	c.Multi = append([]OpResult(nil), x.Multi...)
	r.say("answer %d %v %v %v %s %+v %+v", number, c.Op, c.Zxid, c.Code, c.Path, c.Stat, c.Multi)
	r.answers = append(r.answers, answered{number, c})
}

// answered is a relay's outcome.
type answered struct {
	number uint64
	Result
}

// rig feeds a machine: one entry a call, from servers in their first life
// unless told otherwise.
type rig struct {
	t     testing.TB
	m     *Machine
	index uint64
	term  uint64
	time  int64
	next  map[Origin]uint64
	rec   *recorder

	prepares bool // calls Prepare
}

func newRig(t testing.TB) *rig {
	return &rig{t: t, m: New(), term: 1, time: 1000, next: map[Origin]uint64{}, rec: &recorder{}}
}

// batch numbers commands of an origin.
func (g *rig) batch(o Origin, cmds ...Command) Batch {
	if g.next[o] == 0 {
		g.next[o] = 1
	}
	x := Batch{Origin: o, First: g.next[o], Count: len(cmds)}
	for i := range cmds {
		x.Commands = AppendCommand(x.Commands, &cmds[i])
	}
	g.next[o] += uint64(len(cmds))
	return x
}

// apply applies an entry and returns the calls of the observer.
func (g *rig) apply(batches ...Batch) []string {
	g.t.Helper()
	g.index++
	g.rec.lines, g.rec.results, g.rec.answers = nil, nil, nil
	entry := AppendEntry(nil, g.time, batches)
	if g.prepares {
		g.m.Prepare(entry)
	}
	if err := g.m.Apply(g.index, g.term, entry, g.rec); err != nil {
		g.t.Fatal(err)
	}
	return g.rec.lines
}

// do applies commands of a server as one entry and returns their results.
func (g *rig) do(from ServerID, cmds ...Command) []Result {
	g.t.Helper()
	g.apply(g.batch(Origin{from, 1}, cmds...))
	if len(g.rec.results) != len(cmds) {
		g.t.Fatalf("%d results of %d commands", len(g.rec.results), len(cmds))
	}
	return g.rec.results
}

// must applies one command that succeeds.
func (g *rig) must(from ServerID, c Command) Result {
	g.t.Helper()
	r := g.do(from, c)[0]
	if r.Code != znode.OK {
		g.t.Fatalf("%+v: %v, want it to succeed", c, r.Code.Name())
	}
	return r
}

func create(path string) Command {
	return Command{Op: OpCreate, Path: path, Data: []byte("x"), ACL: znode.OpenACL}
}

func openSession(id znode.SessionID) Command {
	return Command{Op: OpCreateSession, Session: id, Timeout: 4 * time.Second, Password: session.Password{byte(id)}}
}

func ephemeral(s znode.SessionID, path string) Command {
	return Command{Op: OpCreate, Session: s, Path: path, Mode: znode.Ephemeral, ACL: znode.OpenACL}
}
