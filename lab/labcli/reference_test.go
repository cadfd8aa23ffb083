package labcli

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// TestReference writes the page of all commands and options from the program, and compares it.
func TestReference(t *testing.T) {
	var b strings.Builder
	b.WriteString("# Reference of the lab\n\nMade from the program by `TestReference`. What the options mean for an algorithm is in " +
		"[elections](elections.md),\n[mutual exclusion](mutexes.md), [detectors](detectors.md) and the [lesson](../lesson.md).\n")
	for _, c := range Command(Options{}).Commands() {
		reference(&b, c)
	}
	const file = "../testdata/reference.md"
	if *update {
		if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if shown, err := os.ReadFile(file); err != nil || string(shown) != b.String() {
		t.Errorf("%s is not what the program has (%v); run the test with -update", file, err)
	}
}

func reference(b *strings.Builder, c *cobra.Command) {
	fmt.Fprintf(b, "\n## lab %s\n\n%s.\n", c.Name(), c.Short)
	if c.Long != "" {
		fmt.Fprintf(b, "\n%s\n", c.Long)
	}
	if c.Example != "" {
		fmt.Fprintf(b, "\n```sh\n%s\n```\n", strings.ReplaceAll(c.Example, "  zk-lite", "zk-lite"))
	}
	b.WriteString("\n| option | default | |\n|---|---|---|\n")
	c.Flags().VisitAll(func(f *pflag.Flag) {
		name, help := pflag.UnquoteUsage(f)
		option := "--" + f.Name
		if name != "" {
			option += " " + name
		}
		def := f.DefValue
		if def == "[]" || def == "false" {
			def = ""
		}
		fmt.Fprintf(b, "| `%s` | %s | %s |\n", strings.ReplaceAll(option, "|", `\|`), def, strings.ReplaceAll(help, "|", `\|`))
	})
}
