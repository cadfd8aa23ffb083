package cli

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/zk-lite/zk-lite/api/body"
	"github.com/zk-lite/zk-lite/cmd/zk-lite/cli/httpapi"
)

func revisionsCommand(g *globals) *cobra.Command {
	var limit int
	var at string
	var purge, recursive bool
	c := &cobra.Command{
		Use:   "revisions PATH",
		Short: "Show the values that a znode had, and who wrote them",
		Long: `Show the values that a znode had, the newest first, with the zxid and the author of each,
as far back as the server knows its changes (limits.changesBytes). A value that may not
be read now, or could not be then, is left out.

With --at, write the value that the znode had after that transaction. With --purge, have
all servers forget the values that it had, such as a secret that was leaked: set another
value first, since the present one stays. The logs on disk, older snapshots and backups
keep them until they are removed.`,
		Example: `  zk-lite revisions /app/config
  zk-lite revisions --at 0x100000002 /app/config
  zk-lite revisions --purge /app/password`,
		Args: argCount(1, 1, 1),
	}
	f := c.Flags()
	f.IntVarP(&limit, "limit", "n", 10, "show at most so many, up to 1000")
	f.StringVar(&at, "at", "", "write the value after the transaction with this `zxid`")
	f.BoolVar(&purge, "purge", false, "have all servers forget the former values")
	f.BoolVarP(&recursive, "recursive", "R", false, "with --purge: those of all znodes below it, too")
	return g.operation(c, defaultTimeout, func(c *cobra.Command, args []string, api *httpapi.Client) error {
		switch {
		case recursive && !purge:
			return usagef("--recursive: it goes with --purge only")
		case purge && at != "":
			return usagef("--at, --purge: want one of them")
		case purge:
			query := url.Values{"recursive": {strconv.FormatBool(recursive)}}
			r := ask(http.MethodDelete, "/v1/revisions", args[0], query)
			r.Repeatable = true
			return api.JSON(c.Context(), r, nil)
		case at != "":
			return printAt(c.Context(), g.output, c.OutOrStdout(), api, args[0], at)
		}
		var v body.Revisions
		query := url.Values{"revisions": {""}, "limit": {strconv.Itoa(limit)}}
		if err := api.JSON(c.Context(), ask(http.MethodGet, "/v1/znodes", args[0], query), &v); err != nil {
			return err
		}
		return printRevisions(g.output, c.OutOrStdout(), &v)
	})
}

// ask makes a request about a znode.
func ask(method, resource, path string, query url.Values) *httpapi.Request {
	target := (&url.URL{Path: resource + path}).EscapedPath() + "?" + query.Encode()
	return &httpapi.Request{Method: method, Target: target, Repeatable: method == http.MethodGet}
}

// zxidOf reads the zxid of a flag, and writes it as the API has it.
func zxidOf(flag, text string) (string, error) {
	n, err := strconv.ParseInt(text, 0, 64)
	if err != nil || n < 0 {
		return "", usagef("%s %q: want a zxid, such as 0x100000002", flag, text)
	}
	return hexadecimal(n).String(), nil
}

func printAt(ctx context.Context, as output, out io.Writer, api *httpapi.Client, path, at string) error {
	zxid, err := zxidOf("--at", at)
	if err != nil {
		return err
	}
	var v body.ZnodeAt
	if err := api.JSON(ctx, ask(http.MethodGet, "/v1/znodes", path, url.Values{"at": {zxid}}), &v); err != nil {
		return err
	}
	if as.json() {
		return writeJSON(out, v)
	}
	data, err := valueOf(&v.Revision)
	if err == nil {
		_, err = fmt.Fprintf(out, "%s\n", data)
	}
	return err
}

func valueOf(r *body.Revision) ([]byte, error) {
	switch {
	case r.Data == nil:
		return nil, nil
	case r.Encoding == "base64":
		return base64.StdEncoding.DecodeString(*r.Data)
	}
	return []byte(*r.Data), nil
}

