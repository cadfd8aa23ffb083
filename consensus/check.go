package consensus

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/zk-lite/zk-lite/consensus/selfcheck"
	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/internal/crash"
	"github.com/zk-lite/zk-lite/internal/repeats"
)

const (
	// saveInterval is how often the history goes to the disk, when it has changed.
	saveInterval = time.Second
	// digestShare bounds what digests cost: between two there is at least so many times what one took.
	digestShare = 100
)

// checker compares what this server has applied with what the others have. A server that differs from a majority of
// the voters is halted; where there is no majority, all serve on and report it (alarm).
type checker struct {
	n      *Node
	record *selfcheck.Record
	frozen chan *state.Snapshot // capacity 1: states whose digest is to be computed

	lastLife uint64 // this server's incarnation before this one, by its disk; 0: none
	// lostLife is one in between, which the others know; 0: none. Then the disk is an old copy.
	lostLife atomic.Uint64
	alarm    atomic.Pointer[string] // what is wrong with others; nil: nothing
	lost     atomic.Pointer[string] // how this server's data is gone; nil: it is not
	repeats  repeats.Filter
	equal    atomic.Uint64             // the last index at which a majority had this server's state; 0: none
	equalAt  atomic.Pointer[time.Time] // when; nil: never
	took     atomic.Int64              // nanoseconds, of the last digest

	proposed time.Time // when this server, as leader, has proposed the last digest; zero: never; only run uses it
}

func newChecker(n *Node, lastLife uint64) *checker {
	c := &checker{n: n, record: &selfcheck.Record{}, frozen: make(chan *state.Snapshot, 1), lastLife: lastLife}
	if h := n.cfg.Storage.History; h != nil {
		if b := h.Load(); len(b) > 0 {
			r, err := selfcheck.Load(b)
			if err != nil { // as after a power cut
				n.logger.Warn("what this server has applied before is not known", "error", err)
				return c
			}
			c.record = r
		}
	}
	return c
}

// applied is called by the goroutine that applies, after each entry; gap: after a snapshot was read.
func (c *checker) applied(m *state.Machine, p state.Point, gap bool) {
	if !c.record.Add(p, gap) {
		have, _ := c.record.At(p.Index)
		c.n.halt(HaltForked, fmt.Sprintf("server %d has applied %s before, and its log or snapshot now has %s: its "+
			"files do not belong together, or the others have another history; %s",
			c.n.cfg.ID, describe(have), describe(p), remedy))
	}
	if life := m.Incarnation(c.n.cfg.ID); c.lastLife != 0 && life > c.lastLife &&
		life < c.n.queue.OriginApplying().Incarnation {
		c.lostLife.Store(life)
	}
}

// truncated halts this server: a leader wants it to forget what it has applied.
func (c *checker) truncated(from, applied uint64) {
	c.n.halt(HaltForked, fmt.Sprintf("a leader has another history than server %d: it replaces the log "+
		"from entry %d on, "+
		"and this server has applied entries up to %d, which a majority had on its disks; %s",
		c.n.cfg.ID, from, applied, remedyFork))
}

// freeze is called by the goroutine that applies, when it has applied an OpDigest.
func (c *checker) freeze(m *state.Machine) {
	if len(c.frozen) == 0 { // nobody else sends
		c.frozen <- m.Snapshot()
	}
}

// computeDigests computes digests until the node ends.
func (c *checker) computeDigests() {
	for {
		select {
		case <-c.n.ctx.Done():
			return
		case s := <-c.frozen:
			start := time.Now()
			c.record.AddDigest(selfcheck.Digest{Point: s.Point(), State: s.Digest()})
			s.Release()
			c.took.Store(int64(time.Since(start)))
		}
	}
}

