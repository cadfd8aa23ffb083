package cli

import (
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/spf13/cobra"

	"github.com/zk-lite/zk-lite/cmd/zk-lite/cli/httpapi"
)

func (a *app) memberRemoveCommand() *cobra.Command {
	var force bool
	var from int
	c := &cobra.Command{
		Use:   "remove ID | --from ID",
		Short: "Take a server out of the ensemble",
		Long: `Take a server out of the ensemble; a leader hands over first. Refused if the voters
that are connected would be no majority of those left, unless --force is given. The
server keeps its data and cannot come back by itself, unless it has a join secret: stop
it afterwards. Drain it before, so that its clients go elsewhere at once.

--from removes all members with this number or a higher one, the highest first; it is
no error if there are none.`,
		Example: `  zk-lite drain 1 && zk-lite member remove 1
  zk-lite member remove 3 --force   # it is lost for good
  zk-lite member remove --from 3    # before pods 3 and 4 go`,
		Args: argCount(0, 1, 0),
	}
	c.Flags().BoolVar(&force, "force", false, "also if too few of those left are connected")
	c.Flags().IntVar(&from, "from", 0, "instead of an ID: all members from this `ID` on")
	return a.operation(c, defaultTimeout, func(c *cobra.Command, args []string, api *httpapi.Client) error {
		if (len(args) == 1) == c.Flags().Changed("from") {
			return usagef("want either an ID or --from; usage: %s", c.UseLine())
		}
		if len(args) == 1 {
			id, err := parseServerID(args[0])
			if err != nil {
				return err
			}
			return a.removeMember(c, api, id, force)
		}
		if from < 1 {
			return usagef("--from: %d would remove all; want 1 or more", from)
		}
		now, err := cluster(c.Context(), api)
		for _, m := range slices.Backward(now.Members) {
			if err == nil && m.ID >= from {
				err = a.removeMember(c, api, m.ID, force)
			}
		}
		return err
	})
}

// removeMember takes one server out of the ensemble.
func (a *app) removeMember(c *cobra.Command, api *httpapi.Client, id int, force bool) error {
	target := fmt.Sprintf("%s/members/%d", clusterPath, id)
	if force {
		target += "?force=true"
	}
	err := api.JSON(c.Context(),
		&httpapi.Request{Method: http.MethodDelete, Target: target, Repeatable: true}, nil)
	var p *httpapi.Problem
	if errors.As(err, &p) && p.Status == http.StatusNotFound {
		if errors.Is(err, httpapi.ErrUnknown) {
			err = nil // an attempt before has done it
		} else if now, lookErr := cluster(c.Context(), api); lookErr == nil {
			err = &noMemberError{id, now.ids()}
		}
	}
	switch {
	case errors.As(err, &p) && p.Status == http.StatusConflict && !force:
		return &conflictError{p.Detail + "; --force removes it nevertheless"}
	case err != nil:
		return err
	case a.json():
		return writeJSON(c.OutOrStdout(), map[string]any{"id": id, "removed": true})
	}
	fmt.Fprintf(c.OutOrStdout(), "server %d is no member any more: it can be stopped\n", id)
	return nil
}
