package cli

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/cmd/zk-lite/cli/fourletter"
	"github.com/zk-lite/zk-lite/cmd/zk-lite/cli/locate"
)

func statusCommand(g *globals) *cobra.Command {
	c := &cobra.Command{
		Use:   "status",
		Short: "Show the servers of an ensemble: roles, lag, latency, load",
		Long: `Ask every server how it is, by the four-letter words srvr and mntr. If one server is
named, it says which others there are: a zk-lite over HTTP, a ZooKeeper of release 3.5 or
later in /zookeeper/config. BEHIND is how many transactions a server lacks that another one has;
LATENCY is the shortest, mean and longest time of a request in milliseconds. A
dash is a value that a server does not report: ZooKeeper answers mntr only if its
4lw.commands.whitelist has it. The exit code is 1 if no server is a leader.`,
		Example: `  zk-lite status --server zk1:2181
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
		if len(servers) == 1 {
			servers = append(servers, g.otherServers(ctx, &servers[0], secure)...)
		}
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
		return noServerAt(server, nil)
	case fourletter.HasLeader(servers):
		return nil
	case len(servers) == 1 && servers[0].Err == nil:
		return fmt.Errorf("%s follows a leader that is not in the list; name all servers with --server",
			servers[0].Address)
	}
	return errors.New("no leader among the servers asked: is a majority of the ensemble up?")
}

// otherServers asks those that the only server of the connect string, or one that it has named before, names.
func (g *globals) otherServers(ctx context.Context, given *fourletter.Server, secure *tls.Config) []fourletter.Server {
	var others []string
	var silent []fourletter.Server
	e, err := new(locate.Ensemble), error(nil)
	if isZooKeeper := given.Version != "" && !strings.Contains(given.Version, "zk-lite"); !isZooKeeper {
		var f *locate.Finder
		if f, err = g.finder(); err == nil {
			e, err = f.Find(ctx, []string{given.Address})
		}
	} else {
		e.Servers = configured(ctx, g, given)
	}
	if err != nil {
		return nil // the table shows why, or who is missing
	}
	for _, s := range e.Servers {
		switch {
		case s.Client == given.Address:
		case s.Client == "":
			silent = append(silent, fourletter.Server{
				Address: fmt.Sprintf("server %d", s.ID), Err: errors.New("has published no address for clients"),
			})
		default:
			others = append(others, s.Client)
		}
	}
	if len(others) == 0 {
		return nil // a ZooKeeper whose server.N have no client port: the user has to name them
	}
	return append(fourletter.Look(ctx, others, secure), silent...)
}

// configTime bounds how long a server has to open a session and to answer what is in /zookeeper/config.
const configTime = 3 * time.Second

// configured are the servers of /zookeeper/config. The one that was asked may have another address there, which leads
// to the same place.
func configured(ctx context.Context, g *globals, given *fourletter.Server) (all []locate.Server) {
	if given.Err != nil || given.Role == "standalone" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, configTime)
	defer cancel()
	cl, err := g.connectTo(ctx, "--server", given.Address)
	if err != nil {
		return nil
	}
	defer hangUp(cl)
	text, _, err := cl.Ensemble(ctx)
	if err != nil {
		return nil
	}
	for _, s := range parseConfig(string(text)) {
		if sameServer(ctx, s.Client, given.Address) {
			s.Client = given.Address
		}
		all = append(all, s)
	}
	return all
}

// serverLine is a line of /zookeeper/config: id, host, ports and role, host and port for clients.
var serverLine = regexp.MustCompile(`(?m)^server\.(\d+)=(\[[^\]]*\]|[^:]*):[^;\n]*(?:;(?:(\S*):)?(\d+))?$`)

func parseConfig(text string) (all []locate.Server) {
	for _, m := range serverLine.FindAllStringSubmatch(text, -1) {
		id, err := strconv.Atoi(m[1])
		if err != nil {
			continue
		}
		s := locate.Server{ID: id}
		host := strings.Trim(m[3], "[]")
		if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
			host = strings.Trim(m[2], "[]")
		}
		if m[4] != "" {
			s.Client = net.JoinHostPort(host, m[4])
		}
		all = append(all, s)
	}
	return all
}

// sameServer reports whether two addresses lead to the same port.
func sameServer(ctx context.Context, a, b string) bool {
	hostA, portA, errA := net.SplitHostPort(a)
	hostB, portB, errB := net.SplitHostPort(b)
	if errA != nil || errB != nil || portA != portB {
		return false
	}
	ofA, errA := net.DefaultResolver.LookupHost(ctx, hostA)
	ofB, errB := net.DefaultResolver.LookupHost(ctx, hostB)
	common := func(ip string) bool { return slices.Contains(ofB, ip) }
	return errA == nil && errB == nil && slices.ContainsFunc(ofA, common)
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
			fmt.Fprintf(w, "%s\tunknown\t%s"+rest, s.Address, brief(c, s, s.Err))
		case s.Err != nil:
			fmt.Fprintf(w, "%s\tunreachable\t%s"+rest, s.Address, brief(c, s, rootCause(s.Err)))
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

// maxReason is how long a reason in the table may be, to keep the other columns in sight.
const maxReason = 60

// brief is a reason for the table. The whole one goes to standard error if it is long.
func brief(c *cobra.Command, s *fourletter.Server, err error) string {
	text := []rune(strings.TrimLeft(strings.TrimPrefix(err.Error(), s.Address), " :"))
	if len(text) <= maxReason {
		return "(" + string(text) + ")"
	}
	fmt.Fprintf(c.ErrOrStderr(), "%s: %s\n", s.Address, string(text))
	return "(" + strings.TrimRight(string(text[:maxReason-3]), " ,:;") + "...)"
}

// dash writes a number, or a dash if it is unknown.
func dash(n int64) string {
	if n < 0 {
		return "-"
	}
	return strconv.FormatInt(n, 10)
}
