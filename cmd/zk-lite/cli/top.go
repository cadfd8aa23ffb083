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

	"github.com/zk-lite/zk-lite/api/body"
	"github.com/zk-lite/zk-lite/cmd/zk-lite/cli/httpapi"
)

// subtreeMeasures are what top --tree orders by, and how large a subtree is.
var subtreeMeasures = map[string]func(*body.Subtree) int64{
	"znodes":   func(s *body.Subtree) int64 { return s.Znodes },
	"bytes":    func(s *body.Subtree) int64 { return s.Bytes },
	topWatches: func(s *body.Subtree) int64 { return s.Watches },
}

// subtrees are the largest at and below a path, as all servers together know them.
type subtrees struct {
	size  func(*body.Subtree) int64
	found []body.Subtree
	notes []string // what is left out
}

// topTree prints the largest subtrees, and on standard error what is left out.
func topTree(g *globals, c *cobra.Command, api *httpapi.Client, path, by string, limit int) error {
	if err := checkPath(path); err != nil {
		return err
	}
	s, err := topSubtrees(c.Context(), api, path, by, limit)
	for _, note := range s.notes {
		fmt.Fprintln(c.ErrOrStderr(), note)
	}
	return cmp.Or(showNewest(g.output, c.OutOrStdout(), s.found, len(s.found), s.print), err)
}

// topSubtrees asks all servers, and adds up the watches. The error is that of the last one that did not answer.
func topSubtrees(ctx context.Context, api *httpapi.Client, path, by string, limit int) (*subtrees, error) {
	s := &subtrees{size: subtreeMeasures[by]}
	if s.size == nil {
		return s, usagef("--by %s: want znodes, bytes or watches", by)
	}
	target := (&url.URL{Path: "/v1/subtrees" + path, RawQuery: "limit=100&by=" + by}).String()
	pages, err := askEach[body.Subtrees](ctx, api, target)
	for _, p := range pages {
		s.add(&p)
	}
	slices.SortStableFunc(s.found, func(a, b body.Subtree) int { return cmp.Compare(s.size(&b), s.size(&a)) })
	s.found = s.found[:min(len(s.found), max(limit, 0))]
	return s, err
}

func (s *subtrees) add(p *body.Subtrees) {
	for _, x := range p.Subtrees {
		have := slices.IndexFunc(s.found, func(f body.Subtree) bool { return f.Path == x.Path })
		if have < 0 {
			s.found = append(s.found, x)
			continue
		}
		s.found[have].Watches += x.Watches
	}
	if len(p.LeftOut) > 0 {
		s.notes = append(s.notes, fmt.Sprintf("server %d: too many children to look at all: %s",
			p.Server, strings.Join(p.LeftOut, " ")))
	}
	if p.Missed > 0 {
		s.notes = append(s.notes, fmt.Sprintf("server %d: too many paths to count: one with %d watches may be missing",
			p.Server, p.Missed))
	}
}

func (s *subtrees) print(out io.Writer, found []body.Subtree) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "ZNODES\tBYTES\tWATCHES\tSHARE\tPATH")
	for i := range found {
		f, share := &found[i], 0.0
		if whole := s.size(&found[0]); whole > 0 { // the first is the path itself: it has all
			share = 100 * float64(s.size(f)) / float64(whole)
		}
		fmt.Fprintf(w, "%d\t%d\t%d\t%.0f %%\t%s\n", f.Znodes, f.Bytes, f.Watches, share, f.Path)
	}
	return w.Flush()
}

// The kinds of users, in the order of the table. The first is all of them together.
var topKinds = []string{"all", "session", "address", "path"}

// topWatches is the measure that has no time.
const topWatches = "watches"

// topHeld is the measure of who waits.
const topHeld = "held"

