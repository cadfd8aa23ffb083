package app

import (
	"context"

	"github.com/zk-lite/zk-lite/consensus/formation"
	"github.com/zk-lite/zk-lite/consensus/membership"
	"github.com/zk-lite/zk-lite/consensus/state"
)

// OpenFormation looks whether this server can form an ensemble without some of its voters, and asks the others how they
// are. Errors: formation.New's, and what is wrong with the settings.
func OpenFormation(ctx context.Context, o Options, without []state.ServerID) (
	*formation.Formation, []membership.Peer, error,
) {
	f, err := formation.New(o.storage(), state.ServerID(o.Settings.MyID), ensemble(&o.Settings), without)
	if err != nil {
		return nil, nil, err
	}
	peers, err := askOthers(ctx, &o, f.Ask)
	return f, peers, err
}

// askOthers has the other servers asked, for askTime at most, with the keys and certificates of this one.
func askOthers(ctx context.Context, o *Options, ask func(context.Context, membership.Asker) []membership.Peer) (
	[]membership.Peer, error,
) {
	c := &o.Settings
	files, err := newPeerTLS(c, o.Logger)
	if err != nil {
		return nil, err
	}
	defer files.close()
	keys, err := peerKeys(c, o.Logger)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	return ask(ctx, membership.Asker{Self: state.ServerID(c.MyID), Dial: files.dial(dialPeer(c)), Keys: keys}), nil
}
