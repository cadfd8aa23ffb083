package load

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"
)

// wordTimeout bounds a four-letter word.
const wordTimeout = 2 * time.Second

// FourLetter sends a four-letter word to a server and returns the whole answer.
func FourLetter(ctx context.Context, host, word string) (string, error) {
	return ask(ctx, host, word, nil)
}

// ask is FourLetter for a port that may speak TLS.
func ask(ctx context.Context, host, word string, secure *tls.Config) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, wordTimeout)
	defer cancel()
	var d net.Dialer
	c, err := d.DialContext(ctx, "tcp", host)
	if err != nil {
		return "", fmt.Errorf("asking %s: %w", word, err)
	}
	if c, err = Secure(ctx, c, secure, host); err != nil {
		return "", fmt.Errorf("asking %s: %w", word, err)
	}
	defer c.Close()
	deadline, _ := ctx.Deadline()
	c.SetDeadline(deadline)
	if _, err := io.WriteString(c, word); err != nil {
		return "", fmt.Errorf("asking %s %s: %w", host, word, err)
	}
	text, err := io.ReadAll(c)
	if err != nil {
		return "", fmt.Errorf("asking %s %s: %w", host, word, err)
	}
	return string(text), nil
}

// Leader asks each host for its mode (srvr, which must be allowed) and returns
// the index of the leader's.
func Leader(ctx context.Context, hosts []string) (int, error) { return findLeader(ctx, hosts, nil) }

func findLeader(ctx context.Context, hosts []string, secure *tls.Config) (int, error) {
	var errs []error
	for i, host := range hosts {
		text, err := ask(ctx, host, "srvr", secure)
		if err != nil {
			errs = append(errs, err)
		}
		if strings.Contains(text, "Mode: leader") {
			return i, nil
		}
	}
	return 0, errors.Join(append(errs, errors.New("no server says that it leads"))...)
}

// Zxid is that of the last transaction that a server has applied (srvr, which must be allowed).
func Zxid(ctx context.Context, host string) (int64, error) {
	text, err := FourLetter(ctx, host, "srvr")
	if err != nil {
		return 0, err
	}
	return parseZxid(text)
}

// parseZxid reads "Zxid: 0x100000002" of a reply to srvr.
func parseZxid(text string) (zxid int64, err error) {
	_, rest, found := strings.Cut(text, "Zxid: ")
	if !found {
		return 0, fmt.Errorf("a reply without a zxid: %.200s", text)
	}
	if _, err := fmt.Sscanf(rest, "0x%x", &zxid); err != nil {
		return 0, fmt.Errorf("a reply without a zxid: %.200s: %w", text, err)
	}
	return zxid, nil
}

// KillLeader returns a Killer that ends the leader's process with SIGKILL. The
// processes are in the order of the hosts, on this machine.
func KillLeader(hosts []string, pids []int, secure *tls.Config) (Killer, error) {
	if len(hosts) != len(pids) {
		return nil, fmt.Errorf("to kill the leader each server's pid is needed, in their order: "+
			"%d servers, %d pids", len(hosts), len(pids))
	}
	return func(ctx context.Context) (string, error) {
		i, err := findLeader(ctx, hosts, secure)
		if err != nil {
			return "", err
		}
		return hosts[i], kill(pids[i])
	}, nil
}
