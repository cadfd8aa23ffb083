package failover

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/zk-lite/zk-lite/internal/testkit/network"
	"github.com/zk-lite/zk-lite/internal/testkit/slowdisk"
)

// The faults.
const (
	faultKill     = "kill"
	faultStop     = "stop"
	faultHang     = "hang"
	faultFull     = "fulldisk"
	faultCut      = "cut"
	faultTransfer = "transfer"
	faultDrain    = "drain"
	faultTerm     = "sigterm"
	faultReturn   = "return" // of a follower that was killed, which has no gap; see catchUp
)

// fault is one way to lose a leader.
type fault struct {
	do   func(ctx context.Context, r *runner, server int) error
	undo func(ctx context.Context, r *runner, server int) error // nil: there is nothing to undo
	// ends: it ends the process, which is then started again, or else the connections of its clients.
	ends     bool
	network  bool // it is one of the network
	onlyOurs bool // ZooKeeper has no such thing
}

func faults() map[string]fault {
	signal := func(s syscall.Signal) func(context.Context, *runner, int) error {
		return func(_ context.Context, r *runner, server int) error {
			return syscall.Kill(r.ensemble.Processes[server].PID(), s)
		}
	}
	ask := func(method, path string) func(context.Context, *runner, int) error {
		return func(ctx context.Context, r *runner, server int) error { return r.ask(ctx, method, server, path) }
	}
	disk := func(do func(*slowdisk.Disk)) func(context.Context, *runner, int) error {
		return func(_ context.Context, r *runner, server int) error {
			do(r.ensemble.Disks[server])
			return nil
		}
	}
	return map[string]fault{
		faultReturn: {},
		faultKill:   {ends: true, do: signal(syscall.SIGKILL)},
		faultTerm:   {ends: true, do: signal(syscall.SIGTERM)},
		faultStop:   {do: signal(syscall.SIGSTOP), undo: signal(syscall.SIGCONT)},
		faultHang:   {do: disk((*slowdisk.Disk).Hang), undo: disk((*slowdisk.Disk).Release)},
		faultFull:   {do: disk((*slowdisk.Disk).Fill), undo: disk((*slowdisk.Disk).Empty)},
		faultCut: {network: true, do: func(_ context.Context, r *runner, server int) error {
			r.network.Isolate(server + 1)
			return nil
		}, undo: func(_ context.Context, r *runner, _ int) error {
			r.network.SetServers(network.Link{Delay: r.c.rtt / 2})
			return nil
		}},
		faultTransfer: {onlyOurs: true, do: ask(http.MethodPost, "/transfer")},
		faultDrain: {onlyOurs: true, ends: true, do: ask(http.MethodPost, "/drain"),
			undo: ask(http.MethodDelete, "/drain")},
	}
}

func faultNames() (names []string) {
	for name := range faults() {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// requestTime bounds a request to the HTTP port.
const requestTime = 30 * time.Second

// ask sends a request about the ensemble to a server's HTTP port.
func (r *runner) ask(ctx context.Context, method string, server int, path string) error {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, "http://"+r.ensemble.HTTP[server]+"/v1/cluster"+path, nil)
	if err != nil {
		return fmt.Errorf("asking for %s: %w", path, err)
	}
	token, err := os.ReadFile(filepath.Join(r.ensemble.DataDir(server), "admin.token"))
	if err != nil {
		return fmt.Errorf("asking for %s: %w", path, err)
	}
	secret, _, _ := strings.Cut(string(token), "\n")
	request.Header.Set("Authorization", "Bearer "+secret)
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("asking for %s: %w", path, err)
	}
	defer answer.Body.Close()
	if answer.StatusCode >= http.StatusMultipleChoices {
		why, _ := io.ReadAll(io.LimitReader(answer.Body, 1000)) // for the message only
		return fmt.Errorf("asking for %s: %s: %s", path, answer.Status, why)
	}
	return nil
}
