package failover

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// The logs of this many of the longest gaps are kept, and of each server no more than maxLog
// bytes.
const (
	keptGaps = 10
	maxLog   = 8 << 20
)

// logSizes are how long the servers' logs are.
func (r *runner) logSizes() (sizes []int64, err error) {
	for _, p := range r.ensemble.Processes {
		info, err := os.Stat(p.LogFile())
		if err != nil {
			return nil, fmt.Errorf("reading the servers' logs: %w", err)
		}
		sizes = append(sizes, info.Size())
	}
	return sizes, nil
}

// logsSince are the servers' logs from there on.
func (r *runner) logsSince(sizes []int64) (logs [][]byte, err error) {
	for i, p := range r.ensemble.Processes {
		f, err := os.Open(p.LogFile())
		if err != nil {
			return nil, fmt.Errorf("reading the servers' logs: %w", err)
		}
		text, err := io.ReadAll(io.NewSectionReader(f, sizes[i], maxLog))
		f.Close()
		if err != nil {
			return nil, fmt.Errorf("reading the servers' logs: %w", err)
		}
		logs = append(logs, text)
	}
	return logs, nil
}

// votedForSelf is raft's message, at the level debug, when a server begins a real election.
const votedForSelf = `msg="voting for self"`

// campaigns counts real elections by server.
func campaigns(logs [][]byte) (counts []int) {
	for _, text := range logs {
		counts = append(counts, bytes.Count(text, []byte(votedForSelf)))
	}
	return counts
}

// keeper keeps the logs of the longest gaps.
type keeper struct {
	dir  string
	kept []keptGap
}

// keptGap is one of them.
type keptGap struct {
	length int64 // nanoseconds
	dir    string
}

// newKeeper makes the directory, a new one if none is named.
func newKeeper(dir string) (*keeper, error) {
	var err error
	if dir == "" {
		dir, err = os.MkdirTemp("", "zk-lite-failover-logs-")
	} else {
		err = os.MkdirAll(dir, 0o750)
	}
	if err != nil {
		return nil, fmt.Errorf("making a directory for logs: %w", err)
	}
	return &keeper{dir: dir}, nil
}

// keep writes the logs of an outage, if its gap is one of the longest, in the place of those of the
// shortest that was kept. It clears them in o.
func (k *keeper) keep(c *config, o *outage) error {
	logs := o.logs
	o.logs = nil
	length := int64(o.gap.Length())
	if len(k.kept) == keptGaps && length <= k.kept[keptGaps-1].length && len(o.wrong) == 0 {
		return nil
	}
	name := fmt.Sprintf("%dms %s %d", o.gap.Length().Milliseconds(), c, o.n)
	dir := filepath.Join(k.dir, strings.Map(func(r rune) rune {
		if strings.ContainsRune(" ,/=", r) {
			return '-'
		}
		return r
	}, name))
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return fmt.Errorf("keeping logs: %w", err)
	}
	for i, text := range logs {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("server-%d.log", i+1)), text, 0o640); err != nil {
			return fmt.Errorf("keeping logs: %w", err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "outage.txt"), []byte(o.text(c)), 0o640); err != nil {
		return fmt.Errorf("keeping logs: %w", err)
	}
	if len(o.wrong) > 0 {
		return nil // these are kept in any case
	}
	k.kept = append(k.kept, keptGap{length, dir})
	slices.SortStableFunc(k.kept, func(a, b keptGap) int { return int(b.length - a.length) })
	if len(k.kept) <= keptGaps {
		return nil
	}
	last := k.kept[keptGaps]
	k.kept = k.kept[:keptGaps]
	if err := os.RemoveAll(last.dir); err != nil {
		return fmt.Errorf("deleting logs: %w", err)
	}
	return nil
}
