package labcli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/zk-lite/zk-lite/lab/table"
)

func tableCommand(o Options) *cobra.Command {
	var sizes string
	var seed uint64
	var asJSON bool
	var only []string
	c := &cobra.Command{
		Use:   "table",
		Short: "Lay the measured cost of every algorithm beside the formula of the lectures",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			list, err := table.ParseSizes(sizes)
			if err != nil {
				return o.usage(fmt.Errorf("--n: %w", err))
			}
			if err := table.CheckAlgorithms(only...); err != nil {
				return o.usage(err)
			}
			for _, note := range table.LeftOut(list, only...) {
				fmt.Fprintln(c.ErrOrStderr(), note)
			}
			var rows []table.Row
			if asJSON {
				if rows, err = table.Make(c.Context(), list, seed, only...); err == nil {
					err = writeJSON(c.OutOrStdout(), rows)
				}
			} else {
				rows, err = printTable(c, list, seed, only)
			}
			if err != nil {
				return err
			}
			return broken(rows)
		},
	}
	c.Flags().StringVar(&sizes, "n", "6,16,64,256,1024", "numbers of processes")
	c.Flags().StringArrayVar(&only, "algorithm", nil, "only this algorithm; may be repeated")
	completeWith(c, "algorithm", table.Algorithms()...)
	c.Flags().Uint64Var(&seed, "seed", 1, "seed of the random arrangements")
	c.Flags().BoolVar(&asJSON, "json", false, "print the rows as JSON")
	return c
}

// throughputCommand returns the command that shows the throughput that was measured.
func throughputCommand() *cobra.Command {
	var svg string
	c := &cobra.Command{Use: "throughput", Args: cobra.NoArgs,
		Short: "Show answers a second against the share of reads, as they were measured",
		RunE: func(c *cobra.Command, _ []string) error {
			p := table.Throughput()
			if svg != "" {
				return writeFile(svg, p.SVG)
			}
			fmt.Fprintf(c.OutOrStdout(), "%s, %s\n%8s", p.Title, table.ThroughputSource, p.X)
			for _, s := range p.Series {
				fmt.Fprintf(c.OutOrStdout(), "%12s", s.Name)
			}
			for i, point := range p.Series[0].Points {
				fmt.Fprintf(c.OutOrStdout(), "\n%8g", point[0])
				for _, s := range p.Series {
					fmt.Fprintf(c.OutOrStdout(), "%12.0f", s.Points[i][1])
				}
			}
			fmt.Fprintln(c.OutOrStdout())
			return nil
		}}
	c.Flags().StringVar(&svg, "svg", "", "write a picture to this `file` instead")
	return c
}

// printTable prints rows as they are measured: the largest take seconds each.
func printTable(c *cobra.Command, sizes []int, seed uint64, only []string) (rows []table.Row, err error) {
	p, err := table.NewPrinter(c.OutOrStdout())
	if err != nil {
		return nil, err
	}
	err = table.Each(c.Context(), sizes, seed, func(more []table.Row) error {
		rows = append(rows, more...)
		return p.Print(more)
	}, only...)
	return rows, err
}

// broken turns a row that contradicts its formula into a failure of the command.
func broken(rows []table.Row) error {
	for _, r := range rows {
		if !r.Holds {
			return fmt.Errorf("%s, %s, n=%d: measured %g %s, formula %s gives %g",
				r.Algorithm, r.Case, r.N, r.Measured, r.Quantity, r.Formula, r.Expected)
		}
	}
	return nil
}
