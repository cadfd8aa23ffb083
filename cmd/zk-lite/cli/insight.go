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

	"github.com/zk-lite/zk-lite/api/body"
	"github.com/zk-lite/zk-lite/cmd/zk-lite/cli/httpapi"
)

// slowRequest is a slow request with the server that has it.
type slowRequest struct {
	Server int `json:"server"`
	body.SlowRequest
	ID *struct{} `json:"id,omitempty"` // nil: leaves out the id, which is the server's own
}

// The stages, in their order. The servers know the leader's part of other servers' requests as one,
// and the network not.
const (
	stageLeader  = "leader"
	stageNetwork = "network"
)

var (
	leaderStages = []string{"propose", "disk", "majority"}
	allStages    = []string{"queue", stageLeader, "propose", "disk", "majority", stageNetwork, "apply", "reply"}
)

func slowCommand(g *globals) *cobra.Command {
	c := &cobra.Command{
		Use:   "slow",
		Short: "Show the newest slow requests, and where they were slow",
		Long: `Show the newest requests that took longer than the servers' logger.slowRequests, the
newest first, and the stages of their way that took the time:

  queue     until the command was sent to the leader; all of a read
  propose   until the leader proposed it: the entry before was not through
  disk      until it was on the leader's disk
  majority  until it was on the disks of a majority, and they had said so
  network   from the server to the leader and back
  apply     until the server had applied it
  reply     until the client had taken the reply

The cause is the longest stage, or election or processor where that explains it. Only the
leader of that time can divide its part, which is one stage, leader, if it does not answer.`,
		Example: `  zk-lite slow --server zk1:2181
  zk-lite slow -o json | jq -r 'select(.cause == "disk") | .at'`,
		Args: argCount(0, 0, 0),
	}
	limit := c.Flags().IntP("limit", "n", 50, "show at most so many")
	return g.operation(c, defaultTimeout, func(c *cobra.Command, _ []string, api *httpapi.Client) error {
		requests, err := slowRequests(c.Context(), api)
		return cmp.Or(showNewest(g.output, c.OutOrStdout(), requests, *limit, printSlow), err)
	})
}

// slowRequests asks all servers. The error is that of those that did not answer.
func slowRequests(ctx context.Context, api *httpapi.Client) ([]slowRequest, error) {
	pages, err := askEach[body.Newest[body.SlowRequest]](ctx, api, "/v1/slow/requests?")
	entries, err2 := askEach[body.Newest[body.SlowEntry]](ctx, api, "/v1/slow/entries?")
	var all []slowRequest
	for _, p := range pages {
		for _, r := range p.Items {
			divide(&r, entries)
			all = append(all, slowRequest{Server: p.Server, SlowRequest: r})
		}
	}
	slices.SortStableFunc(all, func(a, b slowRequest) int { return b.At.Compare(a.At) })
	return all, cmp.Or(err, err2)
}

// divide divides the stage leader by what the leader of that time knows. What the leader does not list took it a
// quarter of the threshold at most.
func divide(r *body.SlowRequest, leaders []body.Newest[body.SlowEntry]) {
	whole := r.StagesMS[stageLeader]
	for i := range leaders {
		at := slices.IndexFunc(leaders[i].Items, func(e body.SlowEntry) bool {
			return e.Index == r.Index && e.Term == r.Term
		})
		if whole == 0 || at < 0 && leaders[i].LeadsTerm != r.Term {
			continue
		}
		delete(r.StagesMS, stageLeader)
		for _, s := range leaderStages {
			if at >= 0 {
				r.StagesMS[s] = min(leaders[i].Items[at].StagesMS[s], whole)
				whole -= r.StagesMS[s]
			}
		}
		r.StagesMS[stageNetwork] = whole
		if r.Cause == stageLeader {
			r.Cause = slices.MaxFunc(append(slices.Clone(leaderStages), stageNetwork), func(a, b string) int {
				return cmp.Compare(r.StagesMS[a], r.StagesMS[b])
			})
		}
		return
	}
}

