package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/internal/testkit/tier"
	"github.com/zk-lite/zk-lite/zklitetest"
	"github.com/zk-lite/zk-lite/znode"
)

// A server's normal start and stop is nothing for an operator to look at. That the others miss it is.
func TestLog_StartAndStop_NothingAboveInfo(t *testing.T) {
	tier.Seconds(t)
	for _, n := range []int{1, 3} {
		log, started := startAndStop(t, n)
		for strings.Contains(log, "this server was paused") { // a busy machine stood still: that is something to look at
			log, started = startAndStop(t, n)
		}
		if !strings.Contains(started, "starting") {
			t.Errorf("%d servers: the log is %q", n, started)
		}
		for line := range strings.Lines(log) {
			own := strings.Contains(started, line) || strings.Contains(line, " server=1")
			if own && !strings.Contains(line, "level=INFO") {
				t.Errorf("%d servers: %s", n, line)
			}
		}
	}
}

// startAndStop is the log of servers the first of which is stopped, and what of it came before that.
func startAndStop(t *testing.T, n int) (all, started string) {
	t.Helper()
	var log output
	e := zklitetest.Start(t, zklitetest.WithServers(n),
		// A server that stands still for a fraction of a second, as it stops or before, is not out of touch.
		zklitetest.WithSetting("minSessionTimeout", "60000"), zklitetest.WithSetting("syncLimit", "150"),
		zklitetest.WithLogger(slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelInfo}))))
	started = log.String()
	e.Stop(0)
	return log.String(), started
}

// A line says the same in both formats, whatever its values are.
func TestLog_TextAndJSON_SayTheSame(t *testing.T) {
	values := []any{
		"server", state.ServerID(3), "session", znode.SessionID(0x1000a2b), "took", 300 * time.Millisecond,
		"remote", &net.TCPAddr{IP: net.IPv4(10, 0, 0, 7), Port: 4711}, "error", errors.New("no"), "term", uint64(7),
		"zxid", znode.Zxid(1), "leads", true,
	}
	var text, jsonText output
	newLogger(&text, false, slog.LevelInfo).Warn("an event", values...)
	newLogger(&jsonText, true, slog.LevelInfo).Warn("an event", values...)
	var fields map[string]any
	if err := json.Unmarshal([]byte(jsonText.String()), &fields); err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(values); i += 2 {
		if want := fmt.Sprintf(" %s=%v", values[i], fields[values[i].(string)]); !strings.Contains(text.String(), want) {
			t.Errorf("JSON has%s, and text is %s", want, text.String())
		}
	}
}

// The last line of a server that cannot start is in the log's format, too.
func TestLog_JSON_ToTheLastLine(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	cmd := exec.Command("zk-lite", "server", "--logger-format", "json", "--data-dir", t.TempDir(),
		"--client-port-address", "127.0.0.1", "--client-port", port, "--admin-server-port", "0")
	out, err := cmd.CombinedOutput()
	if err == nil {
		t.Fatal("it has started")
	}
	last := ""
	for line := range strings.Lines(string(out)) {
		var fields map[string]any
		if err := json.Unmarshal([]byte(line), &fields); err != nil {
			t.Errorf("%s: %v", line, err)
		}
		last, _ = fields["error"].(string)
	}
	if !strings.Contains(last, "given by the setting clientPort") || cmd.ProcessState.ExitCode() != 1 {
		t.Errorf("exit code %d, the last error is %q", cmd.ProcessState.ExitCode(), last)
	}
}
