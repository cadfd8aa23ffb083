package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/zk-lite/zk-lite/api/body"
	"github.com/zk-lite/zk-lite/cmd/zk-lite/cli"
	"github.com/zk-lite/zk-lite/cmd/zk-lite/cli/httpapi"
	"github.com/zk-lite/zk-lite/migration/fence"
)

// takeoverPath is the resource of the take-over.
const takeoverPath = "/v1/takeover"

// takeoverTimeout is how long a server may take to bring what only ZooKeeper's logs have into its own.
const takeoverTimeout = time.Minute

func takeoverCommand() *cobra.Command {
	var plan, execute bool
	t := new(takeover)
	c := &cobra.Command{
		Use:   "takeover (--plan | --go --receipt FILE...)",
		Short: "Take over from a ZooKeeper ensemble that is mirrored",
		Long: `Make what is mirrored the ensemble's own: clients keep their sessions, ephemerals and zxids.

--plan says what is in the way, or what to do: stop ZooKeeper, and fence each server on its
host, which prints a receipt. The exit code is 1 if something is in the way.
--go takes over, with the receipts of a majority of ZooKeeper's voters. They prove that no
write can be acknowledged there, and bring what the mirror has not heard of. To repeat it
does no harm: it says that it was done before, or that it was not.

--force goes on without a majority, or with another history: writes may be lost, and
both ensembles may serve.`,
		Example: `  zk-lite takeover --plan --http http://new1:8080
  zk-lite takeover --go --receipt receipt-1.json --receipt receipt-2.json --http http://new1:8080`,
		Args: cobra.NoArgs,
	}
	open := cli.BindHTTP(c, takeoverTimeout)
	c.Flags().BoolVar(&plan, "plan", false, "say what is in the way, or what to do")
	c.Flags().BoolVar(&execute, "go", false, "take over")
	c.Flags().StringArrayVar(&t.receipts, "receipt", nil, "what takeover fence has printed, a `file`; one a server")
	c.Flags().BoolVar(&t.force, "force", false, "go on without a majority, or with another history")
	c.Flags().BoolVarP(&t.yes, "yes", "y", false, "do not ask (--force)")
	output := c.Flags().StringP("output", "o", "text", "output format, text or json")
	c.RunE = func(c *cobra.Command, _ []string) error {
		switch {
		case *output != "text" && *output != "json":
			return cli.Usage(fmt.Errorf("--output %q: want text or json", *output))
		case plan == execute:
			return cli.Usage(errors.New("give --plan, or --go"))
		}
		t.json = *output == "json"
		receipts, err := readReceipts(t.receipts)
		if err != nil {
			return err
		}
		if execute && len(receipts) == 0 && !t.force {
			return cli.Usage(errors.New("--receipt is missing: what zk-lite takeover fence has printed on each of " +
				"ZooKeeper's hosts"))
		}
		if t.api, err = open(c.Context(), ""); err != nil {
			return err
		}
		if plan {
			return t.plan(c)
		}
		return t.execute(c, receipts)
	}
	c.AddCommand(fenceCommand(), unfenceCommand())
	return c
}

// takeover is what the flags say.
type takeover struct {
	api              *httpapi.Client
	receipts         []string
	force, yes, json bool
}

// plan prints what is in the way, or what to do.
func (t *takeover) plan(c *cobra.Command) error {
	p := new(body.Takeover)
	if err := t.ask(c.Context(), http.MethodGet, nil, p); err != nil {
		return err
	}
	out := c.OutOrStdout()
	var err error
	if t.json {
		err = json.NewEncoder(out).Encode(p)
	} else {
		err = printTakeover(out, p)
	}
	if err == nil && !p.Ready {
		err = errors.New("something is in the way: see above")
	}
	return err
}

func (t *takeover) ask(ctx context.Context, method string, text []byte, v any) error {
	return t.api.JSON(ctx, &httpapi.Request{Method: method, Target: takeoverPath, Body: text, Repeatable: true}, v)
}

// printTakeover prints the phases, and how each is called off.
func printTakeover(out io.Writer, p *body.Takeover) error {
	var b strings.Builder
	if p.Taken != nil {
		fmt.Fprintf(&b, "taken over: %s\n", cli.TakeoverText(p.Taken))
	}
	for _, u := range p.Unmet {
		fmt.Fprintf(&b, "in the way: %s\n  do: %s\n", u.What, u.Do)
	}
	var ids, names []string
	for _, v := range p.Voters {
		ids, names = append(ids, fmt.Sprint(v.ID)), append(names, fmt.Sprintf("%d (%s)", v.ID, v.Peer))
	}
	voters := ""
	if len(ids) > 0 {
		voters = " --voters " + strings.Join(ids, ",")
	} else {
		names = p.From
	}
	if p.Zxid != "" {
		fmt.Fprintf(&b, `
The mirror is at zxid %s. ZooKeeper's voters: %s; %d of them must be fenced.

1. On each host of ZooKeeper, stop it for good:
     systemctl disable --now zookeeper
   To call it off: start it again.
2. On each host of ZooKeeper (add --log-dir LOGDIR if zoo.cfg has a dataLogDir):
     zk-lite takeover fence --data-dir DATADIR --after %s --digest %s%s > receipt-N.json
   To call it off, on each: zk-lite takeover unfence --data-dir DATADIR, and start ZooKeeper.
3. With all receipts:
     zk-lite takeover --go --receipt receipt-1.json --receipt receipt-2.json ...
   From then on zk-lite serves. Back to ZooKeeper: zk-lite export-zookeeper, see docs/migration.md.
`, p.Zxid, strings.Join(names, ", "), p.Need, p.Zxid, p.Digest, voters)
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// execute takes over.
func (t *takeover) execute(c *cobra.Command, receipts []*fence.Receipt) error {
	if t.force {
		fmt.Fprint(c.ErrOrStderr(), "The servers of ZooKeeper whose receipts are missing may run, or start. What "+
			"they acknowledge is lost, and clients of both ensembles see different data.\n")
		if err := confirm(c, t.yes, "force"); err != nil {
			return err
		}
	}
	text, err := json.Marshal(map[string]any{"receipts": receipts, "force": t.force})
	if err != nil {
		return err
	}
	done := new(body.TakenOver)
	if err := t.ask(c.Context(), http.MethodPost, text, done); err != nil {
		return err
	}
	if t.json {
		return json.NewEncoder(c.OutOrStdout()).Encode(done)
	}
	if done.Already {
		_, err = fmt.Fprintf(c.OutOrStdout(), "it was done before, at %s\n", done.Time)
		return err
	}
	_, err = fmt.Fprintf(c.OutOrStdout(), "the ensemble serves: %d znodes, %d sessions, zxid %s; %d transactions "+
		"were in the log of server %d alone; %g ms\n", done.Znodes, done.Sessions, done.Zxid, done.Tail, done.Server,
		done.TookMS)
	return err
}

// readReceipts reads files of receipts, and checks that they are whole.
func readReceipts(names []string) ([]*fence.Receipt, error) {
	all := []*fence.Receipt{}
	for _, name := range names {
		f, err := os.Open(name)
		if err != nil {
			return nil, cli.Usage(fmt.Errorf("--receipt: %w", err))
		}
		r := new(fence.Receipt)
		err = json.NewDecoder(io.LimitReader(f, fence.MaxReceipt)).Decode(r)
		_ = f.Close() // it was only read
		if err == nil {
			err = r.Check()
		}
		if err != nil {
			return nil, fmt.Errorf("%s is not what zk-lite takeover fence has printed: %w", name, err)
		}
		all = append(all, r)
	}
	return all, nil
}
