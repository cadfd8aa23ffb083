package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/zk-lite/zk-lite/cmd/zk-lite/cli"
	"github.com/zk-lite/zk-lite/migration/inspect"
)

// inspectCommand reads files and asks no server.
func inspectCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "inspect FILE...",
		Short: "Print snapshots and logs, ZooKeeper's and zk-lite's",
		Long: `Print what files hold; what they are is found by their content:

  ZooKeeper   snapshot.* (plain, gzip or snappy) and log.* of 3.4 to 3.9, in version-2
  zk-lite     a backup, a directory in dataDir/snapshots or its state.bin,
              a segment in dataDir/raftlog, or dataDir/raftlog as a whole

Names are those of ZooKeeper's SnapshotFormatter and TxnLogToolkit; cversion is as
stored, the number of children ever created. A log of zk-lite holds no zxids: servers
compute them.

Data is not printed, but its length, and of a digest identity in an ACL only the user.
--data prints both, data in base64: it is as secret as the files. Passwords of sessions
and tokens are never printed.

Every checksum is verified, and every digest that the file alone determines. Files may
be in use; nothing is changed. They are read as they come, so they may be larger than
the memory. The exit code is 1 if one of them is damaged or of no known format: what
comes before the damage is printed.

With -o json every line is an object; its "kind" is "file", "znode", "session",
"transaction" (ZooKeeper's log), "entry" or another kind of record (ours), or "end".`,
		Example: `  zk-lite inspect /var/lib/zookeeper/version-2/snapshot.2a0
  zk-lite inspect --data zk.backup | less
  zk-lite inspect -o json /var/lib/zk-lite/raftlog | jq 'select(.kind == "entry").commands[]?.path'`,
		Args: func(_ *cobra.Command, files []string) error {
			if len(files) == 0 {
				return cli.Usage(errors.New("no file is given; want one or more"))
			}
			return nil
		},
	}
	var o inspect.Options
	c.Flags().BoolVar(&o.Data, "data", false, "print data and the hashes of digest identities")
	output := c.Flags().StringP("output", "o", "text", "output format, text or json")
	c.RunE = func(c *cobra.Command, files []string) error {
		if *output != "text" && *output != "json" {
			return cli.Usage(fmt.Errorf("--output %q: want text or json", *output))
		}
		o.JSON = *output == "json"
		var errs []error
		for _, file := range files {
			if err := inspect.File(c.Context(), c.OutOrStdout(), file, o); err != nil {
				errs = append(errs, err)
			}
			if err := c.Context().Err(); err != nil {
				return err
			}
		}
		return errors.Join(errs...)
	}
	return c
}
