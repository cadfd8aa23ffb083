package cli

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/zk-lite/zk-lite/cmd/zk-lite/cli/httpapi"
)

// clusterPath is the resource of the ensemble.
const clusterPath = "/v1/cluster"

// noServer is no server's id: the servers answer it when they know no leader.
const noServer = -1

// The roles of members.
const (
	roleLeader   = "leader"
	roleFollower = "follower"
	roleJoining  = "joining"
)

// memberJSON is a member of the ensemble, as the servers write it.
type memberJSON struct {
	ID     int    `json:"id"`
	Role   string `json:"role"` // leader, follower, observer or joining
	Peer   string `json:"peer,omitempty"`
	Client string `json:"client,omitempty"`
	HTTP   string `json:"http,omitempty"`
	// The release; Levels is the lowest and the highest feature level that it speaks.
	Version string `json:"version,omitempty"`
	Commit  string `json:"commit,omitempty"`
	Levels  []int  `json:"levels,omitempty"`
	Key     string `json:"key,omitempty"`
	// What the leader knows: Connected is nil if it has not answered, the others also if that is false.
	Connected   *bool     `json:"connected,omitempty"`
	Lag         *uint64   `json:"lag,omitempty"`
	LastContact *string   `json:"last_contact,omitempty"`
	Plan        *planJSON `json:"plan,omitempty"`
	// Of a server that was added now, unless it needs none.
	Token string     `json:"token,omitempty"`
	Until *time.Time `json:"token_until,omitempty"`
}

// planJSON is what the leader will do with a member by itself.
type planJSON struct {
	Action string `json:"action"` // promote or remove
	In     string `json:"in,omitempty"`
	Waits  string `json:"waits,omitempty"` // for what; empty: for the time alone
}

// votes reports whether the member has a vote.
func (m *memberJSON) votes() bool { return m.Role == roleLeader || m.Role == roleFollower }

// clusterJSON is the ensemble as one of its servers sees it.
type clusterJSON struct {
	Ensemble          string       `json:"ensemble,omitempty"` // its id; empty: not known
	Members           []memberJSON `json:"members"`
	Leader            int          `json:"leader"` // noServer: unknown
	Term              uint64       `json:"term"`
	Level             int          `json:"level"`         // feature level; 0: not known
	HighestLevel      int          `json:"highest_level"` // that all servers speak; 0: not known
	Voters            int          `json:"voters"`
	FailuresTolerated int          `json:"failures_tolerated"` // when all voters are connected
	// FailuresToleratedNow is what the leader says; nil: it has not answered, Incomplete says why.
	FailuresToleratedNow *int   `json:"failures_tolerated_now,omitempty"`
	Incomplete           string `json:"incomplete,omitempty"`
	Server               struct {
		ID       int  `json:"id"`
		Draining bool `json:"draining"`
	} `json:"server"`
}

// member finds a member; nil if it is none.
func (c *clusterJSON) member(id int) *memberJSON {
	i := slices.IndexFunc(c.Members, func(m memberJSON) bool { return m.ID == id })
	if i < 0 {
		return nil
	}
	return &c.Members[i]
}

// ids are the ids of the members.
func (c *clusterJSON) ids() (list []int) {
	for _, m := range c.Members {
		list = append(list, m.ID)
	}
	return list
}

// cluster reads the state of the ensemble: of a server that has asked its leader, if there is one.
func cluster(ctx context.Context, api *httpapi.Client) (c clusterJSON, err error) {
	ask := func(one *httpapi.Client) (c clusterJSON, err error) {
		err = one.JSON(ctx, &httpapi.Request{Method: http.MethodGet, Target: clusterPath, Repeatable: true}, &c)
		return c, err
	}
	if c, err = ask(api); err != nil || c.Incomplete == "" {
		return c, err
	}
	api.Each(func(one *httpapi.Client) bool {
		other, err := ask(one)
		if err != nil || other.Incomplete != "" {
			return false
		}
		c = other
		return true
	})
	return c, nil
}

// noMemberError reports a server that is not in the ensemble.
type noMemberError struct {
	id      int
	members []int
}

func (e *noMemberError) Error() string {
	return fmt.Sprintf("there is no server %d in the ensemble; its members are %v; "+
		"`zk-lite member list` shows them", e.id, e.members)
}

// parseServerID reads the id of a server. The servers know how large it may be.
func parseServerID(text string) (int, error) {
	id, err := strconv.Atoi(text)
	if err != nil || id < 0 {
		return 0, usagef("%q is not a server id: want a number, as in server.N", text)
	}
	return id, nil
}

func (a *app) memberCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "member",
		Short: "List, add, remove and promote servers of the ensemble",
		Long:  `List, add, remove and promote servers of a running ensemble, and let in new keys, over the HTTP API.`,
		Example: `  zk-lite member list
  zk-lite member add 4 "zk4.example:2888:3888;2181"
  zk-lite member promote 4
  zk-lite member remove 1`,
		Args: noSuchCommand,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(a.memberListCommand(), a.memberAddCommand(), a.memberRemoveCommand(),
		a.memberPromoteCommand(), a.memberTokenCommand())
	return c
}

// pollEvery is the time between two requests of until.
const pollEvery = 200 * time.Millisecond

// until calls look until that reports done, at most for the timeout. It reports whether
// it was done in time.
func (a *app) until(ctx context.Context, look func(context.Context) (done bool, err error)) (bool, error) {
	limit := time.NewTimer(a.timeout)
	defer limit.Stop()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		if done, err := look(ctx); done || err != nil {
			return done, err
		}
		select {
		case <-tick.C:
		case <-limit.C:
			return false, nil
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
}
