package zk

import (
	"errors"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/zk-lite/zk-lite/internal/crash"
)

// panicking is a connection on which reading panics while the outbox is locked, as encoding a reply of 2 GiB did.
type panicking struct {
	net.Conn
	c *conn
}

func (p *panicking) Read([]byte) (int, error) {
	p.c.out.mu.Lock()
	panic("an invariant of a reply")
}

// The panic's cleanup waited for the lock of the outbox, with the listener's own: the server hung until it was killed.
func TestRegression_PanicWithTheOutboxLocked_EndsTheProcess(t *testing.T) {
	if os.Getenv("PANIC_HERE") != "" {
		ours, _ := net.Pipe()
		ln := &Listener{
			cfg: Config{}.withDefaults(), logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
			conns: map[*conn]struct{}{}, perAddress: map[netip.Addr]int{},
		}
		ln.running.Add(1)
		c := &conn{listener: ln, gone: make(chan struct{})}
		c.net = &panicking{ours, c}
		c.in.init(c.net, &ln.buffers, &ln.partial, ln.cfg.MaxFrame)
		c.out.init(c.net, &ln.buffers, &ln.outboxes, &ln.cfg, c.ended)
		c.run()
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestRegression_PanicWithTheOutboxLocked")
	cmd.Env = append(os.Environ(), "PANIC_HERE=yes")
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != crash.ExitCode || !strings.Contains(string(out), "an invariant of a reply") {
		t.Errorf("got %v and %q, want exit code %d and the panic's stack", err, out, crash.ExitCode)
	}
}
