package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/zk-lite/zk-lite/app"
	"github.com/zk-lite/zk-lite/app/config"
	"github.com/zk-lite/zk-lite/cmd/zk-lite/cli"
	"github.com/zk-lite/zk-lite/consensus/founding"
	"github.com/zk-lite/zk-lite/internal/process"
	"github.com/zk-lite/zk-lite/migration/datadir"
	"github.com/zk-lite/zk-lite/migration/seed"
)

// importZooKeeperCommand is run beside a server's files, with that server's configuration.
func importZooKeeperCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "import-zookeeper --data-dir DIR",
		Short: "Take over the data of an Apache ZooKeeper, from its files",
		Long: `Read the snapshots and logs of an Apache ZooKeeper (3.4 to 3.9), and have this server, which
must be empty and not run, begin with them: znodes with every field of their Stat, ACLs,
sequence counters, containers, TTLs, quotas, and sessions, whose clients reconnect with the
ids and passwords that they have. Zxids go on above all that clients may have seen.

ZooKeeper's files are only read. Stop its servers first: what they acknowledge afterwards is
not taken over. Of several servers take the files of the one whose last zxid is the highest;
this command prints it.

With several servers of zk-lite, do this on one of them that votes, or with the same files
on several. The ensemble begins with these data as soon as all its voters run. Until then
deleting the file zookeeper.seed in the server's data directory undoes it.

It needs the server's own configuration. That may be ZooKeeper's zoo.cfg, with another
directory for zk-lite's data (--to, or dataDir). --data-dir and --log-dir are ZooKeeper's.`,
		Example: `  zk-lite import-zookeeper --data-dir /var/lib/zookeeper --config /etc/zk-lite/zoo.cfg
  zk-lite import-zookeeper --data-dir /var/lib/zookeeper --log-dir /var/log/zookeeper \
      --config /etc/zookeeper/zoo.cfg --to /var/lib/zk-lite`,
		Args: noConfigArgument,
	}
	settings := pflag.NewFlagSet("", pflag.ContinueOnError)
	config.BindFlags(settings)
	settings.VisitAll(func(f *pflag.Flag) {
		if f.Name != "data-dir" {
			c.Flags().AddFlag(f)
		}
	})
	from := c.Flags().String("data-dir", "", "ZooKeeper's dataDir, a `directory`")
	logs := c.Flags().String("log-dir", "", "ZooKeeper's dataLogDir, a `directory`, if it is another one")
	to := c.Flags().String("to", "", "the server's own data `directory`, instead of dataDir")
	output := c.Flags().StringP("output", "o", "text", "output format, text or json")
	c.RunE = func(c *cobra.Command, _ []string) error {
		switch {
		case *from == "":
			return cli.Usage(errors.New("--data-dir is missing: name ZooKeeper's dataDir"))
		case *output != "text" && *output != "json":
			return cli.Usage(fmt.Errorf("--output %q: want text or json", *output))
		}
		if *to != "" {
			if err := settings.Set("data-dir", *to); err != nil {
				return err
			}
		}
		s, notices, err := config.Load(settings, os.LookupEnv)
		if err != nil {
			return err
		}
		for _, n := range notices {
			fmt.Fprintln(c.ErrOrStderr(), n)
		}
		logger := newLogger(c.ErrOrStderr(), false, slog.LevelWarn)
		x := &zooKeeperImport{server: s.MyID, servers: max(1, len(s.Servers))}
		o := app.Options{Settings: s, Logger: logger, Memory: process.Memory()}
		if err := x.run(&o, *from, *logs); err != nil {
			return err
		}
		if *output == "json" {
			return errors.Join(json.NewEncoder(c.OutOrStdout()).Encode(x), x.refused())
		}
		x.print(c.OutOrStdout())
		return x.refused()
	}
	return c
}

// zooKeeperImport is an import, as its outcome is printed.
type zooKeeperImport struct {
	Found    *datadir.Report `json:"found"`
	Findings []seed.Finding  `json:"findings"`
	Seed     string          `json:"seed"`           // what equal data have in common
	Next     string          `json:"next_zxid"`      // above which zxids go on
	File     string          `json:"file,omitempty"` // empty: nothing was written

	server, servers int // this one, and how many the configuration has
}

