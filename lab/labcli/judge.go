package labcli

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/zk-lite/zk-lite/lab/chart"
	"github.com/zk-lite/zk-lite/lab/judge"
	"github.com/zk-lite/zk-lite/lab/play"
)

type judgeFlags struct {
	config judge.Config
	run    string
	// protocol and skeleton ask for a text instead of a judgement.
	protocol bool
	skeleton string
	output   outputFlags
}

func judgeCommand(o Options) *cobra.Command {
	var f judgeFlags
	c := &cobra.Command{
		Use:   "judge [flags] -- PROGRAM [ARGUMENT...]",
		Short: "Judge your own program as the processes of an election or a lock",
		Long: "PROGRAM is started once for each process. It reads events from standard input and answers each\n" +
			"with one line, both JSON: --protocol explains them, and --skeleton is a program to begin with. It is\n" +
			"run many times, from seeds, and judged for safety, liveness and, with --like, for the number of its\n" +
			"messages. The run that fails is made as small as possible; --trace, --svg and --html draw it.",
		Example: "  zk-lite lab judge --skeleton python > mine.py && zk-lite lab judge -- python3 mine.py\n" +
			"  zk-lite lab judge --task election --crashes 1 --like bully -- python3 bully.py\n" +
			"  zk-lite lab judge --task mutex --trace -- ./lock\n" +
			"  zk-lite lab judge --run '--ids 1,2 --initiator 1' --trace -- ./bully   # this run only",
		RunE: func(c *cobra.Command, words []string) error { return f.do(c, o, words) },
	}
	flags := c.Flags()
	flags.StringVar(&f.config.Task, "task", judge.Election, judge.Election+"|"+judge.Mutex)
	flags.IntVar(&f.config.N, "n", 5, "greatest number of processes")
	flags.IntVar(&f.config.Runs, "runs", 200, "number of runs")
	flags.Uint64Var(&f.config.Seed, "seed", 1, "seed of the first run; the next has the next seed")
	flags.IntVar(&f.config.Crashes, "crashes", 0, "how many processes may crash in a run")
	flags.BoolVar(&f.config.Recoveries, "recoveries", false, "let some of them come back")
	flags.Float64Var(&f.config.Loss, "loss", 0, "probability that a message is lost")
	flags.Float64Var(&f.config.Duplication, "duplication", 0, "probability that a message arrives twice")
	flags.BoolVar(&f.config.Reorder, "reorder", false, "let messages overtake one another on a link")
	flags.BoolVar(&f.config.AnyLeader, "any-leader", false, "let an election choose anybody, not only the best")
	flags.StringVar(&f.config.Like, "like", "", "algorithm of the lab that must not send fewer messages")
	flags.StringVar(&f.run, "run", "", "make one run, with these `OPTIONS` of lab election or lab mutex")
	flags.BoolVar(&f.protocol, "protocol", false, "print what a program is asked and has to answer")
	flags.StringVar(&f.skeleton, "skeleton", "",
		"print a program to begin with, in this `LANGUAGE`: "+strings.Join(judge.Languages(), "|"))
	completeWith(c, "task", judge.Election, judge.Mutex)
	completeWith(c, "skeleton", judge.Languages()...)
	f.output.register(c)
	return c
}

// do prints a text, or judges.
func (f *judgeFlags) do(c *cobra.Command, o Options, words []string) error {
	text := judge.Protocol
	switch {
	case !f.protocol && f.skeleton == "":
		return f.judge(c, o, words)
	case f.protocol && f.skeleton != "" || len(words) > 0:
		return o.usage(errors.New("--protocol and --skeleton print a text: want one of them, and no program"))
	case f.skeleton != "":
		var err error
		if text, err = judge.Skeleton(f.skeleton); err != nil {
			return o.usage(fmt.Errorf("--skeleton: %w", err))
		}
	}
	_, err := io.WriteString(c.OutOrStdout(), text)
	return err
}

func (f *judgeFlags) judge(c *cobra.Command, o Options, words []string) error {
	if err := f.output.check(); err != nil {
		return o.usage(err)
	}
	f.config.Command, f.config.Log = words, c.ErrOrStderr()
	if f.run != "" {
		only, err := f.only()
		if err != nil {
			return o.usage(fmt.Errorf("--run: %w", err))
		}
		f.config.Only = &only
	}
	r, err := judge.Judge(c.Context(), f.config)
	if err != nil {
		return o.usage(err)
	}
	title := "the last run, which passes"
	if r.Failure != nil {
		title = r.Failure.Text
	}
	err = f.output.finish(c.OutOrStdout(), play.Outcome{Title: title, Result: r, Ring: r.Ring, Records: r.Records,
		Truncated: r.Truncated, End: chart.EndOf(r.Records), Words: r.Words})
	if err == nil && !r.Passed {
		err = errors.New("the program fails")
	}
	return err
}

// only reads the one run that is asked for.
func (f *judgeFlags) only() (judge.Case, error) {
	words := strings.Fields(f.run)
	if f.config.Task == judge.Mutex {
		m, err := play.MutexConfig(words)
		return judge.Case{Mutex: &m}, err
	}
	e, err := play.ElectionConfig(words)
	e.AnyLeader = f.config.AnyLeader
	return judge.Case{Election: &e}, err
}
