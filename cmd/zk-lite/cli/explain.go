package cli

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/zk-lite/zk-lite/api/body"
	"github.com/zk-lite/zk-lite/cmd/zk-lite/cli/httpapi"
)

// aclCommand has what is about ACLs besides reading and setting one.
func aclCommand(g *globals) *cobra.Command {
	c := &cobra.Command{
		Use:   "acl",
		Short: "Explain who may do what with a znode",
		Long:  "Explain who may do what with a znode. `getacl` and `setacl` read and set its ACL.",
		Args:  noSuchCommand,
		RunE:  func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(explainCommand(g))
	return c
}

func explainCommand(g *globals) *cobra.Command {
	c := &cobra.Command{
		Use:   "explain PATH IDENTITY...",
		Short: "Show what a client may do with a znode, and why",
		Long: `Show what a client with these identities may do with a znode, and which entry of an ACL
decides. An identity is scheme:id; a digest is digest:USER, whose hash may follow. A client
has all its identities at once: name its address, too (ip:10.0.0.1), if an ACL has addresses.

The znode's own ACL permits to read, write and administer it, and to create and delete its
children. Whether the znode itself may be deleted, or created if it does not exist, is in the
ACL of its parent. Super users and skipACL are taken into account; quotas and read-only
servers are not. You need the right to read the ACLs.`,
		Example: `  zk-lite acl explain /app digest:alice ip:10.0.0.1
  zk-lite acl explain /app world:anyone -o json | jq -r 'select(.may) | .operation'`,
		Args: argCount(2, -1, 1),
	}
	return g.operation(c, defaultTimeout, func(c *cobra.Command, args []string, api *httpapi.Client) error {
		u := url.URL{Path: "/v1/acl" + args[0], RawQuery: url.Values{"identity": args[1:]}.Encode()}
		var answer body.Rights
		r := &httpapi.Request{Method: http.MethodGet, Target: u.String(), Repeatable: true}
		if err := api.JSON(c.Context(), r, &answer); err != nil {
			return err
		}
		return showNewest(g.output, c.OutOrStdout(), answer.Rights, len(answer.Rights), printRights)
	})
}

func printRights(out io.Writer, rights []body.Right) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "OPERATION\tMAY\tNEEDS\tACL OF\tENTRY\tWHY")
	for _, r := range rights {
		may := "?"
		if r.May != nil {
			may = map[bool]string{true: "yes", false: "no"}[*r.May]
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", r.Operation, may, r.Needs, r.Of, orDash(r.Entry), r.Why)
	}
	return w.Flush()
}
