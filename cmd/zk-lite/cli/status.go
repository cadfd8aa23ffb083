package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/cmd/zk-lite/cli/fourletter"
)

func (a *app) statusCommand() *cobra.Command {
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
	return a.command(c, func(c *cobra.Command, _ []string) error {
		addresses, err := addressesOf(a.server)
		if err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(c.Context(), a.timeout)
		defer cancel()
		secure, err := a.tls.Config()
		if err != nil {
			return err
		}
		servers := fourletter.Look(ctx, addresses, secure)
		if err := a.printStatus(c, servers); err != nil {
			return err
		}
		return verdict(servers, a.server)
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
func addressesOf(server string) ([]string, error) {
	var list []string
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
	v.Watches, v.Bytes = known(s.Watches), known(s.Bytes)
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

func (a *app) printStatus(c *cobra.Command, servers []fourletter.Server) error {
	if a.json() {
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
