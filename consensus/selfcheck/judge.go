package selfcheck

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/zk-lite/zk-lite/consensus/state"
)

// compare compares histories and digests. Digests alone would not do: on a server whose log differs, the state machine
// may drop the commands that ask for them, as it does after a gap.
func (c *Checker) compare() {
	own, voters := c.Record.Newest(), c.ensemble.Voters()
	answers := c.ensemble.AskChecks([]uint64{own.Index})
	alarms := append(halts(answers), c.judgeHistory(own, answers, voters)...)
	v := CompareDigests(c.cfg.Self, c.Record.Digests(), answers, voters)
	slices.Sort(v.Differ)
	switch m := v.Majority; {
	case v.Own.Index == 0:
	case m == nil:
		alarms = append(alarms, fmt.Sprintf("no majority of the servers has the same state after entry %d: servers %v "+
			"have another one than server %d", v.Own.Index, v.Differ, c.cfg.Self))
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

// CheckStart compares this server's history, as its disk has it, with the others', before it votes. If it must not
// take part, it is halted.
func (c *Checker) CheckStart() {
	own, voters := c.Record.Newest(), map[state.ServerID]bool{}
	for _, id := range c.Record.Voters() {
		voters[id] = true
	}
	answers := c.ensemble.AskChecks([]uint64{own.Index})
	for _, a := range answers {
		if c.cfg.LastLife != 0 && a.Halted == "" && a.Life > max(c.cfg.LastLife, c.lostLife.Load()) {
			c.lostLife.Store(a.Life)
		}
	}
	alarms := append(halts(answers), c.judgeHistory(own, answers, voters)...)
	c.setAlarm(append(alarms, c.judgeLostLife(voters)...))
}

// judgeHistory halts a server whose history a majority of the voters does not have, if they have one of their own; if
// fewer have another one, that is reported. The servers were asked for the index of own.
func (c *Checker) judgeHistory(
	own state.Point, answers map[state.ServerID]*Answer, voters map[state.ServerID]bool,
) []string {
	var differ, behind []state.ServerID
	var mine, theirs state.Point // where the first of differ was compared
	common := own.Index          // what all of both have applied
	for id, a := range answers {
		rel, p, q := c.Record.Compare(own, a)
		switch {
		case !voters[id] || a.Halted != "":
			continue
		case rel == Differs:
			if differ = append(differ, id); id == slices.Min(differ) {
				mine, theirs = p, q
			}
		case rel == Behind:
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
		return []string{fmt.Sprintf("servers %v have another history than server %d", differ, c.cfg.Self)}
	case len(behind) >= majority:
		c.cfg.Node.Halt(Forked, fmt.Sprintf("server %d has applied %s, which a majority had on its disks, but "+
			"the logs of servers %v end before that; server %d has applied %s: their data directories are old "+
			"copies, or their disks have lost what they had; %s", c.cfg.Self, describe(own), behind, behind[0],
			describe(answers[behind[0]].Newest), remedyFork))
	}
	return nil
}

// alike is how many of the servers have the same history up to an index, as far as they know it.
func (c *Checker) alike(index uint64, ids []state.ServerID) (most int) {
	count := map[uint64]int{}
	for id, a := range c.ensemble.AskChecks([]uint64{index}) {
		if slices.Contains(ids, id) && len(a.Points) == 1 {
			count[a.Points[0].History]++
			most = max(most, count[a.Points[0].History])
		}
	}
	return most
}

// judgeLostLife halts a voter whose disk is an old copy: it has forgotten votes, and what it had acknowledged. If
// the others are no majority without it and other old copies, it has to stay, and that is reported.
func (c *Checker) judgeLostLife(voters map[state.ServerID]bool) []string {
	if c.lostLife.Load() == 0 || !voters[c.cfg.Self] {
		return nil
	}
	others := 0
	for id, a := range c.ensemble.AskChecks(nil) { // now: of two that learn it at once, one knows of the other
		if voters[id] && a.Halted == "" && !a.OldCopy {
			others++
		}
	}
	what := fmt.Sprintf("the data directory of server %d is an old copy: the log knows a later start "+
		"of it than its disk "+
		"does; it has forgotten what it had acknowledged, and its votes", c.cfg.Self)
	if others <= len(voters)/2 {
		return []string{what + "; it takes part all the same, since the others are no majority without it"}
	}
	c.cfg.Node.Halt(Forked, what+"; "+remedy)
	return nil
}

func (c *Checker) haltForked(mine, theirs state.Point, differ []state.ServerID) {
	same, from := c.Record.FirstDifference(mine, func(at []uint64) *Answer {
		return c.ensemble.AskChecks(at)[differ[0]]
	})
	since := fmt.Sprintf("they differ from entry %d on or before it", from.Index)
	if same.Index > 0 {
		since = fmt.Sprintf("they are the same up to entry %d and differ from entry %d on, of %s",
			same.Index, from.Index, formatTime(from.Time))
	}
	c.cfg.Node.Halt(Forked, fmt.Sprintf("the history of server %d differs from that of servers %v: it has "+
		"%s, server %d has %s; "+
		"%s; %s", c.cfg.Self, differ, describe(mine), differ[0], describe(theirs), since, remedyFork))
}

func (c *Checker) haltDiverged(v *Verdict) {
	since := "no equal state was seen since its start"
	if at := c.equal.Load(); at > 0 {
		since = fmt.Sprintf("it was the same after entry %d", at)
	}
	c.cfg.Node.Halt(Diverged, fmt.Sprintf("the state of server %d differs from that of a majority, though "+
		"all have applied "+
		"the same log: after entry %d its digest is %016x, that of servers %v is %016x; %s; memory, disk or program "+
		"have failed; %s", c.cfg.Self, v.Own.Index, v.Own.State, v.Differ, v.Majority.State, since, remedy))
}

// remedy is what to do about a server whose files are not to be trusted.
const remedy = "keep its data directories if you want to know why; to take it back, remove it from the ensemble, " +
	"empty its data directories but for myid, and add it again"

// remedyFork is what to do when a majority may lack acknowledged writes.
const remedyFork = "the majority may lack writes that were acknowledged, and this server may have the only copy: " +
	"keep its data directories until that is settled; to go on with them, stop the others and use `zk-lite recover` " +
	"here; to give them up, remove it from the ensemble, empty its data directories but for myid, and add it again"

// halts are alarms about servers that are halted. One that was removed is no alarm.
func halts(answers map[state.ServerID]*Answer) (list []string) {
	for id, a := range answers {
		if a.Halted != "" && !strings.HasPrefix(a.Halted, string(Removed)) {
			list = append(list, fmt.Sprintf("server %d is halted: %s", id, a.Halted))
		}
	}
	slices.Sort(list)
	return list
}

func (c *Checker) setAlarm(alarms []string) {
	text := strings.Join(alarms, "; ")
	before := c.alarm.Load()
	switch {
	case text == "" && before != nil:
		c.alarm.Store(nil)
		c.cfg.Logger.Info("the servers agree again")
	case text != "" && (before == nil || *before != text):
		c.alarm.Store(&text)
		c.cfg.Logger.Error("the servers do not agree", "alarm", text)
	}
}

// describe names a point for people.
func describe(p state.Point) string {
	return fmt.Sprintf("entry %d of term %d (history %016x, %s)", p.Index, p.Term, p.History, formatTime(p.Time))
}

func formatTime(millis int64) string { return time.UnixMilli(millis).UTC().Format(time.RFC3339) }
