package learner

import (
	"bytes"
	"fmt"
	"strings"
)

// refuseListed reports ErrListed if a configuration, or the transaction that holds one, has a server with this id.
func refuseListed(text []byte, id int64) error {
	if bytes.Contains(text, fmt.Appendf(nil, "server.%d=", id)) {
		return fmt.Errorf("%w: %d", ErrListed, id)
	}
	return nil
}

var _ = strings.TrimSpace
