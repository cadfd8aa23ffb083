package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/zk-lite/zk-lite/cmd/zk-lite/cli/httpapi"
)

// slowPage is a page of a server's slow requests, or of the slow entries that it has proposed.
type slowPage struct {
	Server    int           `json:"server"`
	LeadsTerm uint64        `json:"leads_term"` // 0: it does not lead
	Items     []slowRequest `json:"items"`
}

// slowRequest is a slow request, as the servers write it; an entry has fewer fields.
type slowRequest struct {
	Server      int                `json:"server"`
	At          time.Time          `json:"at"`
	Port        string             `json:"port"`
	Operation   string             `json:"operation"`
	Path        string             `json:"path,omitempty"`
	Session     string             `json:"session,omitempty"`
	Address     string             `json:"address"`
	Traceparent string             `json:"traceparent,omitempty"`
	TookMS      float64            `json:"took_ms"`
	StagesMS    map[string]float64 `json:"stages_ms"`
	Index       uint64             `json:"index,omitempty"`
	Term        uint64             `json:"term,omitempty"`
	ProcessorMS float64            `json:"processor_wait_ms"`
	Changed     bool               `json:"leader_changed"`
	Cause       string             `json:"cause"`
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

func (a *app) slowCommand() *cobra.Command {
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

The cause is the longest stage, or election or processor where that explains it. Name the
URLs of all servers: only the leader of that time can divide its part, which is else one
stage, leader.`,
		Example: `  zk-lite slow --http http://zk1:8080,http://zk2:8080,http://zk3:8080
  zk-lite slow -o json | jq -r 'select(.cause == "disk") | .at'`,
		Args: argCount(0, 0, 0),
	}
	limit := c.Flags().IntP("limit", "n", 50, "show at most so many")
	return a.operation(c, defaultTimeout, func(c *cobra.Command, _ []string, api *httpapi.Client) error {
		requests, err := slowRequests(c.Context(), api)
		return cmp.Or(showNewest(a, c.OutOrStdout(), requests, *limit, printSlow), err)
	})
}

// showNewest prints the first items, at most limit: a line of JSON each, or a table.
func showNewest[T any](a *app, out io.Writer, all []T, limit int, table func(io.Writer, []T) error) error {
	all = all[:min(len(all), max(limit, 0))]
	if !a.json() {
		return table(out, all)
	}
	for i := range all {
		if err := writeJSON(out, &all[i]); err != nil {
			return err
		}
	}
	return nil
}

// slowRequests asks all servers. The error is that of the last server that did not answer.
func slowRequests(ctx context.Context, api *httpapi.Client) ([]slowRequest, error) {
	pages, err := askEach[slowPage](ctx, api, "/v1/slow/requests")
	entries, err2 := askEach[slowPage](ctx, api, "/v1/slow/entries")
	var all []slowRequest
	for _, p := range pages {
		for _, r := range p.Items {
			r.Server = p.Server
			r.divide(entries)
			all = append(all, r)
		}
	}
	slices.SortStableFunc(all, func(a, b slowRequest) int { return b.At.Compare(a.At) })
	return all, cmp.Or(err, err2)
}

// askEach gets a resource from each server; what some have answered is returned with another's error.
func askEach[T any](ctx context.Context, api *httpapi.Client, target string) (all []T, err error) {
	api.Each(func(one *httpapi.Client) bool {
		var answer T
		r := &httpapi.Request{Method: http.MethodGet, Target: target, Repeatable: true}
		if e := one.JSON(ctx, r, &answer); e != nil {
			err = e
		} else {
			all = append(all, answer)
		}
		return false
	})
	return all, err
}

// divide divides the stage leader by what the leader of that time knows. What the leader does not list took it a
// quarter of the threshold at most.
func (r *slowRequest) divide(leaders []slowPage) {
	whole := r.StagesMS[stageLeader]
	for i := range leaders {
		at := slices.IndexFunc(leaders[i].Items, func(e slowRequest) bool {
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
