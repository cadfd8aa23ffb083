package play

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/zk-lite/zk-lite/lab/election"
	"github.com/zk-lite/zk-lite/lab/explore"
	"github.com/zk-lite/zk-lite/lab/mutex"
	"github.com/zk-lite/zk-lite/lab/sim"
	"github.com/zk-lite/zk-lite/lab/table"
)

type exploreOptions struct {
	network    network // of which explorations have the processes and the seed
	algorithm  string
	find       string
	initiators []string
	down       []string
	attributes []string
	rule       string
	announce   string
	detector   string
	requesters []string
	requests   int
	plain      bool
	crashes    int
	losses     int
	states     int
	timely     bool
	reorder    bool
}

// worst is the other thing to look for.
const worst = "worst"

// explorable are the algorithms of both families but those with sessions.
func explorable() (names []string) {
	for _, a := range election.Algorithms() {
		if !a.Service() {
			names = append(names, a.Name)
		}
	}
	for _, a := range mutex.Algorithms() {
		if !a.Sessions() {
			names = append(names, a.Name)
		}
	}
	return names
}

func exploreCommand() *Command {
	var f exploreOptions
	c := &Command{
		Name: "explore", Short: "Go through all orders of a few processes, or look for the worst arrangement",
		Long: "Every order in which messages, timers and requests can follow each other is tried, and the\n" +
			"shortest run to each broken promise is kept; --trace, --svg and --html draw it. There is no\n" +
			"time: timers run out at any moment, or with --timely only when no message is under way.",
		Example: "  zk-lite lab explore --algorithm maekawa --plain --find deadlock --trace\n" +
			"  zk-lite lab explore --algorithm bully --find two-leaders --trace\n" +
			"  zk-lite lab explore --algorithm hs --n 9 --find worst",
		run: f.run,
	}
	shared := f.network.options(3)
	c.Options = append([]*Option{
		text(&f.algorithm, "algorithm", "NAME", "maekawa", "what is explored", explorable()...),
		text(&f.find, "find", "KIND", "", "stop at the first of this kind, the shortest run to it (default: all kinds)",
			explore.TwoLeaders, explore.Disagree, explore.NoLeader, explore.TwoInside, explore.Deadlock,
			explore.Endless, worst),
		number(&f.crashes, "crashes", 0, "how many processes may crash, at any moment"),
		number(&f.losses, "losses", 0, "how many messages may be lost"),
		toggle(&f.timely, "timely", "let timers run out only when no message is under way"),
		toggle(&f.reorder, "reorder", "let messages overtake one another on a link"),
		number(&f.states, "states", explore.DefaultStates, "how many states to look at"),
		each(&f.down, "down", "ID", "elections: process that has crashed before"),
		each(&f.initiators, "initiator", "ID", "elections: process that starts"),
		each(&f.attributes, "attribute", "ID=VALUE", "bully and ring: number by which a process is ranked"),
		text(&f.rule, "rule", "NAME", "initiator", "ring: rule for several initiators", "initiator", "participant"),
		text(&f.announce, "announce", "WHEN", "again", "bully: whether a coordinator that is asked announces again",
			"again", "once"),
		text(&f.detector, "detector", "NAME", "perfect", "elections: whether crashes are told", "perfect", "none"),
		each(&f.requesters, "requester", "ID", "locks: process that asks (default: all)"),
		number(&f.requests, "requests", 1, "locks: how often each asks"),
		toggle(&f.plain, "plain", "maekawa: do without fail, inquire and relinquish"),
	}, slices.DeleteFunc(shared, func(o *Option) bool {
		return !slices.Contains([]string{"n", "ids", "seed"}, o.Name)
	})...)
	return c
}

func (f *exploreOptions) election(c *Command, ids []sim.ID) (*election.Config, error) {
	e := &election.Config{Algorithm: f.algorithm, IDs: ids, Seed: f.network.seed,
		Detector: election.Detector(f.detector)}
	err := c.refuse("that is for locks", "requester", "requests", "plain")
	if err != nil {
		return nil, err
	}
	if e.Participants, err = choice("rule", f.rule, "initiator", "participant"); err != nil {
		return nil, err
	}
	if e.AnnounceOnce, err = choice("announce", f.announce, "again", "once"); err != nil {
		return nil, err
	}
	if e.Initiators, err = parseAll("--initiator", f.initiators, election.ParseInitiator); err != nil {
		return nil, err
	}
	if e.Attributes, err = parseAttributes(f.attributes); err != nil {
		return nil, err
	}
	down, err := parseAll("--down", f.down, sim.ParseID)
	for _, id := range down {
		e.Faults = append(e.Faults, sim.Fault{ID: id})
	}
	return e, err
}

