package cli

import (
	"context"
	"encoding/base64"

	"github.com/spf13/cobra"

	"github.com/zk-lite/zk-lite/client"
)

func (a *app) setCommand() *cobra.Command {
	var withStat, fromBase64 bool
	var version int32
	var source dataSource
	c := &cobra.Command{
		Use:   "set PATH [DATA | -]",
		Short: "Replace the data of a znode",
		Long: `Replace the data of a znode, by the argument, by what comes on standard input
(-), or by a file (--file). With -v only if the znode has that version. With -b
what is given is base64, and the data is what it stands for.`,
		Example: `  zk-lite set /app/config 'debug: true'
  zk-lite set /app/config --file config.yaml
  date | zk-lite set -v 3 /app/config -`,
		Args: argCount(1, 2, 1),
	}
	f := c.Flags()
	f.Int32VarP(&version, "version", "v", int32(client.AnyVersion), "only if the data has this version")
	f.BoolVarP(&withStat, "stat", "s", false, "print the new Stat")
	f.BoolVarP(&fromBase64, "base64", "b", false, "what is given is base64 of the data")
	source.bind(c)
	a.completePaths(c, 1)
	return a.command(c, func(c *cobra.Command, args []string) error {
		if len(args) == 1 && source.file == "" {
			return usagef("no data; usage: %s", c.UseLine())
		}
		data, rest, err := source.take(a, c, args[1:])
		if err != nil {
			return err
		}
		if len(rest) > 0 {
			return usagef("data both as an argument and from --file")
		}
		if fromBase64 {
			if data, err = base64.StdEncoding.AppendDecode(nil, data); err != nil {
				return usagef("--base64: the data is not base64: %w", err)
			}
		}
		return a.withClient(c, func(ctx context.Context, cl *client.Client) error {
			stat, err := cl.Set(ctx, args[0], data, client.Version(version))
			if err != nil {
				return err
			}
			return a.printStatOf(c, args[0], stat, withStat)
		})
	})
}

// printStatOf prints the Stat after a change: always as JSON, as text if asked
// for.
func (a *app) printStatOf(c *cobra.Command, path string, stat client.Stat, text bool) error {
	switch {
	case a.json():
		return writeJSON(c.OutOrStdout(), struct {
			Path string    `json:"path"`
			Stat *statJSON `json:"stat"`
		}{path, newStatJSON(stat)})
	case text:
		printStat(c.OutOrStdout(), stat)
	}
	return nil
}
