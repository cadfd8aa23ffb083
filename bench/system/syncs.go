package system

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/zk-lite/zk-lite/bench/load"
)

// syncEvents are the kernel's tracepoints of the calls that force data to disk. With the last two zk-lite's log
// makes durable writes; no other system here uses them. perf counts them inside the kernel, at negligible cost,
// so that the count belongs to the same run as the throughput.
func syncEvents() []string {
	return []string{"syscalls:sys_enter_fdatasync", "syscalls:sys_enter_fsync",
		"syscalls:sys_enter_msync", "syscalls:sys_enter_sync_file_range", "syscalls:sys_enter_io_submit",
		"syscalls:sys_enter_pwritev2"}
}

// SyncCounter counts the disk syncs of an ensemble within the measured time of a load.
type SyncCounter struct {
	perf *perf // nil: the servers count by themselves
	e    *Ensemble
	own  [2]int64 // the counts of zk-lite's servers at the start, and at the end
}

// CountSyncs starts counting, with perf, or without it for zk-lite alone by the servers' own metric. It counts
// only within the times that Measured marks.
func (e *Ensemble) CountSyncs(ctx context.Context, withPerf bool) (*SyncCounter, error) {
	if !withPerf {
		return &SyncCounter{e: e}, nil
	}
	p, err := startPerf(ctx, e.PIDs())
	return &SyncCounter{perf: p, e: e}, err
}

// Measured is for load.Config. A perf that has ended shows in Finish.
func (s *SyncCounter) Measured(begun bool) {
	switch {
	case s.perf != nil && begun:
		_ = s.perf.say("enable")
	case s.perf != nil:
		_ = s.perf.say("disable")
	case begun:
		s.own[0] = ownSyncs(s.e.Hosts)
	default:
		s.own[1] = ownSyncs(s.e.Hosts)
	}
}

// Finish returns the count, below 0 where nothing could be counted.
func (s *SyncCounter) Finish() (int64, error) {
	switch {
	case s.perf != nil:
		return s.perf.finish()
	case s.own[1] == 0:
		return -1, nil
	}
	return s.own[1] - s.own[0], nil
}

// PerfWorks is an error where perf cannot count.
func PerfWorks(ctx context.Context) error {
	p, err := startPerf(ctx, []int{os.Getpid()})
	if err == nil {
		_, err = p.finish()
	}
	return err
}

// perf is a running perf stat.
type perf struct {
	cmd     *exec.Cmd
	control *os.File // our commands
	ack     *os.File // perf's answers to them
	out     strings.Builder
}

// perfStart is how long perf takes at most to find its processes' threads.
const perfStart = 5 * time.Second

// startPerf attaches perf to processes, counting nothing yet.
func startPerf(ctx context.Context, pids []int) (*perf, error) {
	controlRead, control, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("counting syncs: %w", err)
	}
	defer controlRead.Close()
	ackRead, ack, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("counting syncs: %w", err)
	}
	defer ack.Close()
	var list []string
	for _, pid := range pids {
		list = append(list, strconv.Itoa(pid))
	}
	s := &perf{control: control, ack: ackRead}
	// The numbers 3 and 4 are those of ExtraFiles; -D -1 starts with counting off.
	s.cmd = exec.CommandContext(ctx, "perf", "stat", "-x", ",", "-D", "-1", "--control", "fd:3,4",
		"-e", strings.Join(syncEvents(), ","), "-p", strings.Join(list, ","))
	s.cmd.Stderr = &s.out
	s.cmd.ExtraFiles = []*os.File{controlRead, ack}
	if err := s.cmd.Start(); err != nil {
		control.Close()
		ackRead.Close()
		return nil, fmt.Errorf("counting syncs: %w", err)
	}
	// perf answers its first command when it has attached to everything.
	if err := s.say("disable"); err != nil {
		_, _ = s.finish()
		return nil, fmt.Errorf("counting syncs: perf does not answer: %w: %s", err, s.out.String())
	}
	return s, nil
}

// say sends a command and waits until it is carried out.
func (s *perf) say(word string) error {
	if _, err := fmt.Fprintln(s.control, word); err != nil {
		return fmt.Errorf("telling perf to %s: %w", word, err)
	}
	if err := s.ack.SetReadDeadline(time.Now().Add(perfStart)); err != nil {
		return fmt.Errorf("telling perf to %s: %w", word, err)
	}
	if _, err := s.ack.Read(make([]byte, 16)); err != nil {
		return fmt.Errorf("telling perf to %s: %w", word, err)
	}
	return nil
}

// finish ends perf and returns its counts.
func (s *perf) finish() (int64, error) {
	_ = s.cmd.Process.Signal(os.Interrupt)
	_ = s.cmd.Wait() // interrupted, as it is meant to be
	s.control.Close()
	s.ack.Close()
	return parsePerf(s.out.String())
}

// parsePerf adds up the counts of perf stat -x, whose lines begin with "123,,event,".
func parsePerf(text string) (int64, error) {
	sum, seen := int64(0), 0
	for line := range strings.Lines(text) {
		fields := strings.Split(line, ",")
		if len(fields) < 3 || !strings.HasPrefix(fields[2], "syscalls:") {
			continue
		}
		seen++
		if strings.HasPrefix(fields[0], "<not counted>") {
			continue // it never happened
		}
		n, err := strconv.ParseInt(strings.TrimSpace(fields[0]), 10, 64)
		if err != nil {
			return 0, fmt.Errorf("counting syncs: %q: %w", line, err)
		}
		sum += n
	}
	if seen != len(syncEvents()) {
		return 0, fmt.Errorf("counting syncs: perf says: %q", text)
	}
	return sum, nil
}

// ownSyncs is the count of zk-lite's servers themselves (mntr, log_fsyncs_total), where there
// is no perf; 0 for other systems.
func ownSyncs(hosts []string) (sum int64) {
	for _, host := range hosts {
		text, err := load.FourLetter(context.Background(), host, "mntr")
		if err != nil {
			return 0
		}
		for line := range strings.Lines(text) {
			if rest, ok := strings.CutPrefix(line, "zk_log_fsyncs_total\t"); ok {
				n, _ := strconv.ParseInt(strings.TrimSpace(rest), 10, 64)
				sum += n
			}
		}
	}
	return sum
}
