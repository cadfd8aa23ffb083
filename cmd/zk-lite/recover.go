package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/zk-lite/zk-lite/app"
	"github.com/zk-lite/zk-lite/app/config"
	"github.com/zk-lite/zk-lite/cmd/zk-lite/cli"
	"github.com/zk-lite/zk-lite/consensus/membership"
	"github.com/zk-lite/zk-lite/consensus/recovery"
)

// recoverCommand is run beside a server's files, with that server's configuration.
func recoverCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "recover",
		Short: "Go on with one server when a majority is lost for good",
		Long: `Make this server, which must not run, the only voter of a new ensemble, with the data in
its data directory, or with those of a backup in an empty one (--from). It needs the
server's own configuration, and says what may be lost before it does anything.

What the lost servers acknowledged, and this one has not heard of, is lost. They cannot
come back with what they have: empty their directories and add them as new members.
THEY MUST NOT RUN AGAIN with their old directories: a majority of them would go on
as the former ensemble, beside this one.

A server that is only down is no loss: start it. While others of the ensemble run that
could go on with this one, or without it, nothing is done.

A log of release 1.0 may have a command that needs more memory than there is, so that
every server ends each time it starts: "doctor" names it. Stop all servers, and give
--skip-acls-over to one of them. What is skipped is named; all else is kept.`,
		Example: `  zk-lite recover --config /etc/zookeeper/zoo.cfg
  zk-lite recover --config /etc/zookeeper/zoo.cfg --from zk-2026-11-20.backup
  zk-lite recover --config /etc/zookeeper/zoo.cfg --skip-acls-over 16`,
		Args: noConfigArgument,
	}
	config.BindFlags(c.Flags())
	from := c.Flags().String("from", "", "take the data of a backup, a `file`; the data directory has to be empty")
	yes := c.Flags().BoolP("yes", "y", false, "do not ask")
	force := c.Flags().Bool("force", false, "although other servers answer: a second ensemble beside theirs begins")
	skip := c.Flags().Uint16("skip-acls-over", 0,
		"leave out commands of the log whose ACLs take more than so many `MiB`")
	c.RunE = func(c *cobra.Command, _ []string) error {
		s, notices, err := config.Load(c.Flags(), os.LookupEnv)
		if err != nil {
			return err
		}
		for _, n := range notices {
			fmt.Fprintln(c.ErrOrStderr(), n)
		}
		var backup io.Reader
		if *from != "" {
			f, err := os.Open(*from)
			if err != nil {
				return err
			}
			defer f.Close()
			backup = bufio.NewReader(f)
		}
		logger := newLogger(c.ErrOrStderr(), false, slog.LevelWarn)
		r, peers, err := app.OpenRecovery(c.Context(), app.Options{Settings: s, Logger: logger}, backup,
			int64(*skip)<<20)
		if err != nil {
			return adviseRecover(err)
		}
		printRecovery(c.ErrOrStderr(), s.MyID, r.Report(), peers)
		if r.Majority(peers) {
			if !*force {
				return errNotLost
			}
			fmt.Fprintln(c.ErrOrStderr(), "FORCED: the servers that answer go on as another ensemble. "+
				"What clients write there will not be here, nor the other way round.")
		}
		if err := confirm(c, *yes, "recover"); err != nil {
			return err
		}
		id, kept, err := r.Run(time.Now())
		if err != nil {
			return err
		}
		fmt.Fprintf(c.OutOrStdout(), "server %d is the only voter of ensemble %x now; its former files are in %s of "+
			"its data directories\nnext: start it, and add the others as new members, with empty directories\n",
			s.MyID, id, kept)
		return nil
	}
	return withSettings(c)
}

var errNotLost = errors.New("a majority is not lost: nothing was done. Start the servers that are down; one that " +
	"has lost its disk is replaced (`zk-lite member token`). If those that answer are not to go on, stop them and " +
	"try again; --force begins a second ensemble beside theirs")

func adviseRecover(err error) error {
	switch {
	case errors.Is(err, recovery.ErrNoData):
		return fmt.Errorf("%w; name this server's own configuration with --config, or a backup with --from", err)
	case errors.Is(err, recovery.ErrHasData):
		return fmt.Errorf("%w; without --from it goes on with these, or move them away first", err)
	case errors.Is(err, recovery.ErrOneVoter):
		return fmt.Errorf("%w; start it. --skip-acls-over leaves out what it cannot apply, if there is such a command",
			err)
	}
	return err
}

// printRecovery prints what the data has, and what may be lost.
func printRecovery(w io.Writer, self int, r recovery.Report, peers []membership.Peer) {
	what := fmt.Sprintf("server %d of ensemble %x", self, r.Ensemble)
	if r.Ensemble == [16]byte{} {
		what = fmt.Sprintf("a backup, for server %d", self)
	}
	fmt.Fprintf(w, "There is: %s, voters %v.\n", what, r.Voters)
	fmt.Fprintf(w, "  last entry: index %d, term %d, zxid 0x%x, of %s (%v ago)\n", r.Index, r.Term, int64(r.Zxid),
		r.Time.Format(time.RFC3339), time.Since(r.Time).Round(time.Second))
	fmt.Fprintf(w, "  %d znodes, %d sessions\n", r.Znodes, r.Sessions)
	for _, x := range r.Skipped {
		fmt.Fprintln(w, "  SKIPPED:", x)
	}
	fmt.Fprintln(w, "The others:")
	for _, p := range peers {
		answer := "runs, and belongs to no ensemble"
		switch {
		case p.Err != nil:
			answer = p.Err.Error()
		case p.Led:
			answer = "RUNS, AND HAS A LEADER"
		case p.Member:
			answer = "runs, and has shown no leader"
		}
		fmt.Fprintf(w, "  server %d (%s): %s\n", p.ID, p.Addr, answer)
	}
	fmt.Fprintf(w, `What may be lost: every write that was acknowledged after the last entry.
  Nobody can say how many these are.
What will be done: this server becomes the only voter of a new ensemble, with a new id; zxids go on at 0x%x,
  above all that clients may have seen; sessions stay, and expire by their timeouts if their clients do not come.
The lost servers must not run again with their old directories.
`, int64(r.Next<<32))
}

// confirm asks for a word before something that cannot be undone.
func confirm(c *cobra.Command, yes bool, word string) error {
	if yes {
		return nil
	}
	if f, is := c.InOrStdin().(*os.File); !is || !term.IsTerminal(int(f.Fd())) {
		return cli.Usage(fmt.Errorf("there is no terminal to ask at: --yes does it without asking; nothing was done"))
	}
	fmt.Fprintf(c.ErrOrStderr(), "Type %q to do it: ", word)
	answer, err := bufio.NewReader(c.InOrStdin()).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("reading the answer: %w", err)
	}
	if strings.TrimSpace(answer) != word {
		return errors.New("nothing was done")
	}
	return nil
}
