package labcli

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/spf13/cobra"
)

// ensembleCommand returns the command that repeats a story on real servers.
func ensembleCommand(o Options) *cobra.Command {
	var servers, fault string
	var n int
	var herd, asJSON bool
	c := &cobra.Command{
		Use:   "ensemble",
		Short: "Do something to the candidate that leads, on running servers, and record the messages",
		Long: "Candidates with a session each stand in ZooKeeper's election recipe, on servers that run, and\n" +
			"the one that leads is killed, cut off, or has its session ended. The servers' own leader stays:\n" +
			"zk-lite transfer moves that. The messages are recorded as the candidates see them;\n" +
			"zk-lite lab serve --servers draws them.",
		Example: "  zk-lite dev   # in another terminal\n  zk-lite lab ensemble --servers 127.0.0.1:2181 --fault cut",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if servers == "" {
				const want = "--servers: want the addresses of running servers, such as 127.0.0.1:2181 of zk-lite dev"
				return o.usage(errors.New(want))
			}
			words := []string{"ensemble", "--fault", fault, "--n", strconv.Itoa(n)}
			if herd {
				words = slices.Concat(words, []string{"--herd"})
			}
			t, err := o.Ensemble(c.Context(), servers, words)
			if err != nil {
				return err
			}
			if asJSON {
				return writeJSON(c.OutOrStdout(), t)
			}
			for _, line := range t.Words {
				fmt.Fprintln(c.OutOrStdout(), line)
			}
			return nil
		},
	}
	c.Flags().StringVar(&servers, "servers", "", "the running ensemble (`HOST:PORT,...`)")
	c.Flags().StringVar(&fault, "fault", "kill", "what is done to the candidate that leads: kill, cut or expire")
	c.Flags().IntVar(&n, "n", 4, "number of candidates, 2 to 16")
	c.Flags().BoolVar(&herd, "herd", false, "let everybody watch the leader")
	c.Flags().BoolVar(&asJSON, "json", false, "print the recorded run as JSON")
	completeWith(c, "fault", "kill", "cut", "expire")
	return c
}
