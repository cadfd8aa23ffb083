package cli

import (
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// TestCommands_HaveTheirOwnDefaults: each command does by default what its own help says. Once all waited ten minutes,
// restore's timeout: the commands bound one variable, and restore came last.
func TestCommands_HaveTheirOwnDefaults(t *testing.T) {
	root := &cobra.Command{}
	AddCommands(root, nil, nil)
	timeouts := 0
	var walk func(*cobra.Command)
	walk = func(parent *cobra.Command) {
		for _, c := range parent.Commands() {
			walk(c)
			c.Flags().VisitAll(func(f *pflag.Flag) {
				if got := f.Value.String(); got != f.DefValue {
					t.Errorf("%s --%s is %q, want its default, %q", c.CommandPath(), f.Name, got, f.DefValue)
				}
				if f.Name == timeoutFlag {
					timeouts++
				}
			})
		}
	}
	walk(root)
	if timeouts < 20 {
		t.Errorf("%d commands have a timeout, want 20 at least", timeouts)
	}
}