// topUser is a session, an address or a path, as all servers together know it.
type topUser struct {
	Kind  string  `json:"kind"`
	Name  string  `json:"name"`
	By    string  `json:"by"`
	Count float64 `json:"count"` // per second, but for watches; of held milliseconds
	Over  float64 `json:"over"`  // what Count may be too large by
	Share float64 `json:"share"` // of all, 0 to 1
}

func topCommand(g *globals) *cobra.Command {
	c := &cobra.Command{
		Use:   "top [--tree [PATH]]",
		Short: "Show the sessions, addresses and paths that use the servers most, or the largest subtrees",
		Long: `Show the sessions, client addresses and paths with the most requests (or bytes) per second,
over the last one or two minutes, with the most watches now, or those held back most: the
milliseconds in a second for which their requests waited, because they and others asked for
more than the servers can do or than limits.clientRequests and limits.clientBytes allow.
Requests of one connection wait together, those of many add up. The servers count a sample
in bounded memory, so small figures are rough; pings are left out, and a transaction counts
for its first path. What a figure may be too large by, if that is a tenth of it or more,
stands behind it. All servers are asked: each counts its own clients.

With --tree: the subtrees at and below PATH (default /) with the most znodes, bytes of data
or watches. A subtree is part of those that it is in. The servers keep the sizes, so this
costs little in a tree of millions; to order by watches they look at all watched paths.`,
		Example: `  zk-lite top --server zk1:2181
  zk-lite top --by held
  zk-lite top --by bytes -n 3 -o json | jq -r 'select(.kind == "path") | .name'
  watch zk-lite top --by watches
  zk-lite top --tree /app --by bytes`,
		Args: argCount(0, 1, 0),
	}
	limit := c.Flags().IntP("limit", "n", 10, "show at most so many of each kind")
	by := c.Flags().String("by", "", "order by `requests|bytes|held|watches`; with --tree by znodes, bytes or watches")
	tree := c.Flags().Bool("tree", false, "show the largest subtrees")
	return g.operation(c, defaultTimeout, func(c *cobra.Command, args []string, api *httpapi.Client) error {
		if *tree {
			return topTree(g, c, api, append(args, "/")[0], cmp.Or(*by, "znodes"), *limit)
		}
		if len(args) > 0 {
			return usagef("%s: a path goes with --tree", args[0])
		}
		*by = cmp.Or(*by, "requests")
		if !slices.Contains([]string{"requests", "bytes", topHeld, topWatches}, *by) {
			return usagef("--by %s: want requests, bytes, held or watches", *by)
		}
		users, err := topUsers(c.Context(), api, *by, *limit)
		return cmp.Or(showNewest(g.output, c.OutOrStdout(), users, len(users), printTop), err)
	})
}

// topUsers asks all servers, and adds up what they answer. The error is that of the last one that did not.
func topUsers(ctx context.Context, api *httpapi.Client, by string, limit int) ([]topUser, error) {
	pages, err := askEach[body.Top](ctx, api, "/v1/top?limit=100&by="+url.QueryEscape(by))
	return mergeTop(pages, by, limit), err
}

func mergeTop(pages []body.Top, by string, limit int) (all []topUser) {
	merged := map[string]map[string]topUser{} // kind → name
	for _, p := range pages {
		seconds := p.Seconds
		switch by {
		case topWatches:
			seconds = 1
		case topHeld: // in microseconds; shown are milliseconds
			seconds *= 1000
		}
		for i, users := range [][]body.User{{{Count: p.Total}}, p.Sessions, p.Addresses, p.Paths} {
			kind := topKinds[i]
			if merged[kind] == nil {
				merged[kind] = map[string]topUser{}
			}
			for _, u := range users {
				have := merged[kind][u.Name]
				merged[kind][u.Name] = topUser{
					Kind: kind, Name: u.Name, By: by,
					Count: have.Count + float64(u.Count)/seconds, Over: have.Over + float64(u.Over)/seconds,
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
		switch u.By {
		case topWatches:
		case topHeld:
			unit += " MS/S"
		default:
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
