package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/zk-lite/zk-lite/api/body"
	"github.com/zk-lite/zk-lite/cmd/zk-lite/cli/httpapi"
)

// mirrorPath is the resource of the mirror.
const mirrorPath = "/v1/mirror"

// mirrorTimeout is how long nothing may happen until the mirror follows: the origin's leader may take so long to begin
// a snapshot.
const mirrorTimeout = time.Minute

func mirrorCommand(g *globals) *cobra.Command {
	var from, file string
	var restart bool
	c := &cobra.Command{
		Use:   "mirror (--from HOST:PEERPORT[,...] | --from-config ZOO.CFG)",
		Short: "Mirror a running ZooKeeper ensemble",
		Long: `Have the servers of --http, which must be a new ensemble, mirror a running ZooKeeper
ensemble: their leader joins it as an observer, takes its state, follows every
transaction and compares the digests. It goes on when the command has ended, and when
leaders change; clients of the mirror can only read. To repeat the command does no harm.

Name the peer ports of all voters (2888 in server.N), or their observerMasterPorts. For
TLS and SASL on those ports the servers need the setting mirror.config. The command waits
until the mirror follows, and gives up when nothing happens for --timeout.`,
		Example: `  zk-lite mirror --from zk1:2888,zk2:2888,zk3:2888 --http http://new1:8080
  zk-lite mirror --from-config /etc/zookeeper/zoo.cfg
  zk-lite mirror --restart --from zk1:2888,zk2:2888,zk3:2888   # after a fault`,
		Args: noSuchCommand,
	}
	c.Flags().StringVar(&from, "from", "", "peer `addresses` of the ZooKeeper servers, separated by commas")
	c.Flags().StringVar(&file, "from-config", "", "a zoo.cfg, or dynamic configuration, `file` with these servers")
	c.Flags().BoolVar(&restart, "restart", false, "take the state again, also after a fault")
	g.operation(c, mirrorTimeout, func(c *cobra.Command, _ []string, api *httpapi.Client) error {
		servers, err := originServers(c, from, file)
		if err != nil {
			return err
		}
		text, err := json.Marshal(map[string]any{"from": servers, "restart": restart})
		if err != nil {
			return err
		}
		r := &httpapi.Request{Method: http.MethodPost, Target: mirrorPath, Repeatable: true, Body: text}
		if err := api.JSON(c.Context(), r, nil); err != nil {
			return err
		}
		now, err := awaitMirror(g, c, api)
		if err == nil && g.output.json() {
			return writeJSON(c.OutOrStdout(), now)
		}
		return err
	})
	g.add(c, "", mirrorStatusCommand, mirrorStopCommand)
	return c
}

// originServers are the peer addresses that the flags name.
func originServers(c *cobra.Command, from, file string) (servers []string, err error) {
	switch {
	case (from == "") == (file == ""):
		return nil, usagef("name the ZooKeeper servers by --from, or by --from-config")
	case from != "":
		for s := range strings.SplitSeq(from, ",") {
			servers = append(servers, strings.TrimSpace(s))
		}
		return servers, nil
	}
	secure := false
	if servers, secure, err = peersOf(file); err != nil {
		return nil, err
	}
	if secure {
		fmt.Fprintf(c.ErrOrStderr(), "%s asks for TLS or SASL between servers: the setting mirror.config of our "+
			"servers must name such a file\n", file)
	}
	return servers, nil
}

