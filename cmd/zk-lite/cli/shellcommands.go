package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/cmd/zk-lite/cli/lineedit"
)

func (s *shell) addAuthCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "addauth SCHEME DATA",
		Short:   "Prove an identity, for all that follows",
		Example: "  addauth digest ann:secret",
		Args:    argCount(2, 2, 0),
		RunE: func(c *cobra.Command, args []string) error {
			return s.flags.watched(c.Context(), s.client, func(ctx context.Context, cl *client.Client) error {
				return cl.AddAuth(ctx, args[0], []byte(args[1]))
			})
		},
	}
}

func (s *shell) historyCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "history",
		Short: "Print the lines that were typed, the newest last",
		Args:  argCount(0, 0, 0),
		RunE: func(c *cobra.Command, _ []string) error {
			if s.history == nil {
				return nil // nothing was typed
			}
			for i := s.history.Len() - 1; i >= 0; i-- {
				fmt.Fprintln(c.OutOrStdout(), s.history.At(i))
			}
			return s.history.Err()
		},
	}
}

func (s *shell) quitCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "quit",
		Aliases: []string{"exit", "close"},
		Short:   "End the shell and its session",
		Args:    argCount(0, 0, 0),
		RunE:    func(*cobra.Command, []string) error { return errQuit },
	}
}

func (s *shell) sessionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "session",
		Short: "Print the session and the state of the connection",
		Args:  argCount(0, 0, 0),
		RunE: func(c *cobra.Command, _ []string) error {
			now := s.client.State()
			fmt.Fprintf(c.OutOrStdout(), "id = %v\ntimeout = %v\nstate = %v\n",
				now.Session.ID, now.Session.Timeout, now.State)
			if now.Server != "" {
				fmt.Fprintf(c.OutOrStdout(), "server = %s\n", now.Server)
			}
			return nil
		},
	}
}

// complete is for TAB: commands, then flags and paths.
func (s *shell) complete(before string) (start int, list []string) {
	words, last, start := lineedit.Last(before)
	root := s.commands()
	if len(words) == 0 {
		for _, c := range root.Commands() {
			if strings.HasPrefix(c.Name(), last) {
				list = append(list, c.Name())
			}
		}
		list = append(list, startingWith([]string{"help"}, last)...)
		slices.Sort(list)
		return start, alone(slices.Compact(list), " ")
	}
	c, _, err := root.Find(words[:1])
	if err != nil || c == root {
		return start, nil
	}
	if strings.HasPrefix(last, "-") {
		c.Flags().VisitAll(func(f *pflag.Flag) {
			list = append(list, startingWith([]string{"--" + f.Name}, last)...)
		})
		return start, alone(list, " ")
	}
	if c.ValidArgsFunction == nil {
		return start, nil
	}
	var args []string
	for _, w := range words[1:] {
		if !strings.HasPrefix(w, "-") {
			args = append(args, w)
		}
	}
	paths, _ := c.ValidArgsFunction(c, args, last)
	for i, p := range paths {
		paths[i] = lineedit.Quote(p)
	}
	return start, paths
}

func startingWith(words []string, prefix string) []string {
	return slices.DeleteFunc(words, func(w string) bool { return !strings.HasPrefix(w, prefix) })
}

// alone appends a suffix if there is only one word: nothing else can follow it.
func alone(words []string, suffix string) []string {
	if len(words) == 1 {
		words[0] += suffix
	}
	return words
}
