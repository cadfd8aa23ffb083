package cli

import (
	"errors"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/zk-lite/zk-lite/cmd/zk-lite/cli/httpapi"
)

func (a *app) memberListCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "list",
		Short: "Show the servers of the ensemble, and how many failures it tolerates",
		Long: `Show the servers of the ensemble: the leader, followers (which vote), observers, and
joining servers, which get their vote when they have caught up. Only the leader can
report how many more failures the ensemble tolerates now, so name the URLs of all
servers. The exit code is 1 if there is no leader.`,
		Example: `  zk-lite member list
  zk-lite member list --http http://zk1:8080,http://zk2:8080 --auth digest:super:secret
  zk-lite member list -o json | jq -r '.members[] | select(.role == "leader") | .client'`,
		Args: argCount(0, 0, 0),
	}
	return a.operation(c, defaultTimeout, func(c *cobra.Command, _ []string, api *httpapi.Client) error {
		now, err := cluster(c.Context(), api)
		if err != nil {
			return err
		}
		if now.FailuresToleratedNow == nil && now.Leader != noServer {
			api.Each(func(one *httpapi.Client) bool {
				other, err := cluster(c.Context(), one)
				if err == nil && other.FailuresToleratedNow != nil {
					now = other
				}
				return now.FailuresToleratedNow != nil
			})
		}
		if a.json() {
			err = writeJSON(c.OutOrStdout(), &now)
		} else {
			err = printCluster(c.OutOrStdout(), &now)
		}
		if err == nil && now.Leader == noServer {
			err = errNoLeader
		}
		return err
	})
}

// errNoLeader reports that nothing can be changed now.
var errNoLeader = errors.New("the ensemble has no leader: is a majority of its servers up?")

func printCluster(out io.Writer, now *clusterJSON) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "ID\tROLE\tPEER\tCLIENT\tHTTP\tKEY\tVERSION")
	for _, m := range now.Members {
		fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%s\t%s\t%s\n", m.ID, m.Role, orDash(m.Peer), orDash(m.Client), orDash(m.HTTP),
			orDash(m.Key), orDash(m.Version))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	text := fmt.Sprintf("term %d; %s: the ensemble tolerates %s", now.Term, count(now.Voters, "voter"),
		count(now.FailuresTolerated, "failure"))
	switch {
	case now.FailuresToleratedNow == nil:
	case *now.FailuresToleratedNow == now.FailuresTolerated:
		text += "; all voters are connected"
	default:
		more := *now.FailuresToleratedNow
		text += fmt.Sprintf("; %d not connected, so it tolerates %d more", now.FailuresTolerated-more, more)
	}
	for _, m := range now.Members {
		text += m.Plan.text(m.ID)
	}
	_, err := fmt.Fprintln(out, text)
	return err
}

// text is a line of its own about server id; nil: none.
func (p *planJSON) text(id int) string {
	switch {
	case p == nil:
		return ""
	case p.Action == "promote" && p.Waits == "":
		return fmt.Sprintf("\nserver %d gets its vote in %s, if it stays connected", id, p.In)
	case p.Action == "promote":
		return fmt.Sprintf("\nserver %d has no vote yet: %s", id, p.Waits)
	case p.Waits == "":
		return fmt.Sprintf("\nserver %d is not connected, and is removed in %s unless it comes back", id, p.In)
	}
	return fmt.Sprintf("\nserver %d is not connected, and is not removed: %s", id, p.Waits)
}

// count is a number with its noun.
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}