// peersOf reads the voters' peer addresses from the lines server.N=host:peerPort:electionPort[:role][;client] of a
// zoo.cfg, and of the dynamicConfigFile that it names. secure is whether servers prove themselves to each other.
func peersOf(name string) (servers []string, secure bool, err error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, false, usagef("--from-config: %w", err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for n := 1; lines.Scan(); n++ {
		key, value, _ := strings.Cut(lines.Text(), "=")
		key, value = strings.TrimSpace(key), strings.TrimSpace(value)
		switch {
		case key == "dynamicConfigFile":
			if !filepath.IsAbs(value) {
				value = filepath.Join(filepath.Dir(name), value)
			}
			if servers, _, err = peersOf(value); err != nil {
				return nil, false, fmt.Errorf("%s:%d: %w", name, n, err)
			}
		case key == "sslQuorum" || key == "quorum.auth.enableSasl":
			secure = secure || strings.EqualFold(value, "true")
		case strings.HasPrefix(key, "server."):
			peer, ok := peerOf(value)
			if !ok {
				return nil, false, usagef("--from-config: %s:%d: %q is not host:peerPort:electionPort", name, n, value)
			}
			if peer != "" {
				servers = append(servers, peer)
			}
		}
	}
	if err := lines.Err(); err != nil {
		return nil, false, usagef("--from-config: reading %s: %w", name, err)
	}
	if len(servers) == 0 {
		return nil, false, usagef("--from-config: %s has no line server.N=host:peerPort:electionPort; a ZooKeeper "+
			"without such lines is standalone, and lets no mirror in: see zk-lite import-zookeeper", name)
	}
	return servers, secure, nil
}

// peerOf is the peer address of a voter's line, empty for an observer. Of several addresses it is the first.
func peerOf(value string) (peer string, ok bool) {
	value, _, _ = strings.Cut(value, ";")
	value, _, _ = strings.Cut(value, "|")
	host, rest, ok := strings.Cut(value, ":")
	if bracket, after, found := strings.Cut(value, "]:"); found {
		host, rest, ok = strings.TrimPrefix(bracket, "["), after, strings.HasPrefix(bracket, "[")
	}
	ports := strings.Split(rest, ":")
	if !ok || host == "" || len(ports) < 2 || len(ports) > 3 || slices.Contains(ports, "") {
		return "", false
	}
	if len(ports) == 3 && strings.EqualFold(ports[2], "observer") {
		return "", true
	}
	return net.JoinHostPort(host, ports[0]), true
}

func mirrorNow(ctx context.Context, api *httpapi.Client) (now *body.Mirror, err error) {
	now = new(body.Mirror)
	err = api.JSON(ctx, &httpapi.Request{Method: http.MethodGet, Target: mirrorPath, Repeatable: true}, now)
	return now, err
}

// awaitMirror waits until the mirror follows, and prints how it comes to that.
func awaitMirror(g *globals, c *cobra.Command, api *httpapi.Client) (now *body.Mirror, err error) {
	note := newNote(c)
	defer note.clear()
	moved, before := time.Now(), ""
	shown := map[string]bool{}
	for {
		now, err = mirrorNow(c.Context(), api)
		if !mayAnswerLater(err) {
			return nil, err
		}
		text := ""
		if err == nil {
			text = progressOf(now)
		} else {
			now, text = new(body.Mirror), Message(err)
		}
		switch {
		case now.State == "off":
			return nil, errors.New("the mirror was stopped meanwhile")
		case now.Fault != "":
			return nil, fmt.Errorf("the mirror has stopped: %s; --restart takes the state again", now.Fault)
		case text != before:
			moved, before = time.Now(), text
		case time.Since(moved) > g.timeout:
			return nil, fmt.Errorf("it does not follow yet: %s; it goes on trying (zk-lite mirror status)", text)
		}
		note.show("%s", text)
		tell := slices.Contains([]string{"receiving", "loading", "following"}, now.State)
		if tell && !shown[now.State] && !g.output.json() {
			shown[now.State] = true
			note.clear()
			fmt.Fprintln(c.OutOrStdout(), text)
		}
		if now.State == "following" && now.Loaded {
			return now, nil
		}
		select {
		case <-time.After(pollEvery):
		case <-c.Context().Done():
			return nil, c.Context().Err()
		}
	}
}

// mayAnswerLater reports whether err is nil, or one of servers that may answer later: while they load a large snapshot,
// or elect a leader, they do not.
func mayAnswerLater(err error) bool {
	var none *httpapi.UnreachableError
	var p *httpapi.Problem
	return err == nil || errors.As(err, &none) || errors.As(err, &p) && p.Status >= http.StatusInternalServerError
}

// progressOf says in a line how the mirror stands.
func progressOf(m *body.Mirror) string {
	if m.Origin == nil {
		return "our ensemble has no leader"
	}
	o := m.Origin
	switch m.State {
	case "receiving":
		return fmt.Sprintf("connected to %s, the leader of epoch %d, which sends what is missing (%s)",
			o.Leader, o.Epoch, o.Sync)
	case "loading":
		return fmt.Sprintf("received %d znodes; %s of them are in our log", o.SnapshotZnodes, sizeText(o.SnapshotBytes))
	case "following":
		return fmt.Sprintf("following %s at zxid %s; %d digests compared, %d differing", o.Leader, m.Zxid,
			m.Digests.Compared, m.Digests.Differing)
	}
	return "connecting; " + m.Error
}

func mirrorStatusCommand(g *globals) *cobra.Command {
	c := &cobra.Command{
		Use:   "status",
		Short: "Show how the mirror of a ZooKeeper ensemble stands",
		Long: `Show how the mirror stands: where it is connected, the last zxid there and here, how far it
lags behind (from the stamp of ZooKeeper's leader until a transaction was applied), and
the digests that were compared. The exit code is 1 unless it follows.`,
		Example: `  zk-lite mirror status --http http://new1:8080
  zk-lite mirror status -o json | jq .digests`,
		Args: argCount(0, 0, 0),
	}
	return g.operation(c, defaultTimeout, func(c *cobra.Command, _ []string, api *httpapi.Client) error {
		now, err := mirrorNow(c.Context(), api)
		if err != nil {
			return err
		}
		if g.output.json() {
			err = writeJSON(c.OutOrStdout(), now)
		} else {
			err = printMirror(c.OutOrStdout(), now)
		}
		switch {
		case err != nil:
			return err
		case now.Fault != "":
			return fmt.Errorf("the mirror has stopped: %s; zk-lite mirror --restart takes the state again", now.Fault)
		case now.State == "off":
			return errors.New("nothing is mirrored")
		case now.State != "following":
			return errors.New("it does not follow: " + progressOf(now))
		}
		return nil
	})
}

func printMirror(out io.Writer, m *body.Mirror) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	line := func(name, format string, args ...any) { fmt.Fprintf(w, name+"\t"+format+"\n", args...) }
	line("state", "%s", m.State)
	if len(m.From) > 0 {
		line("from", "%s", strings.Join(m.From, ","))
		line("zxid here", "%s", orDash(m.Zxid))
	}
	if o := m.Origin; o != nil {
		behind := ""
		if o.Behind != nil {
			behind = fmt.Sprintf(" (%d more)", *o.Behind)
		}
		line("zxid there", "%s%s", orDash(o.Zxid), behind)
		line("leader there", "%s, epoch %d", orDash(o.Leader), o.Epoch)
		line("lag", "p50 %g ms, p99 %g ms, last %g ms", o.LagP50MS, o.LagP99MS, o.LagMS)
		line("transactions", "%d, in %s, since server %d started", o.Transactions,
			count(int(o.Connections), "connection"), m.Server)
	}
	if len(m.From) > 0 {
		d := &m.Digests
		line("digests", "%d compared, %d differing", d.Compared, d.Differing)
		if d.Differing > 0 {
			line("differing", "first zxid %s, last %s, since %s", d.First, d.Last, orDash(d.Since))
		}
		line("snapshots", "%d loaded", m.Loads)
		line("clients", "%s without an answer yet", count(m.Relays, "request"))
	}
	for _, f := range m.Findings {
		line("setting", "%s: %d with %s, as %s", f.Setting, f.Count, f.Problem, strings.Join(f.Some, ", "))
	}
	if m.Taken != nil {
		line("taken over", "%s", TakeoverText(m.Taken))
	}
	if m.Error != "" && m.Fault == "" {
		line("error", "%s", m.Error)
	}
	return w.Flush()
}

