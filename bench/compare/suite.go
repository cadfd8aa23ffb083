package main

import (
	"fmt"
	"strings"

	"github.com/zk-lite/zk-lite/bench/system"
)

// slowed says what -sync does.
const slowed = "all systems alike, in fsync, fdatasync, msync, sync_file_range and pwritev2 with DSYNC"

// document is the text of the results so far.
func (c *comparison) document() string {
	var b strings.Builder
	head := system.Head{Began: c.began, How: fmt.Sprintf("medians of %d rounds of %v a row after %v of warm-up, "+
		"%v of JIT warm-up after each start", c.times.rounds, c.times.duration, c.times.warmUp, c.times.jit)}
	if c.end != nil {
		head.End = fmt.Errorf("%w: %d rounds of %d are", c.end, c.rounds, c.times.rounds)
	}
	fmt.Fprintf(&b, "## Suite %s\n", c.suite)
	for _, s := range c.systems {
		head.Versions = append(head.Versions, s.Name()+": "+c.versions[s.Name()])
	}
	if c.o.sync != nil {
		head.Versions = append(head.Versions, fmt.Sprintf("added per sync: %s (%s)", c.o.sync[0], slowed))
	}
	b.WriteString(c.site.Head(&head))
	if c.suite == "clients" {
		b.WriteString(c.clientTable())
	} else {
		fmt.Fprintf(&b, "Disk syncs are those of all three servers, %s.\n\n%s", c.counted(), c.summary())
	}
	if text := c.short(); text != "" {
		fmt.Fprintf(&b, "\nShort of an aim:\n\n%s", text)
	}
	if text := c.pairs(); text != "" {
		b.WriteString("\n### Builds in pairs\n\n" + text)
	}
	if c.suite != "clients" {
		fmt.Fprintf(&b, "\n### Details\n\nCPU is that of all three servers.\n\n%s", c.details())
	}
	for _, part := range []struct{ title, text string }{
		{"The leader killed", c.failovers()}, {"Memory", c.memories()},
		{"Begun again", c.again()},
	} {
		if part.text != "" {
			fmt.Fprintf(&b, "\n### %s\n\n%s", part.title, part.text)
		}
	}
	b.WriteString("\n### Settings\n\n")
	for _, s := range c.systems {
		for _, line := range s.Settings() {
			fmt.Fprintf(&b, "- %s: `%s`\n", s.Name(), line)
		}
	}
	b.WriteString("\n")
	return b.String()
}

// again lists the rows that had to be begun again, and those that were given up.
func (c *comparison) again() string {
	var b strings.Builder
	for _, t := range c.troubles {
		end := "begun again on fresh servers"
		if t.given {
			end = "given up for this round"
		}
		where := fmt.Sprintf("round %d", t.round)
		if t.round == 0 {
			where = "after the rounds"
		}
		fmt.Fprintf(&b, "- %s, %s, %s: %s (`%s`)\n", t.row, t.system, where, end,
			strings.ReplaceAll(t.why, "`", "'"))
	}
	return b.String()
}

// counted says how syncs were counted.
func (c *comparison) counted() string {
	if c.perf {
		return "counted by the kernel (perf stat on fdatasync, fsync, msync, sync_file_range, and " +
			"pwritev2, by which zk-lite's log writes durably) during the measured time"
	}
	return "zk-lite's counted by itself (mntr, log_fsyncs_total), the others' not counted"
}
