package subtree

import (
	"context"
	"errors"
	"fmt"

	"github.com/zk-lite/zk-lite/client"
)

// deleteRounds is how often Delete starts again because somebody has created
// znodes under its hands.
const deleteRounds = 5

// MaxDeleteWindow is how many deletions are under way at a time, at most.
const MaxDeleteWindow = 512

// Delete deletes a znode and all below it, and returns how many there were.
// window bounds how many deletions are under way at a time, within MaxDeleteWindow.
// step is called after each. If others create znodes in the subtree meanwhile,
// these are deleted, too, as far as that succeeds within a few rounds.
//
// Errors: ErrNoNode if there is no root; those of a deletion.
func Delete(
	ctx context.Context, c *client.Client, root string, window int, step func(),
) (int, error) {
	window = min(max(window, 1), MaxDeleteWindow)
	total := 0
	for round := 1; ; round++ {
		n, err := deleteOnce(ctx, c, root, window, step)
		total += n
		lost := errors.Is(err, client.ErrConnectionLoss) && ctx.Err() == nil
		switch {
		case round > 1 && errors.Is(err, client.ErrNoNode):
			return total, nil
		case err == nil || round == deleteRounds || !lost && !errors.Is(err, client.ErrNotEmpty):
			return total, err
		}
	}
}

func deleteOnce(
	ctx context.Context, c *client.Client, root string, window int, step func(),
) (int, error) {
	var paths []string
	for node, err := range Walk(ctx, c, root, Options{}) {
		if err != nil {
			return 0, fmt.Errorf("listing what to delete: %w", err)
		}
		paths = append(paths, node.Path)
	}
	// One client's requests take effect in their order, so children that are
	// asked for first are gone when their parent's turn comes.
	n := 0
	var pending []*client.Pending[struct{}]
	drain := func(keep int) error {
		for len(pending) > keep {
			_, err := pending[0].Wait(ctx)
			pending = pending[1:]
			if err != nil && !errors.Is(err, client.ErrNoNode) {
				return err
			}
			n++
			step()
		}
		return nil
	}
	for i := len(paths) - 1; i >= 0; i-- {
		if err := drain(window - 1); err != nil {
			return n, err
		}
		pending = append(pending, c.Async().Delete(ctx, paths[i], client.AnyVersion))
	}
	return n, drain(0)
}