// run compares until the node ends, or is halted.
func (c *checker) run() {
	tick := time.NewTicker(saveInterval)
	defer tick.Stop()
	defer c.save()
	defer crash.OnPanic()
	interval := c.n.cfg.CheckInterval
	var check <-chan time.Time
	if interval > 0 && !c.n.cfg.standalone() {
		t := time.NewTicker(interval)
		defer t.Stop()
		check = t.C
	}
	for c.n.halted.Load() == nil {
		select {
		case <-c.n.ctx.Done():
			return
		case <-tick.C:
			c.save()
			c.lookForData()
		case <-check:
			c.propose()
			c.compare()
		}
	}
}

func (c *checker) save() {
	if h := c.n.cfg.Storage.History; h != nil {
		if b := c.record.Save(); b != nil {
			if err := h.Save(b); err != nil {
				c.n.logger.Warn("writing what this server has applied failed", "error", err)
			}
		}
	}
}

// lookForData looks whether what this server writes to is still where its next start looks for it.
func (c *checker) lookForData() {
	err := c.n.cfg.Storage.Lost()
	if err == nil {
		c.lost.Store(nil)
		return
	}
	text := err.Error()
	c.lost.Store(&text)
	const gone = "this server's data is gone, and with its end all that it has acknowledged; take a backup of it " +
		"now, while it runs, and replace it"
	if pass, leftOut := c.repeats.Pass(gone); pass {
		c.n.logger.Error(gone, "error", err, "left_out", leftOut)
	}
}

// propose has all servers take their digests, if this one leads and something was applied since the last time.
func (c *checker) propose() {
	n := c.n
	last := uint64(0)
	if d := c.record.Digests(); len(d) > 0 {
		last = d[len(d)-1].Index
	}
	if !n.ensemble.Leads() || c.record.Newest().Index <= last ||
		!c.proposed.IsZero() && time.Since(c.proposed) < digestShare*time.Duration(c.took.Load()) {
		return
	}
	c.proposed = time.Now()
	_ = n.Propose(&state.Command{Op: state.OpDigest}, ignore{}) // it fails when the node stops
}

// answer is what this server tells another.
func (c *checker) answer(from state.ServerID, at []uint64) *selfcheck.Answer {
	n := c.n
	a := c.record.Answer(at)
	a.OldCopy = c.lostLife.Load() != 0
	if h := n.halted.Load(); h != nil {
		a.Halted = string(h.Kind) + ": " + h.Reason
	}
	select {
	case <-n.ready:
		a.Last = n.raft.LastIndex()
		n.cfg.Handler.BeginApply()
		a.Life = n.fsm.machine.Incarnation(from)
		n.cfg.Handler.EndApply()
	default:
		a.Last = n.cfg.Storage.LastIndex()
	}
	return a
}

// compare compares histories and digests. Digests alone would not do: on a server whose log differs, the state machine
// may drop the commands that ask for them, as it does after a gap.
func (c *checker) compare() {
	n := c.n
	own, voters := c.record.Newest(), n.ensemble.Voters()
	answers := n.ensemble.AskChecks([]uint64{own.Index})
	alarms := append(halts(answers), c.judgeHistory(own, answers, voters)...)
	v := selfcheck.CompareDigests(n.cfg.ID, c.record.Digests(), answers, voters)
	slices.Sort(v.Differ)
	switch m := v.Majority; {
	case v.Own.Index == 0:
	case m == nil:
		alarms = append(alarms, fmt.Sprintf("no majority of the servers has the same state after entry %d: servers %v "+
			"have another one than server %d", v.Own.Index, v.Differ, n.cfg.ID))
	case m.History != v.Own.History:
		c.haltForked(v.Own.Point, m.Point, v.Differ)
		return
	case m.State != v.Own.State:
		c.haltDiverged(&v)
		return
	default:
		c.equal.Store(v.Own.Index)
		now := time.Now()
		c.equalAt.Store(&now)
		if len(v.Differ) > 0 {
			alarms = append(alarms, fmt.Sprintf("servers %v have another state than a majority after entry %d",
				v.Differ, v.Own.Index))
		}
	}
	alarms = append(alarms, c.judgeLostLife(voters)...)
	c.setAlarm(alarms)
}

