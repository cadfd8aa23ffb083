package labcli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/zk-lite/zk-lite/lab/election"
)

// outcomes is the JSON of the scenario command.
type outcomes struct {
	Algorithm  string            `json:"algorithm"`
	N          int               `json:"n"`
	Promised   int               `json:"promised_events"`
	Simulator  election.Outcome  `json:"simulator"`
	Ensemble   *election.Outcome `json:"ensemble"` // null without --servers
	Seed       uint64            `json:"seed"`
	Violations []string          `json:"violations"`
}

func scenarioCommand(o Options) *cobra.Command {
	var k election.KillLeader
	var seed uint64
	var asJSON bool
	var servers string
	c := &cobra.Command{
		Use:   "scenario",
		Short: "Kill the leader of ZooKeeper's election recipe and count the watch events",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := k.Check(); err != nil {
				return o.usage(err)
			}
			result := outcomes{Algorithm: "zookeeper", N: k.Candidates, Seed: seed,
				Promised: k.Events(), Violations: []string{}}
			if k.Herd {
				result.Algorithm = "zookeeper-herd"
			}
			var err error
			runner := election.Runner(election.ScenarioRunner{Seed: seed})
			if result.Simulator, err = runner.KillLeader(c.Context(), k); err != nil {
				return err
			}
			result.judge("simulator", k, result.Simulator)
			if servers != "" {
				if runner, err = o.Real(servers); err != nil {
					return err
				}
				real, err := runner.KillLeader(c.Context(), k)
				if err != nil {
					return fmt.Errorf("killing the leader on %s: %w", servers, err)
				}
				result.Ensemble = &real
				result.judge("ensemble", k, real)
			}
			return result.write(c, asJSON)
		},
	}
	c.Flags().IntVar(&k.Candidates, "n", 6, "number of candidates, of which the leader is killed")
	c.Flags().BoolVar(&k.Herd, "herd", false, "let everybody watch the leader")
	c.Flags().Uint64Var(&seed, "seed", 1, "seed of the simulator")
	c.Flags().BoolVar(&asJSON, "json", false, "print the outcome as JSON")
	if o.Real != nil {
		c.Flags().StringVar(&servers, "servers", "", "perform it on this running ensemble too")
	}
	return c
}

func (r *outcomes) judge(where string, k election.KillLeader, o election.Outcome) {
	if err := k.Judge(o); err != nil {
		r.Violations = append(r.Violations, fmt.Sprintf("%s: %v", where, err))
	}
}

func (r *outcomes) write(c *cobra.Command, asJSON bool) error {
	w := c.OutOrStdout()
	if asJSON {
		return writeJSON(w, r)
	}
	fmt.Fprintf(w, "%s, %d candidates, the leader is killed: %d watch events promised\n",
		r.Algorithm, r.N, r.Promised)
	fmt.Fprintf(w, "simulator: %d watch events, %d requests because of them, %d leader\n",
		r.Simulator.Events, r.Simulator.Requests, r.Simulator.Leaders)
	if e := r.Ensemble; e != nil {
		fmt.Fprintf(w, "ensemble:  %d watch events, %d requests because of them, %d leader\n",
			e.Events, e.Requests, e.Leaders)
	}
	for _, v := range r.Violations {
		fmt.Fprintf(w, "broken promise: %s\n", v)
	}
	return nil
}
