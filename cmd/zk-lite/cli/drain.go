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
		Long: `Make a server ready to be stopped: it takes no new clients, hands over leadership and
sends its clients to the others, with their sessions. Refused, with nothing done, if
the ensemble could not do without it. --undo lets it take clients again.

It is the server at --http; if that has several URLs, ID says which of them it is.`,
		Example: `  zk-lite drain --http http://zk1:8080
  zk-lite drain 1 --http http://zk1:8080,http://zk2:8080,http://zk3:8080
  zk-lite drain 1 --undo`,
		Args: argCount(0, 1, 0),
	}
	c.Flags().BoolVar(&undo, "undo", false, "take clients again")
	return a.operation(c, defaultTimeout, func(c *cobra.Command, args []string, api *httpapi.Client) error {
		if len(args) == 0 && len(api.URLs) > 1 {
			return usagef("there are %d URLs in --http: say which server, as in `zk-lite %s 1`",
				len(api.URLs), c.Name())
		}
		id := 0
		if len(args) == 1 {
			var err error
			if id, err = parseServerID("ID", args[0]); err != nil {
				return err
			}
		}
		id, one, err := theServer(c.Context(), api, id)
		if err != nil {
			return err
		}
		return a.drain(c, one, id, undo)
	})
}

// theServer finds a server among those of the URLs; 0 is the only one.
func theServer(ctx context.Context, api *httpapi.Client, id int) (int, *httpapi.Client, error) {
	var found *httpapi.Client
	var seen clusterJSON
	var failed error
	api.Each(func(one *httpapi.Client) bool {
		now, err := cluster(ctx, one)
		if err != nil {
			failed = err
			return ctx.Err() != nil
		}
		if seen = now; id == 0 || now.Server.ID == id {
			id, found = now.Server.ID, one
		}
		return found != nil
	})
	m := seen.member(id)
	switch {
	case found != nil:
		return id, found, nil
	case len(seen.Members) == 0:
		return 0, nil, failed
	case m == nil:
		return 0, nil, &noMemberError{id, seen.numbers()}
	}
	hint := ""
	if m.HTTP != "" {
		hint = fmt.Sprintf("; it has published %s: --http http://%s", m.HTTP, m.HTTP)
	}
	return 0, nil, &noServerError{fmt.Sprintf("server %d answers at none of the URLs of --http%s", id, hint)}
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
		fmt.Fprintf(c.OutOrStdout(), "server %d takes clients again\n", id)
	default:
		fmt.Fprintf(c.OutOrStdout(), "server %d is drained: it can be stopped; `zk-lite drain %d --undo` "+
			"lets it take clients again\n", id, id)
	}
	return nil
}
