package sdnotify_test

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/internal/sdnotify"
)

func env(pairs ...string) func(string) string {
	return func(name string) string {
		for _, p := range pairs {
			if v, ok := strings.CutPrefix(p, name+"="); ok {
				return v
			}
		}
		return ""
	}
}

func TestSocket_Sends(t *testing.T) {
	names := []string{filepath.Join(t.TempDir(), "s")}
	if runtime.GOOS == "linux" {
		names = append(names, fmt.Sprintf("@zk-lite-%d", os.Getpid()))
	}
	for _, name := range names {
		l, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: name, Net: "unixgram"})
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		s, err := sdnotify.Open(env("NOTIFY_SOCKET="+name, "WATCHDOG_USEC=2500000", "WATCHDOG_PID="+strconv.Itoa(os.Getpid())))
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Send(sdnotify.Ready, sdnotify.Status+"well"); err != nil {
			t.Error(err)
		}
		b := make([]byte, 100)
		if n, err := l.Read(b); err != nil || string(b[:n]) != "READY=1\nSTATUS=well" {
			t.Errorf("%s: sent %q (%v), want READY=1 and STATUS=well", name, b[:n], err)
		}
		if s.WatchdogTimeout() != 2500*time.Millisecond {
			t.Errorf("%s: the watchdog timeout is %v, want 2.5s", name, s.WatchdogTimeout())
		}
	}
}

func TestOpen_None(t *testing.T) {
	s, err := sdnotify.Open(env("WATCHDOG_USEC=1"))
	if s != nil || err != nil || s.Send(sdnotify.Ready) != nil || s.WatchdogTimeout() != 0 {
		t.Errorf("without a socket: %+v (%v), want nil, which sends nothing and has no watchdog", s, err)
	}
}

func TestOpen_Refuses(t *testing.T) {
	nobody := filepath.Join(t.TempDir(), "nobody")
	for _, c := range []struct {
		env  []string
		want string
	}{
		{[]string{"NOTIFY_SOCKET=" + nobody}, "nobody"},
		{[]string{"NOTIFY_SOCKET=vsock:2:1234"}, "want a path"},
		{[]string{"NOTIFY_SOCKET=" + nobody, "WATCHDOG_USEC=soon"}, "want microseconds"},
		{[]string{"NOTIFY_SOCKET=" + nobody, "WATCHDOG_USEC=-1"}, "want microseconds"},
		{[]string{"NOTIFY_SOCKET=" + nobody, "WATCHDOG_USEC=99999999999999999"}, "at most a day"},
		{[]string{"NOTIFY_SOCKET=" + nobody, "WATCHDOG_USEC=soon", "WATCHDOG_PID=1"}, "connecting"}, // not for this process
	} {
		if _, err := sdnotify.Open(env(c.env...)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v; want %q", c.env, err, c.want)
		}
	}
}
