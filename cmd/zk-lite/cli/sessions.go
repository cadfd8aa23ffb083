package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/zk-lite/zk-lite/api/body"
	"github.com/zk-lite/zk-lite/cmd/zk-lite/cli/httpapi"
)

func sessionsCommand(g *globals) *cobra.Command {
	c := &cobra.Command{
		Use:   "sessions [SESSION]",
		Short: "Show the sessions and whose they are, or one with its watches and ephemerals",
		Long: `Show the sessions with the addresses and identities of their clients, and for how long
nothing has come from them; or one session, with what it watches and its ephemerals.

Addresses and identities of others are for administrators. A session over HTTP has no
connection, and so neither.`,
		Example: `  zk-lite sessions
  zk-lite sessions 0x1a20aac7f8f0001
  zk-lite sessions -n 100000 -o json | jq -r 'select(.address | startswith("10.0.0.7:")?) | .id'`,
		Args: argCount(0, 1, 0),
	}
	limit := c.Flags().IntP("limit", "n", 50, "show at most so many")
	return g.operation(c, defaultTimeout, func(c *cobra.Command, args []string, api *httpapi.Client) error {
		api.LocalAdministrator(c.Context())
		if len(args) == 1 {
			return showSession(g, c, api, args[0])
		}
		all, total, err := listSessions(c.Context(), api, *limit)
		table := func(out io.Writer, all []body.SessionRow) error { return printSessions(out, all, total) }
		return cmp.Or(showNewest(g.output, c.OutOrStdout(), all, *limit, table), err)
	})
}

// listSessions returns the first sessions, at most limit, as all servers together know them, and how many there are.
// The error is that of a server that did not answer.
func listSessions(ctx context.Context, api *httpapi.Client, limit int) (all []body.SessionRow, total int, err error) {
	found := map[string]body.SessionRow{}
	after := ""
	for first := true; first || after != "" && len(found) < limit && err == nil; first = false {
		var pages []body.Sessions
		target := fmt.Sprintf("/v1/sessions?limit=%d%s", min(max(limit, 1), 1000), after)
		pages, err = askEach[body.Sessions](ctx, api, target)
		after = ""
		next := uint64(0)
		for _, p := range pages {
			mergeSessions(found, p.Sessions)
			total = max(total, p.Total, len(found))
			// A server that has local sessions has come less far: the others repeat some.
			if id := sessionNumber(p.Next); id != 0 && (next == 0 || id < next) {
				next, after = id, "&after="+p.Next
			}
		}
	}
	for _, row := range found {
		all = append(all, row)
	}
	slices.SortFunc(all, func(a, b body.SessionRow) int {
		return cmp.Compare(sessionNumber(a.ID), sessionNumber(b.ID))
	})
	return all, total, err
}

// mergeSessions adds rows of one server; the one with the client's connection knows more.
func mergeSessions(found map[string]body.SessionRow, rows []body.SessionRow) {
	for _, row := range rows {
		if have, ok := found[row.ID]; !ok || have.LastHeard == nil && (row.LastHeard != nil || row.Address != "") {
			found[row.ID] = row
		}
	}
}

// sessionNumber is the number of a session's id; 0: it is none.
func sessionNumber(id string) uint64 {
	digits, ok := strings.CutPrefix(id, "0x")
	n, err := strconv.ParseUint(digits, 16, 64)
	if !ok || err != nil {
		return 0
	}
	return n
}

// maxAsked is how many sessions a server takes in one request.
const maxAsked = 100

// sessionsByID asks all servers for these sessions.
func sessionsByID(ctx context.Context, api *httpapi.Client, ids []string) (map[string]body.SessionRow, error) {
	found := map[string]body.SessionRow{}
	var silent error
	for some := range slices.Chunk(slices.Compact(slices.Sorted(slices.Values(ids))), maxAsked) {
		pages, err := askEach[body.Sessions](ctx, api, "/v1/sessions?id="+strings.Join(some, "&id="))
		silent = cmp.Or(silent, err)
		for _, p := range pages {
			mergeSessions(found, p.Sessions)
		}
	}
	return found, silent
}

func printSessions(out io.Writer, all []body.SessionRow, total int) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "SESSION\tSERVER\tADDRESS\tIDENTITY\tTIMEOUT\tEPHEMERALS\tHEARD")
	for i := range all {
		x := &all[i]
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%d\t%s\n", x.ID, serverText(x.Session), orDash(x.Address),
			identityText(x.Identities), x.Timeout, x.Ephemerals, agoText(x.LastHeard))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	text := count(total, "session")
	if len(all) < total {
		text = fmt.Sprintf("the first %d of %s; -n shows more", len(all), text)
	}
	_, err := fmt.Fprintln(out, text)
	return err
}

// serverText is the server that a client was last at.
func serverText(x body.Session) string {
	text := strconv.Itoa(x.Server)
	if x.Server < 0 {
		text = "-"
	}
	if x.Local {
		text += " (local)"
	}
	return text
}

