package cli

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/zk-lite/zk-lite/cmd/zk-lite/cli/httpapi"
)

func (a *app) memberListCommand() *cobra.Command {
	var check bool
	c := &cobra.Command{
		Use:   "list",
		Short: "Show the servers of the ensemble, and how many failures it tolerates",
		Long: `Show the servers of the ensemble: the leader, followers (which vote), observers, and
joining servers, which get their vote when they have caught up; whether they are
connected to the leader, and how many entries they lag behind it. Name the URLs of all
servers: those that take no part, or do not reach the leader, are passed over. The exit
code is 1 if there is no leader; with --check also if a voter is not connected.`,
		Example: `  zk-lite member list
  zk-lite member list --http http://zk1:8080,http://zk2:8080 --auth digest:super:secret
  zk-lite member list -o json | jq -r '.members[] | select(.role == "leader") | .client'`,
		Args: argCount(0, 0, 0),
	}
	c.Flags().BoolVar(&check, "check", false, "exit with 1 if a voter is not connected")
	return a.operation(c, defaultTimeout, func(c *cobra.Command, _ []string, api *httpapi.Client) error {
		now, err := cluster(c.Context(), api)
		if err != nil {
			return err
		}
		if a.json() {
			err = writeJSON(c.OutOrStdout(), &now)
		} else {
			err = printCluster(c.OutOrStdout(), &now)
		}
		switch {
		case err != nil:
			return err
		case now.Leader == noServer:
			return errNoLeader
		case check && len(now.missing()) > 0:
			return fmt.Errorf("not connected: %s", servers(now.missing()))
		case check && now.Incomplete != "":
			return errors.New(now.Incomplete)
		}
		return nil
	})
}

// errNoLeader reports that nothing can be changed now.
var errNoLeader = errors.New("the ensemble has no leader: is a majority of its servers up?")

func printCluster(out io.Writer, now *clusterJSON) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "ID\tROLE\tSTATE\tLAG\tPEER\tCLIENT\tHTTP\tKEY\tVERSION")
	for i := range now.Members {
		m := &now.Members[i]
		lag := "-"
		if m.Lag != nil {
			lag = strconv.FormatUint(*m.Lag, 10)
		}
		fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", m.ID, m.roleNow(), now.state(m), lag, orDash(m.Peer),
			orDash(m.Client), orDash(m.HTTP), orDash(m.Key), orDash(m.Version))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	text := fmt.Sprintf("term %d; %s: the ensemble tolerates %s", now.Term, count(now.Voters, "voter"),
		count(now.FailuresTolerated, "failure"))
	switch {
	case now.Leader == noServer:
		text = fmt.Sprintf("term %d; NO MAJORITY: no server leads; %d of %s must be up, and reach each other",
			now.Term, now.Voters/2+1, count(now.Voters, "voter"))
	case now.FailuresToleratedNow == nil:
		text += "; " + now.Incomplete
	case len(now.missing()) == 0:
		text += "; all voters are connected"
	default:
		text += fmt.Sprintf("; not connected: %s, so it tolerates %d more", servers(now.missing()),
			*now.FailuresToleratedNow)
	}
	for _, m := range now.Members {
		text += m.Plan.text(m.ID)
	}
	_, err := fmt.Fprintln(out, text)
	return err
}

// missing are the voters that are not connected to the leader.
func (c *clusterJSON) missing() (ids []int) {
	for i := range c.Members {
		if m := &c.Members[i]; m.votes() && m.Connected != nil && !*m.Connected {
			ids = append(ids, m.ID)
		}
	}
	return ids
}

// roleNow is the role of a member, of which nobody may know now whether it follows a leader.
func (m *memberJSON) roleNow() string {
	if m.Role == roleFollower && (m.Connected == nil || !*m.Connected) {
		return "voter"
	}
	return m.Role
}

// state is how a member is: as its leader says, or as the server itself has answered.
func (c *clusterJSON) state(m *memberJSON) string {
	switch {
	case m.ID == c.Server.ID && c.Server.Draining:
		return "draining"
	case m.Connected == nil:
		return "-"
	case *m.Connected:
		return "connected"
	case m.LastContact == nil:
		return "never seen"
	}
	d, err := time.ParseDuration(*m.LastContact)
	if err != nil {
		return "down"
	}
	return "down " + d.Round(time.Second).String()
}

// servers is a list of servers: server 1, or servers 1 and 2.
func servers(ids []int) string {
	text := "server"
	if len(ids) > 1 {
		text += "s"
	}
	for i, id := range ids {
		switch {
		case i == 0:
			text += " "
		case i == len(ids)-1:
			text += " and "
		default:
			text += ", "
		}
		text += strconv.Itoa(id)
	}
	return text
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
