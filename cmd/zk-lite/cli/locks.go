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

	"github.com/spf13/cobra"

	"github.com/zk-lite/zk-lite/api/body"
	"github.com/zk-lite/zk-lite/cmd/zk-lite/cli/httpapi"
)

// lockKinds are those of places in which someone may wait.
const lockKinds = "lock,read-write lock,semaphore,election"

// place is a body.Place with the clients of those who are there.
type place struct {
	body.Place
	First []participant `json:"first"`
}

type participant struct {
	body.Participant
	sessionClient
}

// sessionClient is the client of a session.
type sessionClient struct {
	Server *int `json:"server,omitempty"` // that it was last at; nil: not known
	body.Who
}

// deadlock is a circle of sessions: each waits for the next one, the last for the first.
type deadlock struct {
	Sessions []deadlocked `json:"deadlock"`
}

type deadlocked struct {
	Session string `json:"session"`
	sessionClient
}

func locksCommand(g *globals) *cobra.Command {
	c := &cobra.Command{
		Use:   "locks [PATH]",
		Short: "Show who holds the locks at and below PATH, and who waits for whom",
		Long: `Show the locks, semaphores and elections at and below PATH (default /), those with the most
waiters first: who holds or leads, for how long, and who waits for whom. Deadlocks come
before all. They are known by the names that Curator, kazoo and zk-lite give their znodes;
at most 20 of each place are shown.

Data and sessions are shown of znodes that may be read; addresses and identities of others
to administrators. How many may hold a semaphore is not known; who waits for Curator's is
at the lock beside it. --kind also shows group and queue.`,
		Example: `  zk-lite locks
  zk-lite locks /app/printer
  zk-lite locks --contended -o json | jq -r 'select(.first) | .first[0].address'`,
		Args: argCount(0, 1, 0),
	}
	g.completePaths(c, 1)
	limit := c.Flags().IntP("limit", "n", 50, "show at most so many places, up to 1000")
	kind := c.Flags().String("kind", lockKinds, "show these `kinds`; group and queue are others")
	contended := c.Flags().Bool("contended", false, "show only places where someone waits")
	return g.operation(c, defaultTimeout, func(c *cobra.Command, args []string, api *httpapi.Client) error {
		below := append(args, "/")[0]
		if err := checkPath(below); err != nil {
			return err
		}
		if *limit < 1 || *limit > 1000 {
			return usagef("-n %d: want a number from 1 to 1000", *limit)
		}
		query := url.Values{
			"below": {below}, "kind": {*kind}, "limit": {strconv.Itoa(*limit)},
			"contended": {strconv.FormatBool(*contended)},
		}
		api.LocalAdministrator(c.Context())
		circles, places, more, err := locksOf(c.Context(), api, query)
		if more {
			fmt.Fprintln(c.ErrOrStderr(), "there may be more than are shown: -n, a PATH and --contended choose")
		}
		if !g.output.json() {
			printDeadlocks(c.OutOrStdout(), circles)
		} else if err := showNewest(g.output, c.OutOrStdout(), circles, len(circles), nil); err != nil {
			return err
		}
		return cmp.Or(showNewest(g.output, c.OutOrStdout(), places, len(places), printLocks), err)
	})
}

// locksOf asks a server for the places, and all for the clients. The error is that of a server that did not answer.
func locksOf(
	ctx context.Context, api *httpapi.Client, query url.Values,
) (circles []deadlock, places []place, more bool, err error) {
	var found body.Recipes
	r := &httpapi.Request{Method: http.MethodGet, Target: "/v1/recipes?" + query.Encode(), Repeatable: true}
	if err := api.JSON(ctx, r, &found); err != nil {
		return nil, nil, false, err
	}
	ids := slices.Concat(found.Deadlocks...)
	for _, p := range found.Places {
		for _, x := range p.First {
			if x.Session != "" {
				ids = append(ids, x.Session)
			}
		}
	}
	known, err := sessionsByID(ctx, api, ids)
	clientOf := func(session string) sessionClient {
		if row, ok := known[session]; ok {
			return sessionClient{&row.Server, row.Who}
		}
		return sessionClient{}
	}
	for _, p := range found.Places {
		shown := place{Place: p, First: []participant{}}
		for _, x := range p.First {
			shown.First = append(shown.First, participant{x, clientOf(x.Session)})
		}
		places = append(places, shown)
	}
	for _, circle := range found.Deadlocks {
		var d deadlock
		for _, id := range circle {
			d.Sessions = append(d.Sessions, deadlocked{id, clientOf(id)})
		}
		circles = append(circles, d)
	}
	return circles, places, found.More, err
}

func printDeadlocks(out io.Writer, circles []deadlock) {
	for _, d := range circles {
		text := "deadlock: "
		for _, x := range d.Sessions {
			text += x.Session
			if x.Address != "" {
				text += " (" + strings.TrimSuffix(x.Address+" "+identityText(x.Identities), " -") + ")"
			}
			text += " waits for "
		}
		fmt.Fprintln(out, text+d.Sessions[0].Session)
	}
}

func printLocks(out io.Writer, places []place) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "PATH\tKIND\tWAITING\tSTATE\tFOR\tDATA\tSESSION\tADDRESS\tIDENTITY\tWAITS FOR")
	for _, p := range places {
		for _, x := range p.First {
			state, data := x.State, "-"
			if x.Read {
				state += " (read)"
			}
			if x.Data != "" {
				data = fmt.Sprintf("%q", x.Data)
			}
			fmt.Fprintf(w, "%s\t%s\t%d\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", p.Path, p.Kind, p.Waiting, state,
				agoText(x.Since), data, orDash(x.Session), orDash(x.Address), identityText(x.Identities),
				waitsForText(x.WaitsFor))
		}
		if p.More {
			more := p.Participants - len(p.First)
			fmt.Fprintf(w, "%s\t%s\t%d\t... %d more\t\t\t\t\t\t\n", p.Path, p.Kind, p.Waiting, more)
		}
	}
	return w.Flush()
}

// waitsForText is the sessions that one waits for, the first in full.
func waitsForText(sessions []string) string {
	const most = 3
	text := strings.Join(sessions[:min(len(sessions), most)], " ")
	if more := len(sessions) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return orDash(text)
}
