package app

import (
	"context"
	"io"
	"time"

	"github.com/zk-lite/zk-lite/consensus/membership"
	"github.com/zk-lite/zk-lite/consensus/recovery"
	"github.com/zk-lite/zk-lite/consensus/state"
)

// askTime is how long the other servers may take to answer.
const askTime = 5 * time.Second

// OpenRecovery reads the data of a server that does not run, or a backup that is to become its data, and asks the
// others whether they are lost. For skipOver see recovery.Open. Errors: those of recovery.Open, and what is wrong with
// the settings.
func OpenRecovery(
	ctx context.Context, o Options, backup io.Reader, skipOver int64,
) (*recovery.Recovery, []membership.Peer, error) {
	r, err := recovery.Open(o.storage(), state.ServerID(o.Settings.MyID), backup, skipOver)
	if err != nil {
		return nil, nil, err
	}
	peers, err := askOthers(ctx, &o, func(ctx context.Context, a membership.Asker) []membership.Peer {
		return r.Ask(ctx, a, ensemble(&o.Settings))
	})
	return r, peers, err
}

// LongACLs is recovery.LongACLs of a server with these settings.
func LongACLs(o Options) ([]state.LongACL, error) { return recovery.LongACLs(o.storage()) }
