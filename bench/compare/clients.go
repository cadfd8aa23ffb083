package compare

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/zk-lite/zk-lite/bench/load"
	"github.com/zk-lite/zk-lite/bench/report"
	"github.com/zk-lite/zk-lite/bench/system"
)

// The Go clients, in the order of the columns.
const (
	goZooKeeper = "go-zookeeper"
	blocking    = "zk-lite"
	async       = "zk-lite-async"
)

func clients() []string { return []string{goZooKeeper, blocking, async} }

// clientRows compare package client with go-zookeeper, on the leader of three servers.
func clientRows() (all []row) {
	for _, op := range []string{"get", "set"} {
		for _, depth := range []int{1, 64, 1024} {
			for _, name := range clients() {
				if name == async && depth == 1 {
					continue // with one call under way there is nothing to be asynchronous about
				}
				all = append(all, row{id: fmt.Sprintf("%s-%d-%s", op, depth, name), mix: op, conns: 1, inFlight: depth,
					title:  fmt.Sprintf("%s, %d in flight", op, depth),
					client: name, systems: []string{"ZooKeeper", system.Ours}})
			}
		}
	}
	return all
}

// buildClients builds the program in bench/clients, a module of its own for go-zookeeper's sake.
func buildClients(site *system.Site) (string, error) {
	binary := filepath.Join(site.Dir, "clients")
	build := exec.Command("go", "build", "-mod=mod", "-o", binary, ".")
	build.Dir, build.Env = filepath.Join(site.Root, "bench", "clients"), append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building the clients: %w\n%s", err, out)
	}
	return binary, nil
}

// client runs one client in a process of its own, so that the process's CPU and allocations are
// the client's.
func (c *comparison) client(
	ctx context.Context, e *system.Ensemble, r *row, cfg *load.Config,
) (*load.Result, float64, error) {
	leader, err := load.Leader(ctx, e.Hosts)
	if err != nil {
		return nil, 0, err
	}
	cfg.Hosts = []string{e.Hosts[leader]}
	input, err := json.Marshal(cfg)
	if err != nil {
		return nil, 0, fmt.Errorf("the clients' load: %w", err)
	}
	var out, trouble bytes.Buffer
	run := exec.CommandContext(ctx, c.loader, r.client)
	run.Stdin, run.Stdout, run.Stderr = bytes.NewReader(input), &out, &trouble
	if err := run.Run(); err != nil {
		return nil, 0, fmt.Errorf("client %s: %w: %s", r.client, err, trouble.Bytes())
	}
	var answer struct {
		Result *load.Result
		Allocs float64
	}
	if err := json.Unmarshal(out.Bytes(), &answer); err != nil || answer.Result == nil {
		return nil, 0, errors.Join(fmt.Errorf("client %s: %q is no result", r.client, out.Bytes()), err)
	}
	return answer.Result, answer.Allocs, nil
}

// clientTable has a line for each kind of servers and load.
func (c *comparison) clientTable() string {
	t := report.NewTable("servers", "load", goZooKeeper, "package client", "ratio", "ahead",
		"package client, asynchronous")
	for _, server := range c.names {
		for i := range c.rows {
			r := &c.rows[i]
			if r.client != blocking {
				continue
			}
			of := func(name string) []*measurement {
				return c.results[strings.TrimSuffix(r.id, blocking)+name][server]
			}
			theirs, ours := of(goZooKeeper), of(blocking)
			ratio, ahead := "", ""
			if len(theirs) > 0 && len(ours) > 0 {
				quotient := over(ours, perSecond) / over(theirs, perSecond)
				if ratio, ahead = fmt.Sprintf("%.2f x", quotient), "yes"; quotient <= 1 {
					ahead = "**no**"
				}
			}
			t.Row(server, r.title, clientCell(theirs), clientCell(ours), ratio, ahead, clientCell(of(async)))
		}
	}
	return t.String()
}

// clientCell is a throughput with its cost to the client.
func clientCell(all []*measurement) string {
	if len(all) == 0 {
		return ""
	}
	cpu := over(all, func(m *measurement) float64 { return float64(m.result.Generator) / answers(m) })
	return fmt.Sprintf("**%s/s**<br>p50 %s, p99 %s, p99.9 %s<br>%s of CPU, %.1f allocations an answer",
		report.Count(over(all, perSecond)), show(median, over(all, p50)), show(median, over(all, p99)),
		show(median, over(all, p999)), report.Time(time.Duration(cpu)),
		over(all, func(m *measurement) float64 { return m.allocs }))
}
