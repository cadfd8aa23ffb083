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