func (f *exploreOptions) lock(c *Command, ids []sim.ID) (*mutex.Config, error) {
	err := c.refuse("that is for elections", "down", "initiator", "attribute", "rule", "announce", "detector")
	if err != nil {
		return nil, err
	}
	requesters, err := parseAll("--requester", f.requesters, sim.ParseID)
	return &mutex.Config{Algorithm: f.algorithm, IDs: ids, Requesters: requesters, Requests: f.requests,
		Plain: f.plain, Seed: f.network.seed}, err
}

func (f *exploreOptions) run(c *Command) (Outcome, error) {
	if !slices.Contains(explorable(), f.algorithm) {
		return Outcome{}, fmt.Errorf("%q cannot be explored: want one of %s", f.algorithm,
			strings.Join(explorable(), ", "))
	}
	ids, err := f.network.processes(c)
	if err != nil {
		return Outcome{}, err
	}
	config := explore.Config{Find: f.find, Timely: f.timely, Reorder: f.reorder, Crashes: f.crashes, Losses: f.losses,
		States: f.states}
	if _, notElection := election.Lookup(f.algorithm); notElection == nil {
		if config.Election, err = f.election(c, ids); err != nil {
			return Outcome{}, err
		}
	} else if config.Mutex, err = f.lock(c, ids); err != nil {
		return Outcome{}, err
	}
	if f.find == worst {
		return f.worst(c, config.Election, len(ids))
	}
	if f.states < 1 {
		return Outcome{}, fmt.Errorf("--states %d: want 1 or more", f.states)
	}
	r, err := explore.Search(config)
	if err != nil {
		return Outcome{}, err
	}
	topology := "mesh"
	if config.Election != nil || f.algorithm == "token-ring" {
		topology = "ring"
	}
	return Outcome{Title: fmt.Sprintf("%s, %d processes: %s", r.Algorithm, r.N, drawnWords(r)), Result: r,
		Words: func(w io.Writer) { writeExplored(w, r) }, Ring: r.Ring, Service: r.Service, Records: r.Records,
		End: endOf(r.Time, nil, r.Records), algorithm: r.Algorithm, Topology: topology, safe: r.Safe, live: r.Live,
		ended: "quiet", time: r.Time, broken: r.Violations}, nil
}

func drawnWords(r explore.Result) string {
	if len(r.Violations) == 0 {
		return "an order that breaks nothing"
	}
	return r.Violations[0].Text
}

func writeExplored(w io.Writer, r explore.Result) {
	through := "all there are"
	if !r.Complete {
		through = "not all there are"
	}
	fmt.Fprintf(w, "%s, %d processes: %d states, %s; in %d nothing can happen any more\n", r.Algorithm, r.N, r.States,
		through, r.Final)
	for _, found := range r.Found {
		fmt.Fprintf(w, "%s: after %d steps at the least (%d states): %s\n", found.Kind, found.Steps, found.States,
			found.Text)
	}
	if len(r.Found) == 0 && r.Complete {
		fmt.Fprintln(w, "no promise is broken in any order")
	} else if len(r.Found) == 0 {
		fmt.Fprintln(w, "no promise is broken in these")
	}
}

// worst looks for an arrangement and runs it.
func (f *exploreOptions) worst(c *Command, e *election.Config, n int) (Outcome, error) {
	if e == nil {
		return Outcome{}, fmt.Errorf("a lock has no arrangement: want ring, lcr or hs")
	}
	if err := c.refuse("the search goes through the arrangements of 1 to n", "ids", "down", "crashes", "losses",
		"timely", "reorder", "states"); err != nil {
		return Outcome{}, err
	}
	found, err := explore.Worst(*e, n)
	if err != nil {
		return Outcome{}, err
	}
	line := fmt.Sprintf("election --algorithm %s --ids %s", e.Algorithm,
		strings.NewReplacer("[", "", "]", "", "N", "", " ", ",").Replace(fmt.Sprint(found.IDs)))
	for _, i := range f.initiators {
		line += " --initiator " + i
	}
	again := New("election")
	again.Keep = c.Keep
	if err := again.parse(strings.Fields(line)[1:]); err != nil {
		return Outcome{}, err
	}
	o, err := again.Run()
	words := o.Words
	o.Words = func(w io.Writer) {
		how := "the best of a climb"
		if found.All {
			how = "of all arrangements"
		}
		fmt.Fprintf(w, "%d messages, %s: zk-lite lab %s\n", found.Messages, how, line)
		if e.Algorithm == "hs" {
			fmt.Fprintf(w, "bounds: %.1f by the sum over the phases, %.1f by 8N(log N + 2) + 5N\n", table.HSSum(n),
				table.HSBound(n))
		}
		words(w)
	}
	return o, err
}
