package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"net/url"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/zk-lite/zk-lite/cmd/zk-lite/cli/httpapi"
)

// The kinds of users, in the order of the table. The first stands for all.
var topKinds = []string{"all", "session", "address", "path"}

// topWatches is the measure that has no time.
const topWatches = "watches"

// topPage is who uses one server, as it writes that.
type topPage struct {
	Seconds                    float64
	Total                      float64
	Sessions, Addresses, Paths []topUser
}

// topUser is a session, an address or a path, as all servers together know it.
type topUser struct {
	Kind  string  `json:"kind"`
	Name  string  `json:"name"`
	By    string  `json:"by"`
	Count float64 `json:"count"` // per second, but for watches
	Over  float64 `json:"over"`  // what Count may be too large by
	Share float64 `json:"share"` // of all, 0 to 1
}

func (a *app) topCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "top",
		Short: "Show the sessions, addresses and paths that use the servers most",
		Long: `Show the sessions, client addresses and paths with the most requests (or bytes) per second,
over the last one or two minutes, or with the most watches now. The servers count a sample
in bounded memory, so small figures are rough; pings are left out, and a transaction counts
for its first path. What a figure may be too large by, if that is a tenth of it or more,
stands behind it. Name the URLs of all servers: each counts its own clients.`,
		Example: `  zk-lite top --http http://zk1:8080,http://zk2:8080,http://zk3:8080
  zk-lite top --by bytes -n 3 -o json | jq -r 'select(.kind == "path") | .name'
  watch zk-lite top --by watches`,
		Args: argCount(0, 0, 0),
	}
	limit := c.Flags().IntP("limit", "n", 10, "show at most so many of each kind")
	by := c.Flags().String("by", "requests", "order by `requests|bytes|watches`")
	return a.operation(c, defaultTimeout, func(c *cobra.Command, _ []string, api *httpapi.Client) error {
		if !slices.Contains([]string{"requests", "bytes", topWatches}, *by) {
			return usagef("--by %s: want requests, bytes or watches", *by)
		}
		users, err := topUsers(c.Context(), api, *by, *limit)
		return cmp.Or(showNewest(a, c.OutOrStdout(), users, len(users), printTop), err)
	})
}

// topUsers asks all servers, and adds up what they answer. The error is that of the last one that did not.
func topUsers(ctx context.Context, api *httpapi.Client, by string, limit int) ([]topUser, error) {
	pages, err := askEach[topPage](ctx, api, "/v1/top?limit=100&by="+url.QueryEscape(by))
	return mergeTop(pages, by, limit), err
}

func mergeTop(pages []topPage, by string, limit int) (all []topUser) {
	merged := map[string]map[string]topUser{} // kind → name
	for _, p := range pages {
		seconds := p.Seconds
		if by == topWatches {
			seconds = 1
		}
		for i, users := range [][]topUser{{{Count: p.Total}}, p.Sessions, p.Addresses, p.Paths} {
			kind := topKinds[i]
			if merged[kind] == nil {
				merged[kind] = map[string]topUser{}
			}
			for _, u := range users {
				have := merged[kind][u.Name]
				merged[kind][u.Name] = topUser{
					Kind: kind, Name: u.Name, By: by,
					Count: have.Count + u.Count/seconds, Over: have.Over + u.Over/seconds,
				}
			}
		}
	}
	whole := merged[topKinds[0]][""].Count
	for _, kind := range topKinds {
		list := slices.SortedFunc(maps.Values(merged[kind]), func(a, b topUser) int {
			return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Name, b.Name))
		})
		for _, u := range list[:min(len(list), max(limit, 0))] {
			if whole > 0 {
				u.Share = u.Count / whole
			}
			all = append(all, u)
		}
	}
	return all
}

func printTop(out io.Writer, users []topUser) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for i, u := range users {
		unit := strings.ToUpper(u.By)
		if u.By != topWatches {
			unit += "/S"
		}
		if i == 0 {
			fmt.Fprintf(w, "KIND\tNAME\t%s\tSHARE\n", unit)
		}
		over := ""
		if u.Over*10 >= u.Count && u.Over > 0 {
			over = fmt.Sprintf(" (or %.1f)", u.Count-u.Over)
		}
		fmt.Fprintf(w, "%s\t%s\t%.1f%s\t%.0f %%\n", u.Kind, orDash(u.Name), u.Count, over, 100*u.Share)
	}
	return w.Flush()
}
