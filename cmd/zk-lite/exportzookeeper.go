package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/zk-lite/zk-lite/cmd/zk-lite/cli"
	"github.com/zk-lite/zk-lite/cmd/zk-lite/cli/httpapi"
	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/migration/datadir"
	"github.com/zk-lite/zk-lite/migration/replica"
	"github.com/zk-lite/zk-lite/session"
	"github.com/zk-lite/zk-lite/znode"
)

// exportTimeout is how long a server may take to begin to send its state, or to go on.
const exportTimeout = time.Minute

func exportZooKeeperCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "export-zookeeper --out DIR",
		Short: "Write the state as a snapshot from which ZooKeeper starts",
		Long: `Fetch the whole state of the ensemble, as "zk-lite backup" does, and write it as
DIR/version-2/snapshot.<zxid>, from which servers of Apache ZooKeeper 3.4 to 3.9 start
whose dataDir is DIR. DIR must be empty, but for myid, or not be there; so must be the
dataDir of every server that gets a copy. With --from, a backup is taken instead.

All znodes come over with all fields of their Stat, ACLs, sequence counters, containers,
TTLs and quotas, and all sessions with their ephemerals. A session can resume only if
its password is the one that ZooKeeper computes of its id: those that came from
ZooKeeper have it. The others are counted, and listed with -o json; they and
their ephemerals end in ZooKeeper after their timeouts. Answers to idempotency keys and
the members of the ensemble do not come over.

What is written to zk-lite afterwards is not in the file: stop the clients first.
The file holds all data and the hashes of all passwords in ACLs, so only
administrators may make one, the server's audit log shows it, and its mode is 0600.
docs/migration.md walks through it.`,
		Example: `  zk-lite export-zookeeper --out /var/lib/zookeeper --http http://zk1:8080
  zk-lite export-zookeeper --out zk --from monday.backup -o json | jq -r '.lost[].session'`,
		Args: cobra.NoArgs,
	}
	open := cli.BindHTTP(c, exportTimeout)
	out := c.Flags().String("out", "", "`directory` to write to; it is made if it is not there")
	from := c.Flags().String("from", "", "take the state of a backup, a `file`, and ask no server")
	output := c.Flags().StringP("output", "o", "text", "output format, text or json")
	c.RunE = func(c *cobra.Command, _ []string) error {
		switch {
		case *output != "text" && *output != "json":
			return cli.Usage(fmt.Errorf("--output %q: want text or json", *output))
		case *out == "":
			return cli.Usage(errors.New("--out is missing: the directory to write to"))
		}
		if err := mustBeFresh(*out); err != nil {
			return err
		}
		read := func() (*state.Machine, error) { return stateOf(*from) }
		if *from == "" {
			api, err := open(c.Context(), "")
			if err != nil {
				return err
			}
			read = func() (*state.Machine, error) { return fetchState(c.Context(), api) }
		}
		m, err := read()
		if err != nil {
			return err
		}
		e, err := exportTo(*out, m)
		if err != nil {
			return err
		}
		if *output == "json" {
			return json.NewEncoder(c.OutOrStdout()).Encode(e)
		}
		return e.print(c.OutOrStdout())
	}
	return c
}

// mustBeFresh refuses a directory with anything in it but myid: a server may have data there, and ZooKeeper's would not
// start with the epochs of another past.
func mustBeFresh(dir string) error {
	for _, d := range []string{dir, filepath.Join(dir, "version-2")} {
		names, err := os.ReadDir(d)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		for _, x := range names {
			if name := x.Name(); d != dir || name != "myid" && name != "version-2" {
				return fmt.Errorf("%s has %s: give --out a directory that is new, or empty but for myid; nothing was "+
					"done", d, name)
			}
		}
	}
	return nil
}

// fetchState asks for the state as of now.
func fetchState(ctx context.Context, api *httpapi.Client) (*state.Machine, error) {
	resp, err := api.Do(ctx, &httpapi.Request{
		Method: http.MethodGet, Target: "/v1/snapshot?consistency=linearizable", Repeatable: true,
	})
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	m, err := state.ReadSnapshot(resp.Body)
	if err != nil && ctx.Err() == nil {
		err = fmt.Errorf("what %s sent is no whole state: %w; try again, or at another server with --http",
			resp.Request.URL.Host, err)
	}
	return m, err
}