// printRevisions prints a line for each, and last since when they are known.
func printRevisions(as output, out io.Writer, v *body.Revisions) error {
	if as.json() {
		return writeJSON(out, v)
	}
	for i := range v.Revisions {
		r := &v.Revisions[i]
		text := fmt.Sprintf("%s %s %s", r.Zxid, r.Time, r.Event)
		if r.Version != nil && r.Event != "deleted" {
			text += fmt.Sprintf(" version %d", *r.Version)
		}
		var authors []string
		for _, id := range r.Author {
			authors = append(authors, id.Scheme+":"+id.ID)
		}
		if len(authors) > 0 {
			text += " by " + strings.Join(authors, ", ")
		}
		if data, err := valueOf(r); err != nil {
			return err
		} else if r.Purged {
			text += " (purged)"
		} else {
			text += fmt.Sprintf(" %q", data)
		}
		fmt.Fprintln(out, text)
	}
	last := "there is nothing else since " + v.Since
	if v.Next != "" {
		last = "there are more; -n shows them"
	}
	_, err := fmt.Fprintln(out, last)
	return err
}

func revertCommand(g *globals) *cobra.Command {
	var to, seen string
	var recursive, dryRun bool
	c := &cobra.Command{
		Use:   "revert PATH --to ZXID",
		Short: "Give a znode, or a subtree, the values again that it had",
		Long: `Give a znode the value again that it had after the transaction with the zxid of --to, in
one transaction, which fails with code 4 if the znode has changed meanwhile.
` + "`zk-lite revisions`" + ` and ` + "`zk-lite watch --values`" + ` show zxids.

With --recursive, also all below it: what was deleted since is created again, with the ACL
that it had, and what was created since is deleted. Ephemeral znodes are left alone and
named, as are znodes with a time to live that are gone. ACLs of znodes that exist stay.

--dry-run only says what would be done, and its zxid; --seen with that zxid makes sure
that a later command does the same or nothing.`,
		Example: `  zk-lite revert /app/config --to 0x100000002
  zk-lite revert --recursive --dry-run /app --to 0x100000002`,
		Args: argCount(1, 1, 1),
	}
	f := c.Flags()
	f.StringVar(&to, "to", "", "the `zxid` of the transaction to go back to")
	f.StringVar(&seen, "seen", "", "do nothing if anything has changed after this `zxid`")
	f.BoolVarP(&recursive, "recursive", "R", false, "all below it, too")
	f.BoolVar(&dryRun, "dry-run", false, "only say what would be done")
	return g.operation(c, defaultTimeout, func(c *cobra.Command, args []string, api *httpapi.Client) error {
		if to == "" {
			return usagef("--to: missing; `zk-lite revisions %s` shows zxids", args[0])
		}
		query := url.Values{"recursive": {strconv.FormatBool(recursive)}, "plan": {strconv.FormatBool(dryRun)}}
		for name, text := range map[string]string{"to": to, "seen": seen} {
			if text == "" {
				continue
			}
			zxid, err := zxidOf("--"+name, text)
			if err != nil {
				return err
			}
			query.Set(name, zxid)
		}
		var v body.Revert
		if err := api.JSON(c.Context(), ask(http.MethodPost, "/v1/revisions", args[0], query), &v); err != nil {
			return err
		}
		return printRevert(g.output, c.OutOrStdout(), &v)
	})
}

func printRevert(as output, out io.Writer, v *body.Revert) error {
	if as.json() {
		return writeJSON(out, v)
	}
	for _, x := range v.Changes {
		fmt.Fprintln(out, x.Action, x.Path)
	}
	for _, x := range v.Left {
		fmt.Fprintf(out, "leave %s: %s\n", x.Path, x.Reason)
	}
	text := count(len(v.Changes), "change")
	switch {
	case v.Plan:
		text = "nothing was done; there would be " + text
	case len(v.Changes) == 0:
		text = "nothing to do"
	}
	_, err := fmt.Fprintf(out, "%s (zxid %s)\n", text, v.Zxid)
	return err
}
