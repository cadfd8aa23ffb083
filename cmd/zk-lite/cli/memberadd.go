package cli

import (
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/spf13/cobra"

	"github.com/zk-lite/zk-lite/cmd/zk-lite/cli/httpapi"
)

func (a *app) memberAddCommand() *cobra.Command {
	var observer bool
	c := &cobra.Command{
		Use:   "add ID ADDRESS",
		Short: "Take a server into the running ensemble",
		Long: `Take a server into the running ensemble, before it is started or after. ADDRESS is
what follows server.ID= in a configuration, without the role: host:peerPort, or
host:peerPort:electionPort, perhaps with ;clientPort or ;clientHost:clientPort
behind it (quote the semicolon).

The server gets its vote by itself as soon as it has caught up; until then nobody
waits for it. ` + "`zk-lite member promote ID`" + ` waits for that. To add a member once more does
no harm.`,
		Example: `  zk-lite member add 4 "zk4.example:2888:3888;2181"
  zk-lite member add 5 zk5.example:2888 --observer`,
		Args: argCount(2, 2, 0),
	}
	c.Flags().BoolVar(&observer, "observer", false, "it is never to vote")
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
		switch {
		case m.Role == roleJoining:
			fmt.Fprintf(c.OutOrStdout(), "server %d joins, and votes when it has caught up: start it, then "+
				"`zk-lite member promote %d` waits for that\n", id, id)
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
