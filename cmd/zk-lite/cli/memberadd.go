package cli

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"github.com/zk-lite/zk-lite/cmd/zk-lite/cli/httpapi"
)

func (a *app) memberAddCommand() *cobra.Command {
	var observer bool
	c := &cobra.Command{
		Use:   "add ID ADDRESS",
		Short: "Add a server to the running ensemble",
		Long: `Add a server to the running ensemble, before or after it is started. ADDRESS is the
value of server.ID in a configuration, without the role: host:peerPort or
host:peerPort:electionPort, optionally followed by ;clientPort or
;clientHost:clientPort (quote the semicolon).

The server gets its vote when it has caught up; until then the ensemble does not wait
for it. ` + "`zk-lite member promote ID`" + ` waits for the vote. To add a member again is harmless.`,
		Example: `  zk-lite member add 4 "zk4.example:2888:3888;2181"
  zk-lite member add 5 zk5.example:2888 --observer`,
		Args: argCount(2, 2, 0),
	}
	c.Flags().BoolVar(&observer, "observer", false, "the server gets no vote")
	return a.operation(c, defaultTimeout, func(c *cobra.Command, args []string, api *httpapi.Client) error {
		id, err := parseServerID(args[0])
		if err != nil {
			return err
		}
		var m memberJSON
		if err := api.JSON(c.Context(), addRequest(id, args[1], !observer), &m); err != nil {
			return err
		}
		if a.json() {
			return writeJSON(c.OutOrStdout(), &m)
		}
		if m.Token != "" {
			fmt.Fprintf(c.OutOrStdout(), "It joins with this one-time token, which is good until %s. Write it to "+
				"a file that only its user can read, and name that in its setting peer.joinSecretFile:\n%s\n",
				m.Until.Local().Format(time.DateTime), m.Token)
		}
		switch {
		case m.Role == roleJoining:
			fmt.Fprintf(c.OutOrStdout(), "server %d joins and gets its vote when it has caught up: start it; "+
				"`zk-lite member promote %d` waits for its vote\n", id, id)
		default:
			fmt.Fprintf(c.OutOrStdout(), "server %d is a member: %s\n", id, m.Role)
		}
		return nil
	})
}

// addRequest adds a server, or changes whether it is to vote.
func addRequest(id int, address string, vote bool) *httpapi.Request {
	role := "observer"
	if vote {
		role = "voter"
	}
	body, err := json.Marshal(map[string]any{"id": id, "address": address, "role": role})
	if err != nil {
		panic(fmt.Sprintf("cli: invariant broken: a string is no JSON: %v", err))
	}
	return &httpapi.Request{
		Method: http.MethodPost, Target: clusterPath + "/members", Body: body, Repeatable: true,
	}
}