// checkStart compares this server's history, as its disk has it, with the others', before it votes. If it must not
// take part, it is halted.
func (c *checker) checkStart() {
	n := c.n
	own, voters := c.record.Newest(), map[state.ServerID]bool{}
	for _, id := range c.record.Voters() {
		voters[id] = true
	}
	answers := n.ensemble.AskChecks([]uint64{own.Index})
	for _, a := range answers {
		if c.lastLife != 0 && a.Halted == "" && a.Life > max(c.lastLife, c.lostLife.Load()) {
			c.lostLife.Store(a.Life)
		}
	}
	alarms := append(halts(answers), c.judgeHistory(own, answers, voters)...)
	c.setAlarm(append(alarms, c.judgeLostLife(voters)...))
}

// judgeHistory halts a server whose history a majority of the voters does not have, if they have one of their own; if
// fewer have another one, that is reported. The servers were asked for the index of own.
func (c *checker) judgeHistory(
	own state.Point, answers map[state.ServerID]*selfcheck.Answer, voters map[state.ServerID]bool,
) []string {
	n := c.n
	var differ, behind []state.ServerID
	var mine, theirs state.Point // where the first of differ was compared
	common := own.Index          // what all of both have applied
	for id, a := range answers {
		rel, p, q := c.record.Compare(own, a)
		switch {
		case !voters[id] || a.Halted != "":
			continue
		case rel == selfcheck.Differs:
			if differ = append(differ, id); id == slices.Min(differ) {
				mine, theirs = p, q
			}
		case rel == selfcheck.Behind:
			behind = append(behind, id)
		default:
			continue
		}
		common = min(common, a.Newest.Index)
	}
	slices.Sort(differ)
	slices.Sort(behind)
	majority := len(voters)/2 + 1
	switch { // a minority may be behind: it catches up
	case len(differ) > 0 && c.alike(common, append(behind, differ...)) >= majority:
		c.haltForked(mine, theirs, differ)
	case len(differ) > 0:
		return []string{fmt.Sprintf("servers %v have another history than server %d", differ, n.cfg.ID)}
	case len(behind) >= majority:
		n.halt(HaltForked, fmt.Sprintf("server %d has applied %s, which a majority had on its disks, but the logs of "+
			"servers %v end before that; server %d has applied %s: their data directories are old copies, or their "+
			"disks have lost what they had; %s", n.cfg.ID, describe(own), behind, behind[0],
			describe(answers[behind[0]].Newest), remedyFork))
	}
	return nil
}

// alike is how many of the servers have the same history up to an index, as far as they know it.
func (c *checker) alike(index uint64, ids []state.ServerID) (most int) {
	count := map[uint64]int{}
	for id, a := range c.n.ensemble.AskChecks([]uint64{index}) {
		if slices.Contains(ids, id) && len(a.Points) == 1 {
			count[a.Points[0].History]++
			most = max(most, count[a.Points[0].History])
		}
	}
	return most
}

// judgeLostLife halts a voter whose disk is an old copy: it has forgotten votes, and what it had acknowledged. If
// the others are no majority without it and other old copies, it has to stay, and that is reported.
func (c *checker) judgeLostLife(voters map[state.ServerID]bool) []string {
	n := c.n
	if c.lostLife.Load() == 0 || !voters[n.cfg.ID] {
		return nil
	}
	others := 0
	for id, a := range n.ensemble.AskChecks(nil) { // now: of two that learn it at once, one knows of the other
		if voters[id] && a.Halted == "" && !a.OldCopy {
			others++
		}
	}
	what := fmt.Sprintf("the data directory of server %d is an old copy: the log knows a later start "+
		"of it than its disk "+
		"does; it has forgotten what it had acknowledged, and its votes", n.cfg.ID)
	if others <= len(voters)/2 {
		return []string{what + "; it takes part all the same, since the others are no majority without it"}
	}
	n.halt(HaltForked, what+"; "+remedy)
	return nil
}

