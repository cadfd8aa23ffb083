package recipes

import (
	"context"
	"errors"

	"github.com/zk-lite/zk-lite/client"
)

// afterSync makes a read that sees every write which was acknowledged to any client
// before. A sync travels in front of it, so this is one round trip. If the connection
// breaks then, the client sends the read again and not the sync, and perhaps to a
// server that is behind: what was read counts only if the sync was answered.
//
// The read may leave a watch; undo, if it is not nil, takes it away before the read is
// repeated.
func afterSync(
	ctx context.Context, c *client.Client, path string, read func() error, undo func(),
) error {
	for {
		sync := c.Async().Sync(ctx, path)
		err := read()
		if err != nil && !errors.Is(err, client.ErrNoNode) {
			return err
		}
		_, serr := sync.Wait(ctx)
		if serr == nil {
			return err
		}
		if err == nil && undo != nil {
			undo()
		}
		if !errors.Is(serr, client.ErrConnectionLoss) {
			return serr
		}
	}
}
