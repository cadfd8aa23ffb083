package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/zk-lite/zk-lite/cmd/zk-lite/cli"
	"github.com/zk-lite/zk-lite/migration/fence"
)

func fenceCommand() *cobra.Command {
	var h fence.Host
	var after, digest, voters string
	c := &cobra.Command{
		Use:   "fence --data-dir DIR --after ZXID --digest HEX",
		Short: "Keep a stopped ZooKeeper server from starting, and print a receipt",
		Long: `Run this on a host of ZooKeeper, once its server has stopped, as root or as its user. It
moves version-2 and myid away (.fenced), so that the server cannot start, compares its
znodes with those that were mirrored, and prints a receipt, in which are the transactions
that the mirror may not have heard of. Files of ZooKeeper are not changed. To repeat it
does no harm. If it fails, the server can start as before.

"zk-lite takeover --plan" prints the flags. "zk-lite takeover unfence" undoes it.`,
		Example: `  zk-lite takeover fence --data-dir /var/lib/zookeeper --after 0x500000a31 \
      --digest 90a1c3de4b8f1122 --voters 1,2,3 > receipt-1.json`,
		Args: cobra.NoArgs,
	}
	bindHost(c, &h)
	c.Flags().StringVar(&after, "after", "", "`zxid` of the plan")
	c.Flags().StringVar(&digest, "digest", "", "`digest` of the plan, 16 hexadecimal digits")
	c.Flags().StringVar(&voters, "voters", "", "`ids` of the plan, separated by commas; none for ZooKeeper 3.4")
	c.RunE = func(c *cobra.Command, _ []string) error {
		var at fence.Point
		err := errors.Join(at.After.UnmarshalText([]byte(after)), at.Digest.UnmarshalText([]byte(digest)))
		switch {
		case h.DataDir == "":
			return cli.Usage(errors.New("--data-dir is missing: name ZooKeeper's dataDir"))
		case err != nil:
			return cli.Usage(fmt.Errorf("--after and --digest, as zk-lite takeover --plan prints them: %w", err))
		}
		for id := range strings.SplitSeq(voters, ",") {
			n, err := strconv.ParseInt(id, 10, 64)
			if err != nil && voters != "" {
				return cli.Usage(fmt.Errorf("--voters %q: want numbers, as in 1,2,3", voters))
			} else if err == nil {
				at.Voters = append(at.Voters, n)
			}
		}
		r, err := h.Fence(at)
		if err != nil {
			return err
		}
		note := ""
		if !r.Compared {
			note = fmt.Sprintf("; it has not got as far as zxid %v, so nothing was compared", after)
		}
		fmt.Fprintf(c.ErrOrStderr(), "server %d is fenced at zxid %v; %d transactions follow the plan%s\n", r.Server,
			r.Zxid, len(r.Tail), note)
		return json.NewEncoder(c.OutOrStdout()).Encode(r)
	}
	return c
}

func unfenceCommand() *cobra.Command {
	var h fence.Host
	c := &cobra.Command{
		Use:   "unfence --data-dir DIR",
		Short: "Let a fenced ZooKeeper server start again",
		Long: `Undo "zk-lite takeover fence": the server can start with what it had. Do this only if no
take-over was done: else both ensembles would serve, each with other writes. This host
cannot know that; zk-lite mirror status does. To repeat it does no harm.`,
		Example: `  zk-lite takeover unfence --data-dir /var/lib/zookeeper`,
		Args:    cobra.NoArgs,
	}
	bindHost(c, &h)
	yes := c.Flags().BoolP("yes", "y", false, "do not ask")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if h.DataDir == "" {
			return cli.Usage(errors.New("--data-dir is missing: name ZooKeeper's dataDir"))
		}
		fmt.Fprintln(c.ErrOrStderr(), "If zk-lite has taken over, both ensembles would serve once ZooKeeper's "+
			"servers start.")
		if err := confirm(c, *yes, "unfence"); err != nil {
			return err
		}
		if err := h.Unfence(); err != nil {
			return err
		}
		_, err := fmt.Fprintln(c.OutOrStdout(), "the server can start")
		return err
	}
	return c
}

// bindHost defines the flags for the directories of a ZooKeeper server.
func bindHost(c *cobra.Command, h *fence.Host) {
	c.Flags().StringVar(&h.DataDir, "data-dir", "", "ZooKeeper's dataDir, a `directory`")
	c.Flags().StringVar(&h.LogDir, "log-dir", "", "ZooKeeper's dataLogDir, a `directory`, if it is another one")
}
