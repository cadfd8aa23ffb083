package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/zk-lite/zk-lite/cmd/zk-lite/cli/httpapi"
)

// The causes of an expired session that decide which server's is shown.
const (
	expiredByServer  = "server"
	expiredElsewhere = "elsewhere"
)

// expiredSession is a session that has expired, as a server writes it; after merge, as all together know it.
type expiredSession struct {
	At             time.Time  `json:"at"`
	Session        string     `json:"session"`
	TimeoutMS      float64    `json:"timeout_ms"`
	Server         int        `json:"server"` // that carried it
	Ephemerals     int        `json:"ephemerals"`
	Paths          []string   `json:"paths,omitempty"` // of the first of them
	Cause          string     `json:"cause"`
	Heard          *time.Time `json:"heard,omitempty"`
	HeardBy        *int       `json:"heard_by,omitempty"`
	ServerSilentMS float64    `json:"server_silent_ms,omitempty"`
	Connected      bool       `json:"connected,omitempty"`
	LastByte       *time.Time `json:"last_byte,omitempty"`
	Ended          *time.Time `json:"connection_ended,omitempty"`
	EndReason      string     `json:"connection_end_reason,omitempty"`
	Watches        int        `json:"watches,omitempty"`
	PausedMS       float64    `json:"paused_ms,omitempty"`
}

func (a *app) expiredCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "expired",
		Short: "Show the sessions that have expired, and why",
		Long: `Show the newest sessions that have expired, the newest first, and why:

  server        the leader had not heard of the server that carried it either
  paused        that server had stood still
  disconnected  its connection had ended, and its client did not come back
  silent        nothing came: the client or the network to it had stopped
  elsewhere     the server that carried it knows, and has not answered

Name the URLs of all servers: the leader knows when a client was last heard, and the
server that carried the session what became of its connection.`,
		Example: `  zk-lite expired --http http://zk1:8080,http://zk2:8080,http://zk3:8080
  zk-lite expired -o json | jq -r 'select(.ephemerals > 0) | .session'`,
		Args: argCount(0, 0, 0),
	}
	limit := c.Flags().IntP("limit", "n", 50, "show at most so many")
	return a.operation(c, defaultTimeout, func(c *cobra.Command, _ []string, api *httpapi.Client) error {
		all, err := expiredSessions(c.Context(), api)
		return cmp.Or(showNewest(a, c.OutOrStdout(), all, *limit, printExpired), err)
	})
}

// expiredSessions asks all servers. The error is that of the last server that did not answer.
func expiredSessions(ctx context.Context, api *httpapi.Client) ([]expiredSession, error) {
	pages, err := askEach[struct{ Items []expiredSession }](ctx, api, "/v1/expired-sessions")
	merged := map[string]*expiredSession{}
	for _, p := range pages {
		for i := range p.Items {
			x := &p.Items[i]
			if have := merged[x.Session]; have != nil {
				have.merge(x)
			} else {
				merged[x.Session] = x
			}
		}
	}
	var all []expiredSession
	for _, x := range merged {
		all = append(all, *x)
	}
	slices.SortFunc(all, func(a, b expiredSession) int {
		return cmp.Or(b.At.Compare(a.At), cmp.Compare(a.Session, b.Session))
	})
	return all, err
}

// merge adds what another server knows of the same session.
func (x *expiredSession) merge(o *expiredSession) {
	if o.Heard != nil {
		x.Heard, x.HeardBy, x.ServerSilentMS = o.Heard, o.HeardBy, o.ServerSilentMS
	}
	if o.Cause != expiredElsewhere && o.Cause != expiredByServer {
		x.Connected, x.LastByte, x.Ended, x.EndReason = o.Connected, o.LastByte, o.Ended, o.EndReason
		x.Watches, x.PausedMS = o.Watches, o.PausedMS
	}
	// That its server was not heard explains what that server saw.
	if x.Cause == expiredElsewhere || o.Cause == expiredByServer {
		x.Cause = o.Cause
	}
}

func printExpired(out io.Writer, all []expiredSession) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "AT\tSESSION\tSERVER\tCAUSE\tTIMEOUT\tEPHEMERALS\tWATCHES\tKNOWN")
	for i := range all {
		x := &all[i]
		fmt.Fprintf(w, "%s\t%s\t%d\t%s\t%.0f ms\t%d\t%d\t%s\n", x.At.Format(time.RFC3339), x.Session, x.Server, x.Cause,
			x.TimeoutMS, x.Ephemerals, x.Watches, strings.Join(x.known(), ", "))
	}
	return w.Flush()
}

// known is what is known of why and of what went with it, in words.
func (x *expiredSession) known() (list []string) {
	before := func(t time.Time) string { return x.At.Sub(t).Round(time.Millisecond).String() + " before" }
	if x.Heard != nil {
		text := "heard " + before(*x.Heard)
		if x.HeardBy != nil {
			text += fmt.Sprintf(" by server %d", *x.HeardBy)
		}
		list = append(list, text)
	}
	if x.ServerSilentMS > 0 {
		list = append(list, fmt.Sprintf("its server heard %.0f ms before", x.ServerSilentMS))
	}
	if x.Ended != nil {
		list = append(list, "connection ended "+before(*x.Ended)+": "+x.EndReason)
	}
	if x.LastByte != nil {
		list = append(list, "last byte "+before(*x.LastByte))
	}
	if x.PausedMS > 0 {
		list = append(list, fmt.Sprintf("its server stood still for %.0f ms", x.PausedMS))
	}
	if len(x.Paths) > 0 {
		text := "took " + strings.Join(x.Paths, " ")
		if more := x.Ephemerals - len(x.Paths); more > 0 {
			text += fmt.Sprintf(" and %d more", more)
		}
		list = append(list, text)
	}
	return list
}