// run reads the data, checks them, and writes them unless a limit is in the way.
func (x *zooKeeperImport) run(o *app.Options, dir, logDir string) error {
	own := o.Settings.DataDir
	for _, theirs := range []string{dir, logDir} {
		if theirs != "" && sameDirectory(theirs, own) {
			return fmt.Errorf("%s is ZooKeeper's directory, and by the configuration this server's dataDir, too: "+
				"give zk-lite one of its own, with the file myid in it, by --to DIR or dataDir, and start the "+
				"server with the same (--data-dir DIR). ZooKeeper's files stay as they are", theirs)
		}
	}
	if err := app.CheckImport(*o); err != nil {
		return adviseImport(err)
	}
	replica, report, err := datadir.Load(dir, logDir)
	if err != nil {
		return err
	}
	data, err := seed.New(replica, report.Epoch())
	if err != nil {
		return err
	}
	x.Found, x.Seed, x.Next = report, data.Digest(), data.Machine().Zxid().String()
	limits := app.SeedLimits(*o)
	if x.Findings, err = data.Check(&limits); err != nil || x.refused() != nil {
		return err
	}
	if err := data.Save(own); err != nil {
		return err
	}
	x.File = data.Path()
	return nil
}

// refused returns why nothing was written.
func (x *zooKeeperImport) refused() error {
	var settings []string
	for _, f := range x.Findings {
		if f.Refused {
			settings = append(settings, f.Setting)
		}
	}
	if len(settings) == 0 {
		return nil
	}
	return fmt.Errorf("nothing was imported: change %s on all servers, and try again", strings.Join(settings, ", "))
}

func adviseImport(err error) error {
	if errors.Is(err, founding.ErrHasData) {
		return fmt.Errorf("%w: nothing was done. Only an empty server takes over data; the tree alone can be copied "+
			"into one that runs (`zk-lite export`, `zk-lite import`)", err)
	}
	return err
}

// print prints what was found, and what follows.
func (x *zooKeeperImport) print(w io.Writer) {
	printZooKeeper(w, x.Found)
	for _, f := range x.Findings {
		kind, setting := "note", f.Setting
		if f.Refused {
			kind = "REFUSED"
		}
		if setting == "none" {
			setting = "no setting"
		}
		if len(f.Some) == 0 {
			fmt.Fprintf(w, "%s: %s (%s)\n", kind, f.Problem, setting)
			continue
		}
		fmt.Fprintf(w, "%s: %d with %s (%s)\n  %s\n", kind, f.Count, f.Problem, setting, strings.Join(f.Some, " "))
	}
	if x.File == "" {
		return
	}
	fmt.Fprintf(w, "written: %s, data %s. Deleting it undoes the import\n", x.File, x.Seed)
	fmt.Fprintln(w, "not in it: what ZooKeeper's servers acknowledge from now on, unless they are stopped")
	fmt.Fprintf(w, "at the start: zxids go on above %s; each session gets its full timeout\n", x.Next)
	if x.servers > 1 {
		fmt.Fprintf(w, "next: start all %d servers, with empty data directories or the same data\n", x.servers)
		return
	}
	fmt.Fprintf(w, "next: start server %d\n", x.server)
}

// printZooKeeper prints what ZooKeeper's files hold.
func printZooKeeper(w io.Writer, r *datadir.Report) {
	if r.Snapshot != nil {
		fmt.Fprintf(w, "read: %s (zxid %s)\n", r.Snapshot.File, r.Snapshot.Zxid)
	}
	for _, l := range r.Logs {
		fmt.Fprintf(w, "read: %s, %d transactions replayed\n", l.File, l.Transactions)
	}
	for _, f := range r.Skipped {
		fmt.Fprintf(w, "NOT USED: %s: %s\n", f.File, f.Why)
	}
	for _, t := range r.Torn {
		fmt.Fprintf(w, "torn: %s ends inside an entry at byte %d: %s\n", t.File, t.Offset, t.Why)
	}
	fmt.Fprintf(w, "last zxid %s: %d znodes with %d bytes, %d of them ephemerals, %d containers, %d with a TTL; %d "+
		"quotas; %d sessions\n", r.Zxid, r.Znodes, r.Bytes, r.Ephemerals, r.Containers, r.TTLs, r.Quotas, r.Sessions)
	for _, text := range r.Warnings {
		fmt.Fprintln(w, "note:", text)
	}
}

// sameDirectory reports whether two names are of one directory; a missing one is compared by its name.
func sameDirectory(a, b string) bool {
	x, err := os.Stat(a)
	y, other := os.Stat(b)
	if err == nil && other == nil {
		return os.SameFile(x, y)
	}
	a, errA := filepath.Abs(a)
	b, errB := filepath.Abs(b)
	return errA == nil && errB == nil && a == b
}
