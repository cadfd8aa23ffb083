package cli

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/znode"
)

// completeTimeout bounds how long pressing TAB may take.
const completeTimeout = time.Second

// maxCompletions bounds the choices that TAB offers: no one reads more.
const maxCompletions = 500

// completePaths completes the first n arguments with paths of znodes.
func (g *globals) completePaths(c *cobra.Command, n int) {
	c.ValidArgsFunction = func(
		c *cobra.Command, args []string, word string,
	) ([]string, cobra.ShellCompDirective) {
		const directive = cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
		if len(args) >= n {
			return nil, cobra.ShellCompDirectiveDefault
		}
		ctx := c.Context()
		if ctx == nil {
			ctx = context.Background()
		}
		ctx, cancel := context.WithTimeout(ctx, completeTimeout)
		defer cancel()
		if g.shell != nil {
			return pathsLike(ctx, g.shell.client, word), directive
		}
		if g.settle(c) != nil {
			return nil, directive
		}
		cl, err := g.connectTo(ctx, "--server", g.server)
		if err != nil {
			return nil, directive
		}
		defer hangUp(cl)
		return pathsLike(ctx, cl, word), directive
	}
}

// pathsLike returns the paths that begin with a word, one level deep.
func pathsLike(ctx context.Context, cl *client.Client, word string) []string {
	cut := strings.LastIndexByte(word, '/')
	if cut < 0 {
		return []string{"/"}
	}
	parent := max(word[:cut], "/")
	names, _, err := cl.Children(ctx, parent)
	if err != nil {
		return nil
	}
	slices.Sort(names)
	var list []string
	for _, name := range names {
		if path := znode.Join(parent, name); strings.HasPrefix(path, word) && len(list) < maxCompletions {
			list = append(list, path)
		}
	}
	return list
}
