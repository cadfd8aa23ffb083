package fourletter

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"strings"
	"time"
)

// maxAnswer bounds an answer: the longest, that of mntr, has some kilobytes.
const maxAnswer = 1 << 20

// Ask sends a word to a server and returns its answer. secure is for a port with TLS; nil: it has none.
func Ask(ctx context.Context, address, word string, secure *tls.Config) (string, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	if secure != nil {
		conn = tls.Client(conn, named(secure, address))
	}
	if _, err := io.WriteString(conn, word); err != nil {
		return "", fmt.Errorf("sending %s to %s: %w", word, address, err)
	}
	answer, err := io.ReadAll(io.LimitReader(conn, maxAnswer))
	if err != nil {
		return "", fmt.Errorf("%s does not answer %s: %w", address, word, err)
	}
	if strings.HasPrefix(string(answer), "\x15\x03") {
		return "", fmt.Errorf("%s speaks TLS: give --tls-ca, and --tls-cert if it asks for one", address)
	}
	return string(answer), nil
}

// named is the configuration for a server at an address.
func named(cfg *tls.Config, address string) *tls.Config {
	host, _, err := net.SplitHostPort(address)
	if cfg.ServerName != "" || err != nil {
		return cfg
	}
	cfg = cfg.Clone()
	cfg.ServerName = host
	return cfg
}

// refusal returns the server's text instead of an answer, or "": words must
// be in its whitelist, and most need a server that serves.
func refusal(answer string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(answer), "\n")
	if line == "" {
		return "an empty answer"
	}
	if strings.Contains(line, "not in the whitelist") || strings.Contains(line, "not currently serving") {
		return line
	}
	return ""
}
