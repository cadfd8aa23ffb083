package cli

import (
	"testing"

	"github.com/spf13/cobra"
)

// TestApp_Timeouts: each command waits as long as its own help says. Once all waited ten
// minutes, restore's timeout: the commands bound one variable, and restore came last.
func TestApp_Timeouts(t *testing.T) {
	a := &app{timeout: defaultTimeout}
	root := &cobra.Command{}
	a.addAll(root)
	checked := 0
	var walk func(*cobra.Command)
	walk = func(parent *cobra.Command) {
		for _, c := range parent.Commands() {
			walk(c)
			f := c.Flags().Lookup(timeoutFlag)
			if f == nil {
				continue
			}
			checked++
			if err := a.check(c); err != nil {
				t.Errorf("%s: %v", c.CommandPath(), err)
			}
			if got := a.timeout.String(); got != f.DefValue {
				t.Errorf("%s waits for %s, and says %s", c.CommandPath(), got, f.DefValue)
			}
		}
	}
	walk(root)
	if checked < 20 {
		t.Errorf("only %d commands have a timeout", checked)
	}
}
