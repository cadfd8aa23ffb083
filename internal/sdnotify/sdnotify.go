// Package sdnotify reports the state of this process to the service manager that started it, by the protocol
// of systemd's sd_notify(3): datagrams to the socket that NOTIFY_SOCKET names.
//
// It sends nothing of its own accord: its user decides what to report, and when. It starts no
// goroutines.
package sdnotify

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"time"
)

// The messages, of sd_notify(3).
const (
	Ready    = "READY=1"
	Stopping = "STOPPING=1"
	Watchdog = "WATCHDOG=1"
	Status   = "STATUS=" // and a line of text
)

// sendTimeout bounds the wait for a service manager that reads nothing.
const sendTimeout = time.Second

// Socket is the service manager's. On nil, which is none, messages are lost.
type Socket struct {
	conn     net.Conn
	watchdog time.Duration
}

// Open connects to the socket that the environment names; nil if it names none. Names that begin with @ are in Linux's
// abstract namespace.
func Open(getenv func(string) string) (*Socket, error) {
	name := getenv("NOTIFY_SOCKET")
	if name == "" {
		return nil, nil
	}
	watchdog, err := watchdog(getenv)
	if err != nil {
		return nil, err
	}
	if !strings.HasPrefix(name, "/") && !strings.HasPrefix(name, "@") {
		return nil, fmt.Errorf("NOTIFY_SOCKET=%q: want a path, or @ and a name", name)
	}
	conn, err := net.Dial("unixgram", name)
	if err != nil {
		return nil, fmt.Errorf("connecting to the service manager, NOTIFY_SOCKET=%q: %w", name, err)
	}
	return &Socket{conn, watchdog}, nil
}

// watchdog is that of sd_watchdog_enabled(3); 0: none for this process.
func watchdog(getenv func(string) string) (time.Duration, error) {
	text, pid := getenv("WATCHDOG_USEC"), getenv("WATCHDOG_PID")
	if text == "" || pid != "" && pid != strconv.Itoa(os.Getpid()) {
		return 0, nil
	}
	usec, err := strconv.ParseInt(text, 10, 64)
	if err != nil || usec <= 0 || usec > int64(24*time.Hour/time.Microsecond) {
		return 0, fmt.Errorf("WATCHDOG_USEC=%q: want microseconds, at most a day", text)
	}
	return time.Duration(usec) * time.Microsecond, nil
}

// WatchdogTimeout is how soon after a Watchdog the next one must follow; 0: none is expected.
func (s *Socket) WatchdogTimeout() time.Duration {
	if s == nil {
		return 0
	}
	return s.watchdog
}

// Send sends all of it in one datagram. An error means that it was not received.
func (s *Socket) Send(what ...string) error {
	if s == nil {
		return nil
	}
	_ = s.conn.SetWriteDeadline(time.Now().Add(sendTimeout)) // fails only on a closed connection, as Write does
	if _, err := s.conn.Write([]byte(strings.Join(what, "\n"))); err != nil {
		return fmt.Errorf("telling the service manager: %w", err)
	}
	return nil
}