func (c *checker) haltForked(mine, theirs state.Point, differ []state.ServerID) {
	n := c.n
	same, from := c.record.FirstDifference(mine, func(at []uint64) *selfcheck.Answer {
		return n.ensemble.AskChecks(at)[differ[0]]
	})
	since := fmt.Sprintf("they differ from entry %d on or before it", from.Index)
	if same.Index > 0 {
		since = fmt.Sprintf("they are the same up to entry %d and differ from entry %d on, of %s",
			same.Index, from.Index, stamp(from.Time))
	}
	n.halt(HaltForked, fmt.Sprintf("the history of server %d differs from that of servers %v: it has "+
		"%s, server %d has %s; "+
		"%s; %s", n.cfg.ID, differ, describe(mine), differ[0], describe(theirs), since, remedyFork))
}

func (c *checker) haltDiverged(v *selfcheck.Verdict) {
	since := "no equal state was seen since its start"
	if at := c.equal.Load(); at > 0 {
		since = fmt.Sprintf("it was the same after entry %d", at)
	}
	c.n.halt(HaltDiverged, fmt.Sprintf("the state of server %d differs from that of a majority, though "+
		"all have applied "+
		"the same log: after entry %d its digest is %016x, that of servers %v is %016x; %s; memory, disk or program "+
		"have failed; %s", c.n.cfg.ID, v.Own.Index, v.Own.State, v.Differ, v.Majority.State, since, remedy))
}

// remedy is what to do about a server whose files are not to be trusted.
const remedy = "keep its data directories if you want to know why; to take it back, remove it from the ensemble, " +
	"empty its data directories but for myid, and add it again"

// remedyFork is what to do when a majority may lack acknowledged writes.
const remedyFork = "the majority may lack writes that were acknowledged, and this server may have the only copy: " +
	"keep its data directories until that is settled; to go on with them, stop the others and use `zk-lite recover` " +
	"here; to give them up, remove it from the ensemble, empty its data directories but for myid, and add it again"

// halts are alarms about servers that are halted. One that was removed is no alarm.
func halts(answers map[state.ServerID]*selfcheck.Answer) (list []string) {
	for id, a := range answers {
		if a.Halted != "" && !strings.HasPrefix(a.Halted, string(HaltRemoved)) {
			list = append(list, fmt.Sprintf("server %d is halted: %s", id, a.Halted))
		}
	}
	slices.Sort(list)
	return list
}

func (c *checker) setAlarm(alarms []string) {
	text := strings.Join(alarms, "; ")
	before := c.alarm.Load()
	switch {
	case text == "" && before != nil:
		c.alarm.Store(nil)
		c.n.logger.Info("the servers agree again")
	case text != "" && (before == nil || *before != text):
		c.alarm.Store(&text)
		c.n.logger.Error("the servers do not agree", "alarm", text)
	}
}

// describe names a point for people.
func describe(p state.Point) string {
	return fmt.Sprintf("entry %d of term %d (history %016x, %s)", p.Index, p.Term, p.History, stamp(p.Time))
}

func stamp(millis int64) string { return time.UnixMilli(millis).UTC().Format(time.RFC3339) }

// metrics are those of the checks.
func (c *checker) metrics() []Metric {
	age, alarm := -1.0, int64(0)
	if at := c.equalAt.Load(); at != nil {
		age = time.Since(*at).Seconds()
	}
	if c.alarm.Load() != nil {
		alarm = 1
	}
	return []Metric{
		{"check_alarm", alarm},
		{"check_last_index", int64(c.equal.Load())},
		{"check_age_seconds", age},
		{"check_digest_seconds", time.Duration(c.took.Load()).Seconds()},
	}
}
