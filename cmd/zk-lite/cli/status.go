package cli

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/zk-lite/zk-lite/api/body"
	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/cmd/zk-lite/cli/fourletter"
	"github.com/zk-lite/zk-lite/cmd/zk-lite/cli/httpapi"
)

func statusCommand(g *globals) *cobra.Command {
	c := &cobra.Command{
		Use:   "status",
		Short: "Show the servers of an ensemble: roles, lag, latency, load",
		Long: `Ask every server of the connect string how it is, by the four-letter words srvr
and mntr. BEHIND is how many transactions a server lacks that another one has;
LATENCY is the shortest, mean and longest time of a request in milliseconds. A
dash is a value that a server does not report: ZooKeeper answers mntr only if its
4lw.commands.whitelist has it. The exit code is 1 if no server is a leader.`,
		Example: `  zk-lite status --server zk1:2181,zk2:2181,zk3:2181
  zk-lite status -o json | jq -r 'select(.role == "leader") | .server'`,
		Args: argCount(0, 0, 0),
	}
	return g.command(c, func(c *cobra.Command, _ []string) error {
		ctx, cancel := context.WithTimeout(c.Context(), g.timeout)
		defer cancel()
		addresses, err := addressesOf(ctx, g.server)
		if err != nil {
			return err
		}
		secure, err := g.tls.Config()
		if err != nil {
			return err
		}
		servers := fourletter.Look(ctx, addresses, secure)
		if err := printStatus(g.output, c, servers); err != nil {
			return err
		}
		return verdict(servers, g.server)
	})
}

// verdict is the error if there is no leader.
func verdict(servers []fourletter.Server, server string) error {
	up := false
	for i := range servers {
		up = up || servers[i].Up
	}
	switch {
	case !up:
		return &noServerError{fmt.Sprintf("no server at %s; start one with `zk-lite dev`, "+
			"or name another with --server", hostsOf(server))}
	case fourletter.HasLeader(servers):
		return nil
	case len(servers) == 1 && servers[0].Err == nil:
		return fmt.Errorf("%s follows a leader that is not in the list; name all servers with --server",
			servers[0].Address)
	}
	return errors.New("no leader among the servers asked: is a majority of the ensemble up?")
}

// addressesOf splits a connect string as the client does.
func addressesOf(ctx context.Context, server string) (list []string, err error) {
	if rest, isService := strings.CutPrefix(server, client.ServicePrefix); isService {
		service, _, _ := strings.Cut(rest, "/")
		_, records, err := net.DefaultResolver.LookupSRV(ctx, "", "", service)
		for _, r := range records {
			list = append(list, net.JoinHostPort(strings.TrimSuffix(r.Target, "."), strconv.Itoa(int(r.Port))))
		}
		if err != nil {
			return nil, &noServerError{fmt.Sprintf("no servers of %s are found: %v", service, rootCause(err))}
		}
		return list, nil
	}
	for item := range strings.SplitSeq(hostsOf(server), ",") {
		item = strings.TrimSpace(item)
		host, port, err := net.SplitHostPort(item)
		if err != nil {
			host, port = strings.Trim(item, "[]"), client.DefaultPort
		}
		if _, err := strconv.ParseUint(port, 10, 16); err != nil || host == "" {
			return nil, usagef("--server %q: want host:port,host:port", server)
		}
		list = append(list, net.JoinHostPort(host, port))
	}
	return list, nil
}

// serverJSON is a server in JSON; values that it does not report are left out.
type serverJSON struct {
	Server      string       `json:"server"`
	Error       string       `json:"error,omitempty"`
	Role        string       `json:"role,omitempty"`
	Version     string       `json:"version,omitempty"`
	Zxid        *hexadecimal `json:"zxid,omitempty"`
	Behind      *int64       `json:"behind,omitempty"`
	LatencyMS   []float64    `json:"latency_ms,omitempty"` // shortest, mean, longest
	Connections *int64       `json:"connections,omitempty"`
	Outstanding *int64       `json:"outstanding,omitempty"`
	Znodes      *int64       `json:"znodes,omitempty"`
	Sessions    *int64       `json:"sessions,omitempty"`
	Ephemerals  *int64       `json:"ephemerals,omitempty"`
	Watches     *int64       `json:"watches,omitempty"`
	Bytes       *int64       `json:"bytes,omitempty"`
	Mirrors     bool         `json:"mirrors,omitempty"` // a ZooKeeper ensemble
	// CertificateDays are left until the certificate expires that the server shows clients, PeerCertificateDays
	// until that for other servers does.
	CertificateDays     *float64 `json:"certificate_days,omitempty"`
	PeerCertificateDays *float64 `json:"peer_certificate_days,omitempty"`
}