func printSlow(out io.Writer, requests []slowRequest) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "AT\tSERVER\tTOOK\tCAUSE\tOPERATION\tPATH\tCLIENT\tSTAGES")
	for i := range requests {
		r := &requests[i]
		var stages []string
		for _, s := range allStages {
			if ms := r.StagesMS[s]; ms >= 1 {
				stages = append(stages, fmt.Sprintf("%s %.0f ms", s, ms))
			}
		}
		if r.ProcessorMS >= 1 {
			stages = append(stages, fmt.Sprintf("(processor %.0f ms)", r.ProcessorMS))
		}
		if r.Traceparent != "" {
			stages = append(stages, r.Traceparent)
		}
		fmt.Fprintf(w, "%s\t%d\t%.0f ms\t%s\t%s\t%s\t%s\t%s\n", r.At.Format(time.RFC3339), r.Server, r.TookMS, r.Cause,
			r.Operation, orDash(r.Path), r.Address, strings.Join(stages, ", "))
	}
	return w.Flush()
}

// The causes of an expired session that decide which server's is shown.
const (
	expiredByServer  = "server"
	expiredElsewhere = "elsewhere"
)

// expiredSession is a session that has expired, as all servers together know it.
type expiredSession struct {
	body.ExpiredSession
	ID *struct{} `json:"id,omitempty"` // nil: leaves out the id, which is each server's own
}

func expiredCommand(g *globals) *cobra.Command {
	c := &cobra.Command{
		Use:   "expired",
		Short: "Show the sessions that have expired, whose they were, and why",
		Long: `Show the newest sessions that have expired, the newest first, whose they were, and why:

  server        the leader had not heard of the server that carried it either
  paused        that server had stood still
  disconnected  its connection had ended, and its client did not come back
  silent        nothing came: the client or the network to it had stopped
  elsewhere     the server that carried it knows, and has not answered

All servers are asked: the leader knows when a client was last heard, and the server that
carried the session how its connection ended.`,
		Example: `  zk-lite expired --server zk1:2181
  zk-lite expired -o json | jq -r 'select(.ephemerals > 0) | .session'`,
		Args: argCount(0, 0, 0),
	}
	limit := c.Flags().IntP("limit", "n", 50, "show at most so many")
	return g.operation(c, defaultTimeout, func(c *cobra.Command, _ []string, api *httpapi.Client) error {
		all, err := expiredSessions(c.Context(), api)
		return cmp.Or(showNewest(g.output, c.OutOrStdout(), all, *limit, printExpired), err)
	})
}

// expiredSessions asks all servers. The error is that of those that did not answer.
func expiredSessions(ctx context.Context, api *httpapi.Client) ([]expiredSession, error) {
	pages, err := askEach[body.Newest[body.ExpiredSession]](ctx, api, "/v1/expired-sessions?")
	merged := map[string]*expiredSession{}
	for _, p := range pages {
		for i := range p.Items {
			x := &p.Items[i]
			if have := merged[x.Session]; have != nil {
				have.merge(x)
			} else {
				merged[x.Session] = &expiredSession{ExpiredSession: *x}
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
func (x *expiredSession) merge(o *body.ExpiredSession) {
	if o.Heard != nil {
		x.Heard, x.HeardBy, x.ServerSilentMS = o.Heard, o.HeardBy, o.ServerSilentMS
	}
	if o.Address != "" {
		x.Who = o.Who
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
	fmt.Fprintln(w, "AT\tSESSION\tADDRESS\tIDENTITY\tSERVER\tCAUSE\tTIMEOUT\tEPHEMERALS\tWATCHES\tKNOWN")
	for i := range all {
		x := &all[i]
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%d\t%s\t%.0f ms\t%d\t%d\t%s\n", x.At.Format(time.RFC3339), x.Session,
			orDash(x.Address), identityText(x.Identities), x.Server, x.Cause, x.TimeoutMS, x.Ephemerals, x.Watches,
			strings.Join(x.known(), ", "))
	}
	return w.Flush()
}

// known is the known reasons and losses, in words.
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
