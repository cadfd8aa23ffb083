package app

import (
	"context"
	"io"
	"time"

	"github.com/zk-lite/zk-lite/consensus/recovery"
	"github.com/zk-lite/zk-lite/consensus/state"
)

// askTime is how long the other servers may take to answer.
const askTime = 5 * time.Second

// OpenRecovery reads the data of a server that does not run, or a backup that is to become its data, and asks the
// others whether they are lost. Errors: recovery.Open's, and what is wrong with the settings.
func OpenRecovery(ctx context.Context, o Options, backup io.Reader) (*recovery.Recovery, []recovery.Peer, error) {
	c := &o.Settings
	files, err := newPeerTLS(c, o.Logger)
	if err != nil {
		return nil, nil, err
	}
	defer files.close()
	r, err := recovery.Open(o.storage(), state.ServerID(c.MyID), backup)
	if err != nil {
		return nil, nil, err
	}
	keys, err := peerKeys(c, o.Logger)
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	return r, r.Ask(ctx, recovery.Peers{Servers: ensemble(c), Dial: files.dial(dialPeer(c)), Keys: keys}), nil
}