func newServerJSON(s *fourletter.Server, all []fourletter.Server) serverJSON {
	v := serverJSON{Server: s.Address}
	if s.Err != nil {
		v.Error = s.Err.Error()
		return v
	}
	known := func(n int64) *int64 {
		if n < 0 {
			return nil
		}
		return &n
	}
	zxid := hexadecimal(s.Zxid)
	v.Role, v.Version, v.Zxid = s.Role, s.Version, &zxid
	v.LatencyMS = []float64{s.MinLatency, s.AvgLatency, s.MaxLatency}
	v.Behind, v.Connections, v.Outstanding = known(s.Behind(all)), known(s.Connections), known(s.Outstanding)
	v.Znodes, v.Sessions, v.Ephemerals = known(s.Znodes), known(s.Sessions), known(s.Ephemerals)
	v.Watches, v.Bytes, v.Mirrors = known(s.Watches), known(s.Bytes), s.Mirrors
	v.CertificateDays, v.PeerCertificateDays = daysOf(s.CertificateSeconds), daysOf(s.PeerCertificateSeconds)
	return v
}

func daysOf(seconds *float64) *float64 {
	if seconds == nil {
		return nil
	}
	days := math.Round(*seconds/86400*10) / 10
	return &days
}

func printStatus(as output, c *cobra.Command, servers []fourletter.Server) error {
	if as.json() {
		for i := range servers {
			if err := writeJSON(c.OutOrStdout(), newServerJSON(&servers[i], servers)); err != nil {
				return err
			}
		}
		return nil
	}
	var text bytes.Buffer
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "SERVER\tROLE\tVERSION\tZXID\tBEHIND\tLATENCY\tCONNECTIONS\tZNODES\tSESSIONS\tWATCHES")
	const rest = "\t\t\t\t\t\t\t\n" // a row with fewer cells would break the columns
	silent := false
	for i := range servers {
		s := &servers[i]
		switch {
		case errors.Is(s.Err, fourletter.ErrNotServing):
			fmt.Fprintf(w, "%s\tnot serving\t(no leader, or drained)"+rest, s.Address)
		case s.Err != nil && s.Up:
			fmt.Fprintf(w, "%s\tunknown\t(%v)"+rest, s.Address, s.Err)
		case s.Err != nil:
			fmt.Fprintf(w, "%s\tunreachable\t(%v)"+rest, s.Address, rootCause(s.Err))
		default:
			silent = silent || s.Sessions < 0
			fmt.Fprintf(w, "%s\t%s\t%s\t%v\t%s\t%g/%g/%g\t%s\t%s\t%s\t%s\n", s.Address, s.Role, s.Version,
				hexadecimal(s.Zxid), dash(s.Behind(servers)), s.MinLatency, s.AvgLatency, s.MaxLatency,
				dash(s.Connections), dash(s.Znodes), dash(s.Sessions), dash(s.Watches))
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for line := range strings.Lines(text.String()) {
		if _, err := fmt.Fprintln(c.OutOrStdout(), strings.TrimRight(line, " \n")); err != nil {
			return err
		}
	}
	for i := range servers {
		v := newServerJSON(&servers[i], servers)
		if v.Mirrors {
			fmt.Fprintf(c.OutOrStdout(), "%s mirrors a ZooKeeper ensemble: see zk-lite mirror status\n", v.Server)
		}
		if v.CertificateDays != nil {
			fmt.Fprintf(c.OutOrStdout(), "the certificate of %s expires in %g days\n", v.Server, *v.CertificateDays)
		}
		if v.PeerCertificateDays != nil {
			fmt.Fprintf(c.OutOrStdout(), "the certificate of %s for other servers expires in %g days\n",
				v.Server, *v.PeerCertificateDays)
		}
	}
	if silent {
		fmt.Fprintln(c.ErrOrStderr(), "sessions and watches show where 4lw.commands.whitelist has mntr: "+
			"4lw.commands.whitelist=srvr,mntr")
	}
	return nil
}

// dash writes a number, or a dash if it is unknown.
func dash(n int64) string {
	if n < 0 {
		return "-"
	}
	return strconv.FormatInt(n, 10)
}

// The kinds of users, in the order of the table. The first is all of them together.
var topKinds = []string{"all", "session", "address", "path"}

// topWatches is the measure that has no time.
const topWatches = "watches"

// topUser is a session, an address or a path, as all servers together know it.
type topUser struct {
	Kind  string  `json:"kind"`
	Name  string  `json:"name"`
	By    string  `json:"by"`
	Count float64 `json:"count"` // per second, but for watches
	Over  float64 `json:"over"`  // what Count may be too large by
	Share float64 `json:"share"` // of all, 0 to 1
}

func topCommand(g *globals) *cobra.Command {
	c := &cobra.Command{
		Use:   "top [--tree [PATH]]",
		Short: "Show the sessions, addresses and paths that use the servers most, or the largest subtrees",
		Long: `Show the sessions, client addresses and paths with the most requests (or bytes) per second,
over the last one or two minutes, or with the most watches now. The servers count a sample
in bounded memory, so small figures are rough; pings are left out, and a transaction counts
for its first path. What a figure may be too large by, if that is a tenth of it or more,
stands behind it. Name the URLs of all servers: each counts its own clients.

With --tree: the subtrees at and below PATH (default /) with the most znodes, bytes of data
or watches. A subtree is part of those that it is in. The servers keep the sizes, so this
costs little in a tree of millions; to order by watches they look at all watched paths.`,
		Example: `  zk-lite top --http http://zk1:8080,http://zk2:8080,http://zk3:8080
  zk-lite top --by bytes -n 3 -o json | jq -r 'select(.kind == "path") | .name'
  watch zk-lite top --by watches
  zk-lite top --tree /app --by bytes`,
		Args: argCount(0, 1, 0),
	}
	limit := c.Flags().IntP("limit", "n", 10, "show at most so many of each kind")
	by := c.Flags().String("by", "", "order by `requests|bytes|watches`; with --tree by znodes, bytes or watches")
	tree := c.Flags().Bool("tree", false, "show the largest subtrees")
	return g.operation(c, defaultTimeout, func(c *cobra.Command, args []string, api *httpapi.Client) error {
		if *tree {
			return topTree(g, c, api, append(args, "/")[0], cmp.Or(*by, "znodes"), *limit)
		}
		if len(args) > 0 {
			return usagef("%s: a path goes with --tree", args[0])
		}
		*by = cmp.Or(*by, "requests")
		if !slices.Contains([]string{"requests", "bytes", topWatches}, *by) {
			return usagef("--by %s: want requests, bytes or watches", *by)
		}
		users, err := topUsers(c.Context(), api, *by, *limit)
		return cmp.Or(showNewest(g.output, c.OutOrStdout(), users, len(users), printTop), err)
	})
}

// topUsers asks all servers, and adds up what they answer. The error is that of the last one that did not.
func topUsers(ctx context.Context, api *httpapi.Client, by string, limit int) ([]topUser, error) {
	pages, err := askEach[body.Top](ctx, api, "/v1/top?limit=100&by="+url.QueryEscape(by))
	return mergeTop(pages, by, limit), err
}

func mergeTop(pages []body.Top, by string, limit int) (all []topUser) {
	merged := map[string]map[string]topUser{} // kind → name
	for _, p := range pages {
		seconds := p.Seconds
		if by == topWatches {
			seconds = 1
		}
		for i, users := range [][]body.User{{{Count: p.Total}}, p.Sessions, p.Addresses, p.Paths} {
			kind := topKinds[i]
			if merged[kind] == nil {
				merged[kind] = map[string]topUser{}
			}
			for _, u := range users {
				have := merged[kind][u.Name]
				merged[kind][u.Name] = topUser{
					Kind: kind, Name: u.Name, By: by,
					Count: have.Count + float64(u.Count)/seconds, Over: have.Over + float64(u.Over)/seconds,
				}
			}
		}
	}
	whole := merged[topKinds[0]][""].Count
	for _, kind := range topKinds {
		list := slices.SortedFunc(maps.Values(merged[kind]), func(a, b topUser) int {
			return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Name, b.Name))
		})
		for _, u := range list[:min(len(list), max(limit, 0))] {
			if whole > 0 {
				u.Share = u.Count / whole
			}
			all = append(all, u)
		}
	}
	return all
}

func printTop(out io.Writer, users []topUser) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for i, u := range users {
		unit := strings.ToUpper(u.By)
		if u.By != topWatches {
			unit += "/S"
		}
		if i == 0 {
			fmt.Fprintf(w, "KIND\tNAME\t%s\tSHARE\n", unit)
		}
		over := ""
		if u.Over*10 >= u.Count && u.Over > 0 {
			over = fmt.Sprintf(" (or %.1f)", u.Count-u.Over)
		}
		fmt.Fprintf(w, "%s\t%s\t%.1f%s\t%.0f %%\n", u.Kind, orDash(u.Name), u.Count, over, 100*u.Share)
	}
	return w.Flush()
}
