package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/zk-lite/zk-lite/api/body"
	"github.com/zk-lite/zk-lite/cmd/zk-lite/cli/httpapi"
)

// clusterPath is the resource of the ensemble.
const clusterPath = "/v1/cluster"

// noServer is no server's id: the servers answer it when they know no leader.
const noServer = -1

// The roles of members.
const (
	roleLeader   = "leader"
	roleFollower = "follower"
	roleJoining  = "joining"
)

// votes reports whether a member has a vote.
func votes(m *body.Member) bool { return m.Role == roleLeader || m.Role == roleFollower }

// ensemble is the ensemble as one of its servers sees it.
type ensemble struct{ body.Cluster }

// member finds a member; nil if it is none.
func (e *ensemble) member(id int) *body.Member {
	i := slices.IndexFunc(e.Members, func(m body.Member) bool { return m.ID == id })
	if i < 0 {
		return nil
	}
	return &e.Members[i]
}

// ids are the ids of the members.
func (e *ensemble) ids() (list []int) {
	for _, m := range e.Members {
		list = append(list, m.ID)
	}
	return list
}

// cluster reads the state of the ensemble: of a server that has asked its leader, if there is one.
func cluster(ctx context.Context, api *httpapi.Client) (e ensemble, err error) {
	ask := func(one *httpapi.Client) (e ensemble, err error) {
		err = one.JSON(ctx, &httpapi.Request{Method: http.MethodGet, Target: clusterPath, Repeatable: true}, &e)
		return e, err
	}
	if e, err = ask(api); err != nil || e.Incomplete == "" {
		return e, err
	}
	api.Each(func(one *httpapi.Client) bool {
		other, err := ask(one)
		if err != nil || other.Incomplete != "" {
			return false
		}
		e = other
		return true
	})
	return e, nil
}

// parseServerID reads the id of a server. The servers know how large it may be.
func parseServerID(text string) (int, error) {
	id, err := strconv.Atoi(text)
	if err != nil || id < 0 {
		return 0, usagef("%q is not a server id: want a number, as in server.N", text)
	}
	return id, nil
}

func memberListCommand(g *globals) *cobra.Command {
	var check bool
	c := &cobra.Command{
		Use:   "list",
		Short: "Show the servers of the ensemble, and how many failures it tolerates",
		Long: `Show the servers of the ensemble: the leader, followers (which vote), observers, and
joining servers, which get their vote when they have caught up; whether they are
connected to the leader, and how many entries they lag behind it. Servers that take no
part, or do not reach the leader, are passed over. The exit code is 1 if there is no
leader; with --check also if a voter is not connected.`,
		Example: `  zk-lite member list
  zk-lite member list --server zk1:2181 --auth digest:super:secret
  zk-lite member list -o json | jq -r '.members[] | select(.role == "leader") | .client'`,
		Args: argCount(0, 0, 0),
	}
	c.Flags().BoolVar(&check, "check", false, "exit with 1 if a voter is not connected")
	return g.operation(c, defaultTimeout, func(c *cobra.Command, _ []string, api *httpapi.Client) error {
		now, err := cluster(c.Context(), api)
		if err != nil {
			return err
		}
		if g.output.json() {
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

func printCluster(out io.Writer, now *ensemble) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "ID\tROLE\tSTATE\tLAG\tPEER\tCLIENT\tHTTP\tKEY\tVERSION")
	for i := range now.Members {
		m := &now.Members[i]
		lag := "-"
		if m.Known != nil && m.Lag != nil {
			lag = strconv.FormatUint(*m.Lag, 10)
		}
		fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", m.ID, roleNow(m), now.state(m), lag, orDash(m.Peer),
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
	if now.Reconfiguring != "" {
		text += "\na reconfiguration is in progress: " + now.Reconfiguring
	}
	for _, m := range now.Members {
		if m.Known != nil && m.Plan != nil {
			text += "\n" + planText(m.ID, m.Plan)
		}
	}
	_, err := fmt.Fprintln(out, text)
	return err
}

// missing are the voters that are not connected to the leader.
func (e *ensemble) missing() (ids []int) {
	for i := range e.Members {
		if m := &e.Members[i]; votes(m) && m.Known != nil && !m.Connected {
			ids = append(ids, m.ID)
		}
	}
	return ids
}

// roleNow is the role of a member; voter if it is not known whether it follows a leader.
func roleNow(m *body.Member) string {
	if m.Role == roleFollower && (m.Known == nil || !m.Connected) {
		return "voter"
	}
	return m.Role
}

// state is how a member is: as its leader says, or as the server itself has answered.
func (e *ensemble) state(m *body.Member) string {
	switch {
	case m.ID == e.Server.ID && e.Server.Draining:
		return "draining"
	case m.Known == nil:
		return "-"
	case m.Connected:
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

// planText is what the leader will do with server id by itself.
func planText(id int, p *body.Plan) string {
	switch {
	case p.Action == "promote" && p.Waits == "":
		return fmt.Sprintf("server %d gets its vote in %s, if it stays connected", id, p.In)
	case p.Action == "promote":
		return fmt.Sprintf("server %d has no vote yet: %s", id, p.Waits)
	case p.Waits == "":
		return fmt.Sprintf("server %d is not connected, and is removed in %s unless it comes back", id, p.In)
	}
	return fmt.Sprintf("server %d is not connected, and is not removed: %s", id, p.Waits)
}
