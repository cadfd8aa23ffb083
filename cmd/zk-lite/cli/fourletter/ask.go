package fourletter

import (
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"time"
)

// maxAnswer bounds an answer: the longest, that of mntr, has some kilobytes.
const maxAnswer = 1 << 20

// Ask sends a word to a server and returns its answer.
func Ask(ctx context.Context, address, word string) (string, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	if _, err := io.WriteString(conn, word); err != nil {
		return "", fmt.Errorf("sending %s to %s: %w", word, address, err)
	}
	answer, err := io.ReadAll(io.LimitReader(conn, maxAnswer))
	if err != nil {
		return "", fmt.Errorf("%s does not answer %s: %w", address, word, err)
	}
	return string(answer), nil
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