// TakeoverText says when and how a take-over was done.
func TakeoverText(t *body.TakeoverRecord) string {
	text := fmt.Sprintf("at %s, from %s", t.Time, strings.Join(t.From, ","))
	if t.Zxid != "" {
		text += fmt.Sprintf(", up to zxid %s in the log of server %d (%s there alone)", t.Zxid, t.Server,
			count(int(t.Tail), "transaction"))
	}
	if t.Forced {
		text += ", by force"
	}
	return text
}

func mirrorStopCommand(g *globals) *cobra.Command {
	var yes bool
	c := &cobra.Command{
		Use:   "stop",
		Short: "End the mirror; what it has brought stays",
		Long: `End the mirror. Znodes and sessions stay, and are our own from then on: clients can write.
The ZooKeeper ensemble goes on, so from then on the two differ.`,
		Args: argCount(0, 0, 0),
	}
	c.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	return g.operation(c, defaultTimeout, func(c *cobra.Command, _ []string, api *httpapi.Client) error {
		if !yes && !isTerminal(c.InOrStdin()) {
			return usagef("there is no terminal to ask at: --yes ends the mirror")
		}
		now, err := mirrorNow(c.Context(), api)
		switch {
		case err != nil:
			return err
		case now.State == "off":
			return &conflictError{"nothing is mirrored"}
		case !yes:
			err := askYes(c, fmt.Sprintf("End the mirror of %s at zxid %s? To begin it again takes a new ensemble.",
				strings.Join(now.From, ","), orDash(now.Zxid)))
			if err != nil {
				return err
			}
		}
		r := &httpapi.Request{Method: http.MethodDelete, Target: mirrorPath}
		if err := api.JSON(c.Context(), r, nil); err != nil {
			return err
		}
		if g.output.json() {
			return writeJSON(c.OutOrStdout(), now)
		}
		_, err = fmt.Fprintf(c.OutOrStdout(), "the mirror has ended, at zxid %s or later\n", orDash(now.Zxid))
		return err
	})
}
