package cli

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/spf13/cobra"

	"github.com/zk-lite/zk-lite/cmd/zk-lite/cli/httpapi"
)

func (a *app) drainCommand() *cobra.Command {
	var undo bool
	c := &cobra.Command{
		Use:   "drain [ID]",
		Short: "Make a server ready to be stopped",
		Long: `Make the server ID ready to be stopped: it accepts no new clients, hands over
leadership and sends its clients to the other servers, with their sessions. Without
the server the ensemble must still have a majority; otherwise the command changes
nothing and fails. --undo makes the server accept clients again.

One of the URLs of --http must be that server's. If there is only one, ID may be left out.`,
		Example: `  zk-lite drain 1 --http http://zk1:8080,http://zk2:8080,http://zk3:8080
  zk-lite drain 1 --undo`,
		Args: argCount(0, 1, 0),
	}
	c.Flags().BoolVar(&undo, "undo", false, "accept clients again")
	return a.operation(c, defaultTimeout, func(c *cobra.Command, args []string, api *httpapi.Client) error {
		if len(args) == 0 {
			if len(api.URLs) > 1 {
				return usagef("which server? Name its ID, or one URL in --http")
			}
			now, err := cluster(c.Context(), api)
			if err != nil {
				return err
			}
			return a.drain(c, api, now.Server.ID, undo)
		}
		id, err := parseServerID(args[0])
		if err != nil {
			return err
		}
		one, err := theServer(c.Context(), api, id)
		if err != nil {
			return err
		}
		return a.drain(c, one, id, undo)
	})
}

// theServer finds a server among those of the URLs.
func theServer(ctx context.Context, api *httpapi.Client, id int) (*httpapi.Client, error) {
	var found *httpapi.Client
	var seen clusterJSON
	var failed error
	api.Each(func(one *httpapi.Client) bool {
		now, err := cluster(ctx, one)
		if err != nil {
			failed = err
			return ctx.Err() != nil
		}
		if seen = now; now.Server.ID == id {
			found = one
		}
		return found != nil
	})
	m := seen.member(id)
	switch {
	case found != nil:
		return found, nil
	case len(seen.Members) == 0:
		return nil, failed
	case m == nil:
		return nil, &noMemberError{id, seen.ids()}
	}
	hint := ""
	if m.HTTP != "" {
		hint = fmt.Sprintf("; it has published %s: --http http://%s", m.HTTP, m.HTTP)
	}
	return nil, &noServerError{fmt.Sprintf("server %d answers at none of the URLs of --http%s", id, hint)}
}

func (a *app) drain(c *cobra.Command, one *httpapi.Client, id int, undo bool) error {
	r := &httpapi.Request{Method: http.MethodPost, Target: clusterPath + "/drain", Repeatable: true}
	if undo {
		r.Method = http.MethodDelete
	}
	err := one.JSON(c.Context(), r, nil)
	var p *httpapi.Problem
	switch {
	case errors.As(err, &p) && p.Status == http.StatusConflict:
		return &conflictError{fmt.Sprintf("server %d was not drained: %s", id, p.Detail)}
	case err != nil:
		return err
	case a.json():
		return writeJSON(c.OutOrStdout(), map[string]any{
			"server": id, "draining": !undo, "safe_to_stop": !undo,
		})
	case undo:
		fmt.Fprintf(c.OutOrStdout(), "server %d accepts clients again\n", id)
	default:
		fmt.Fprintf(c.OutOrStdout(), "server %d is drained and can be stopped; `zk-lite drain %d --undo` "+
			"makes it accept clients again\n", id, id)
	}
	return nil
}
