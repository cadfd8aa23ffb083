package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
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
