package compare

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/zk-lite/zk-lite/bench/load"
	"github.com/zk-lite/zk-lite/bench/system"
)

// The suites.
const (
	Servers = "servers"
	HTTP    = "http"
	Clients = "clients"
	YCSB    = "ycsb"
)

// Rows are the ids of a suite's rows.
func Rows(suite string) (ids []string) {
	for _, r := range rowsOf(suite) {
		ids = append(ids, r.id)
	}
	return ids
}

// rowsOf are the rows of a suite.
func rowsOf(suite string) []row {
	switch suite {
	case HTTP:
		return httpRows()
	case Clients:
		return clientRows()
	case YCSB:
		return ycsbRows()
	}
	return serverRows()
}

// Run measures the requested rows of a suite.
func Run(ctx context.Context, site *system.Site, suite string, o *system.Options) (err error) {
	withTLS := slices.ContainsFunc(o.Builds, func(b system.Build) bool { return b.Path == "" })
	if withTLS && suite != Servers && suite != YCSB {
		return errors.New("-tls is for the suites " + Servers + " and " + YCSB)
	}
	c := &comparison{suite: suite, o: o, site: site, began: time.Now(), rows: selected(rowsOf(suite), o.Rows),
		results: results{}, filled: map[*system.Ensemble]bool{}}
	if err := c.prepare(); err != nil {
		return err
	}
	if suite == Clients {
		if c.loader, err = buildClients(site); err != nil {
			return err
		}
	}
	if err := c.ask(ctx); err != nil {
		return err
	}
	c.end = errors.New("still running")
	if err = c.fixRates(ctx); err == nil {
		err = c.measure(ctx)
	}
	c.end = err
	return errors.Join(err, c.save())
}

// measurement is one run of one row on one system.
type measurement struct {
	round  int // from 1; 0: memory, which has none
	result *load.Result
	// syncs are disk syncs of all servers in the measured time; below 0: not
	// counted.
	syncs int64
	heap  int64 // live, of the largest server; only of system.Memory
	// allocs are those of a Go client's process, per answer.
	allocs float64
}

// results are all measurements: row id, system name, one a round.
type results map[string]map[string][]*measurement

func (all results) add(r *row, name string, m *measurement) {
	if all[r.id] == nil {
		all[r.id] = map[string][]*measurement{}
	}
	all[r.id][name] = append(all[r.id][name], m)
}

// trouble is a row that had to be repeated, or was given up.
type trouble struct {
	row, system string
	round       int // from 1; 0: memory, which has none
	given       bool
	why         string
}

// comparison is one suite of rows, measured on some systems.
type comparison struct {
	suite    string
	o        *system.Options
	loader   string // the program for rows with a client
	site     *system.Site
	began    time.Time
	rows     []row
	systems  []system.System
	names    []string                  // of the systems
	versions map[string]string         // by name of the system
	perf     bool                      // perf counts syncs
	filled   map[*system.Ensemble]bool // has the keys of YCSB
	results  results
	troubles []trouble
	rounds   int   // complete ones
	end      error // why not all rounds were run
}

// prepare builds or finds the requested systems that a row needs, and all builds.
func (c *comparison) prepare() error {
	for _, name := range c.o.Names(system.Known()...) {
		if c.o.IsBuild(name) ||
			slices.ContainsFunc(c.rows, func(r row) bool { return slices.Contains(r.systems, name) }) {
			c.names = append(c.names, name)
		}
	}
	if len(c.names) == 0 {
		return errors.New("no row and system that belong together were asked for")
	}
	for _, name := range c.names {
		s, err := c.site.System(name, c.o.Builds)
		if err != nil {
			return err
		}
		c.systems = append(c.systems, s)
	}
	return nil
}

// ask determines the systems' versions, before the checkout changes again, and whether perf can
// count syncs.
func (c *comparison) ask(ctx context.Context) error {
	c.versions = map[string]string{}
	for _, s := range c.systems {
		var err error
		if c.versions[s.Name()], err = s.Version(); err != nil {
			return err
		}
	}
	err := system.PerfWorks(ctx)
	if err != nil {
		fmt.Fprintln(os.Stderr,
			"only zk-lite's disk syncs are counted, by itself, as perf cannot:", err)
	}
	c.perf = err == nil
	return nil
}

// save writes the results so far, so that an end at any moment leaves them.
func (c *comparison) save() error {
	return c.site.Save(c.suite, c.began, c.document(), c.all(), c.end)
}

// line is a measurement in the file of all results.
type line struct {
	Row    string       `json:"row"`
	System string       `json:"system"`
	Round  int          `json:"round"`
	Syncs  int64        `json:"syncs"`
	Heap   int64        `json:"heap_bytes,omitempty"`
	Result *load.Result `json:"result"`
}

// all is every measurement.
func (c *comparison) all() (lines []line) {
	for _, r := range c.rows {
		for _, name := range c.names {
			for _, m := range c.results[r.id][name] {
				lines = append(lines, line{r.id, name, m.round, m.syncs, m.heap, m.result})
			}
		}
	}
	return lines
}
