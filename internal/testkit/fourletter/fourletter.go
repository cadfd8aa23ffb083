// Package fourletter asks servers that tests have started with ZooKeeper's four-letter words. It has no goroutine.
package fourletter

import (
	"fmt"
	"io"
	"net"
	"time"
)

// timeout bounds a word, which a paused server never answers.
const timeout = 2 * time.Second

// Ask sends a four-letter word to a server, ZooKeeper's or one that is compatible, and returns the whole answer.
func Ask(address, word string) (string, error) {
	c, err := net.DialTimeout("tcp", address, timeout)
	if err != nil {
		return "", fmt.Errorf("asking %s: %w", word, err)
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(timeout)); err != nil {
		return "", fmt.Errorf("asking %s: %w", word, err)
	}
	if _, err := io.WriteString(c, word); err != nil {
		return "", fmt.Errorf("asking %s: %w", word, err)
	}
	text, err := io.ReadAll(c)
	if err != nil {
		return "", fmt.Errorf("the answer to %s: %w", word, err)
	}
	return string(text), nil
}
