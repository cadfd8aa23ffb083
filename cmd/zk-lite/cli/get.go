package cli

import (
	"context"
	"encoding/base64"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/cmd/zk-lite/cli/subtree"
)

func (a *app) getCommand() *cobra.Command {
	var withStat, watch, asBase64 bool
	c := &cobra.Command{
		Use:   "get PATH",
		Short: "Print the data of a znode",
		Long: `Print the data of a znode, byte for byte; nothing is added, not even the end of
a line. With -b it is a line of base64. With -s the Stat follows on lines of its
own. With -w, wait for the next change of the data after printing it, and print the
event.`,
		Example: `  zk-lite get /app/config
  zk-lite get /app/config > config.yaml
  zk-lite get -o json /app/config | jq -r .stat.version`,
		Args: argCount(1, 1, 1),
	}
	f := c.Flags()
	f.BoolVarP(&withStat, "stat", "s", false, "print the Stat, too")
	f.BoolVarP(&asBase64, "base64", "b", false, "print the data in base64")
	f.BoolVarP(&watch, "watch", "w", false, "wait for the next change and print it")
	a.completePaths(c, 1)
	return a.command(c, func(c *cobra.Command, args []string) error {
		return a.withClient(c, func(ctx context.Context, cl *client.Client) error {
			var data []byte
			var stat client.Stat
			var w *client.Watch
			var err error
			if watch {
				data, stat, w, err = cl.GetW(ctx, args[0])
			} else {
				data, stat, err = cl.Get(ctx, args[0])
			}
			if err == nil {
				err = a.printData(c, args[0], data, stat, asBase64, withStat || watch)
			}
			if err != nil {
				return err
			}
			return a.awaitEvent(ctx, c, w)
		})
	})
}

// dataJSON is a znode in JSON. The encoding says what the data is; the data of a
// znode that has none is null.
type dataJSON struct {
	Path     string    `json:"path"`
	Data     *string   `json:"data"`
	Encoding string    `json:"encoding,omitempty"`
	Stat     *statJSON `json:"stat,omitempty"`
}

func newDataJSON(path string, data []byte, stat client.Stat, asBase64 bool) dataJSON {
	v := dataJSON{Path: path, Stat: newStatJSON(stat)}
	v.Data, v.Encoding = subtree.EncodeData(data)
	if asBase64 && data != nil {
		v.Data, v.Encoding = new(base64.StdEncoding.EncodeToString(data)), "base64"
	}
	return v
}

// printData prints data alone, or as a line if something follows.
func (a *app) printData(
	c *cobra.Command, path string, data []byte, stat client.Stat, asBase64, more bool,
) error {
	if a.json() {
		return writeJSON(c.OutOrStdout(), newDataJSON(path, data, stat, asBase64))
	}
	if asBase64 {
		data = []byte(base64.StdEncoding.EncodeToString(data) + "\n")
	}
	out := lineTracker{w: c.OutOrStdout()}
	if _, err := out.Write(data); err != nil {
		return fmt.Errorf("writing the data: %w", err)
	}
	if more {
		out.endLine()
		if flag := c.Flags().Lookup("stat"); flag != nil && flag.Changed {
			printStat(&out, stat)
		}
	}
	return nil
}