// stateOf reads the state of a backup.
func stateOf(file string) (*state.Machine, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	m, err := state.ReadSnapshot(bufio.NewReader(f))
	if err != nil {
		return nil, fmt.Errorf("%s: %w; `zk-lite backup ls DIRECTORY` says which backups are whole", file, err)
	}
	return m, nil
}

// export is what was written.
type export struct {
	File       string        `json:"file"`
	Zxid       string        `json:"zxid"`
	Znodes     int           `json:"znodes"`
	Containers int           `json:"containers"`
	TTLs       int           `json:"ttls"`
	Largest    int           `json:"largest_bytes"`
	Sessions   int           `json:"sessions"`
	Lost       []lostSession `json:"lost"` // sessions that cannot resume
	Next       []string      `json:"next"`
}

type lostSession struct {
	Session    string `json:"session"`
	TimeoutMS  int64  `json:"timeout_ms"`
	Ephemerals int    `json:"ephemerals"`
}

func exportTo(dir string, m *state.Machine) (*export, error) {
	r := replica.New(m.Tree(), m.Sessions(), m.Zxid())
	x, err := r.Export()
	if err != nil {
		return nil, fmt.Errorf("%w; nothing was done", err)
	}
	file, err := datadir.WriteSnapshot(dir, r)
	if err != nil {
		return nil, err
	}
	e := &export{
		File: file, Zxid: r.Zxid.String(), Znodes: x.Znodes, Containers: x.Containers, TTLs: x.TTLs, Largest: x.Largest,
		Sessions: x.Sessions, Lost: []lostSession{}, Next: nextSteps(x),
	}
	for _, s := range x.Lost {
		e.Lost = append(e.Lost, lost(&s, r.Tree))
	}
	return e, nil
}

func lost(s *session.Session, t *znode.Tree) lostSession {
	return lostSession{s.ID.String(), s.Timeout.Milliseconds(), t.EphemeralCount(s.ID)}
}

// juteMax is ZooKeeper's default of jute.maxbuffer, in bytes.
const juteMax = 0xfffff

// nextSteps are what to do with the file.
func nextSteps(x *replica.Export) (steps []string) {
	if x.TTLs > 0 {
		steps = append(steps, "run ZooKeeper 3.5.4 or newer with extendedTypesEnabled=true in zoo.cfg: otherwise it "+
			"deletes the znodes that have a TTL")
	} else if x.Containers > 0 {
		steps = append(steps, "run ZooKeeper 3.5.1 or newer: an older one deletes the containers, and what is "+
			"below them")
	}
	if x.Largest >= juteMax {
		steps = append(steps, fmt.Sprintf("start ZooKeeper with -Djute.maxbuffer=%d at least: %q has %d bytes",
			x.Largest+juteMax, x.LargestPath, x.Largest))
	}
	return append(steps, "copy the file to version-2 in the dataDir of each server, which is empty but for myid and "+
		"owned by the server's user; then start them")
}

// shownLost bounds the sessions in the text.
const shownLost = 10

func (e *export) print(w io.Writer) error {
	fmt.Fprintf(w, "%s: %d znodes and %d sessions at zxid %s\n", e.File, e.Znodes, e.Sessions, e.Zxid)
	if n := len(e.Lost); n > 0 {
		var ids []string
		for _, s := range e.Lost[:min(n, shownLost)] {
			ids = append(ids, s.Session)
		}
		more := ""
		if n > shownLost {
			more = ", ... (-o json lists all)"
		}
		fmt.Fprintf(w, "sessions that cannot resume in ZooKeeper, because their passwords are random: %d: %s%s\n", n,
			strings.Join(ids, ", "), more)
	}
	fmt.Fprintln(w, "secret: the file holds all data, and the hashes of all passwords in ACLs; its mode is 0600")
	for _, step := range e.Next {
		if _, err := fmt.Fprintln(w, "next:", step); err != nil {
			return err
		}
	}
	return nil
}