// identityText is what a client has proved, without its address.
func identityText(ids []body.Identity) string {
	var list []string
	for _, id := range ids {
		if id.Scheme != "ip" {
			list = append(list, id.Scheme+":"+id.ID)
		}
	}
	return orDash(strings.Join(list, " "))
}

// agoText is how long ago a moment was, by the clock of this machine; nil: it is not known.
func agoText(t *time.Time) string {
	if t == nil {
		return "-"
	}
	return max(time.Since(*t), 0).Round(time.Second).String()
}

// showSession shows one session, as the server knows it that its client is connected to.
func showSession(g *globals, c *cobra.Command, api *httpapi.Client, id string) error {
	if sessionNumber(id) == 0 {
		return usagef("%q is not the id of a session, such as 0x1a20aac7f8f0001", id)
	}
	known, silent := sessionsByID(c.Context(), api, []string{id})
	target := "/v1/sessions/" + id
	for _, x := range known {
		if x.LastHeard != nil || x.Local {
			target += fmt.Sprintf("?server=%d", x.Server)
		}
	}
	var d body.SessionDetail
	r := &httpapi.Request{Method: http.MethodGet, Target: target, Repeatable: true}
	if err := api.JSON(c.Context(), r, &d); err != nil {
		return err
	}
	if g.output.json() {
		return cmp.Or(writeJSON(c.OutOrStdout(), &d), silent)
	}
	return cmp.Or(printSession(c.OutOrStdout(), &d), silent)
}

func printSession(out io.Writer, d *body.SessionDetail) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "session\t%s\nserver\t%s\ntimeout\t%s\n", d.ID, serverText(d.Session), d.Timeout)
	if x := d.Connection; x != nil {
		fmt.Fprintf(w, "address\t%s\nidentity\t%s\n", orDash(x.Address), identityText(x.Identities))
		fmt.Fprintf(w, "connected\tfor %s\nheard\t%s ago\noutstanding\t%d\n", agoText(&x.Established),
			agoText(x.LastHeard), x.Outstanding)
		for _, watch := range x.Watches {
			fmt.Fprintf(w, "watches\t%s\t%s\n", watch.Path, strings.Join(watch.Kinds, ","))
		}
	}
	for _, path := range d.Paths {
		fmt.Fprintf(w, "ephemeral\t%s\n", path)
	}
	if d.More {
		fmt.Fprintln(w, "more\tthan are listed")
	}
	return w.Flush()
}

// watcher is a session that watches a path, with its client.
type watcher struct {
	body.Watch
	Server int `json:"server"`
	body.Who
}

func watchersCommand(g *globals) *cobra.Command {
	c := &cobra.Command{
		Use:   "watchers PATH",
		Short: "Show who watches a znode",
		Long: `Show the sessions that watch a path, there or not, with the addresses and identities of their
clients. Watches of streams over HTTP have no session, and are left out. At most 1,000 of
each server are shown.`,
		Example: "  zk-lite watchers /app/config",
		Args:    argCount(1, 1, 0),
	}
	return g.operation(c, defaultTimeout, func(c *cobra.Command, args []string, api *httpapi.Client) error {
		if err := checkPath(args[0]); err != nil {
			return err
		}
		api.LocalAdministrator(c.Context())
		all, more, err := watchersOf(c.Context(), api, args[0])
		if more {
			fmt.Fprintln(c.ErrOrStderr(), "there are more than are shown")
		}
		return cmp.Or(showNewest(g.output, c.OutOrStdout(), all, len(all), printWatchers), err)
	})
}

func watchersOf(ctx context.Context, api *httpapi.Client, path string) (all []watcher, more bool, err error) {
	target := (&url.URL{Path: "/v1/watchers" + path, ForceQuery: true}).String()
	pages, err := askEach[body.Watchers](ctx, api, target)
	var ids []string
	for _, p := range pages {
		more = more || p.More
		for _, x := range p.Watchers {
			if sessionNumber(x.Session) != 0 {
				all, ids = append(all, watcher{Watch: x}), append(ids, x.Session)
			}
		}
	}
	known, silent := sessionsByID(ctx, api, ids)
	for i := range all {
		row := known[all[i].Session]
		all[i].Server, all[i].Who = row.Server, row.Who
	}
	slices.SortFunc(all, func(a, b watcher) int {
		return cmp.Compare(sessionNumber(a.Session), sessionNumber(b.Session))
	})
	return all, more, cmp.Or(err, silent)
}

func printWatchers(out io.Writer, all []watcher) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "SESSION\tSERVER\tADDRESS\tIDENTITY\tKINDS")
	for _, x := range all {
		fmt.Fprintf(w, "%s\t%d\t%s\t%s\t%s\n", x.Session, x.Server, orDash(x.Address), identityText(x.Identities),
			strings.Join(x.Kinds, ","))
	}
	return w.Flush()
}
