package cli

import (
	"fmt"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"github.com/zk-lite/zk-lite/cmd/zk-lite/cli/httpapi"
)

// tokenJSON is a one-time token, as the servers write it.
type tokenJSON struct {
	Token string    `json:"token"`
	Until time.Time `json:"token_until"`
}

func (a *app) memberTokenCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "token ID",
		Short: "Make a one-time token with which a member joins with a new key",
		Long: `Make a one-time token with which the server ID joins the ensemble with a key that the others
do not know: it is new, its disk was replaced, or its key is to be changed (stop it and remove
peer.key from its dataDir before). Write the token to a file that only its user can read, name
the file in its setting peer.joinSecretFile, and start it. An earlier token becomes worthless.`,
		Example: `  (umask 077; zk-lite member token 4 > token)`,
		Args:    argCount(1, 1, 0),
	}
	return a.operation(c, defaultTimeout, func(c *cobra.Command, args []string, api *httpapi.Client) error {
		id, err := parseServerID(args[0])
		if err != nil {
			return err
		}
		var t tokenJSON
		err = api.JSON(c.Context(), &httpapi.Request{
			Method: http.MethodPost, Target: fmt.Sprintf("%s/members/%d/token", clusterPath, id), Repeatable: true,
		}, &t)
		if err != nil {
			return err
		}
		if a.json() {
			return writeJSON(c.OutOrStdout(), &t)
		}
		fmt.Fprintln(c.OutOrStdout(), t.Token)
		fmt.Fprintf(c.ErrOrStderr(), "good once, for server %d, until %s\n", id, t.Until.Local().Format(time.DateTime))
		return nil
	})
}
