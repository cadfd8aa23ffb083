package app

import (
	"context"
	"crypto"
	"errors"
	"io"
	"time"

	"github.com/zk-lite/zk-lite/app/config"
	"github.com/zk-lite/zk-lite/consensus/founding"
	"github.com/zk-lite/zk-lite/consensus/membership"
	"github.com/zk-lite/zk-lite/consensus/recovery"
	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/consensus/storage"
	"github.com/zk-lite/zk-lite/migration/seed"
)

// Check finds what would stop the start, as far as that can be known without opening or
// creating anything. The error joins all that it has found.
func Check(o Options) error {
	_, peers := newPeerTLS(&o.Settings, o.Logger)
	_, clients := newPorts(&o.Settings, o.Logger)
	_, tokenFile := tokens(&o)
	_, login := sasl(&o)
	c := o.storage()
	return errors.Join(peers, clients, tokenFile, login, c.RefuseZooKeeper(),
		c.CheckIdentity(state.ServerID(o.Settings.MyID)))
}

// Runs reports whether a server has the data directory of s open. An error says why that is not known; s may be of a
// configuration that has errors.
func Runs(s *config.Settings) (bool, error) {
	if s.DataDir == "" {
		return false, errors.New("dataDir is not known")
	}
	return storage.InUse(s.DataDir)
}

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

// PlanFounding checks whether this server can found an ensemble although some of its voters are missing, and asks the
// others for their state. Errors: those of founding.NewPlan, and what is wrong with the settings.
func PlanFounding(ctx context.Context, o Options, missing []state.ServerID) (
	*founding.Plan, []membership.Peer, error,
) {
	p, err := founding.NewPlan(o.storage(), state.ServerID(o.Settings.MyID), ensemble(&o.Settings), missing)
	if err != nil {
		return nil, nil, err
	}
	peers, err := askOthers(ctx, &o, p.Ask)
	return p, peers, err
}

// CheckImport is founding.CheckImport of a server with these settings.
func CheckImport(o Options) error {
	return founding.CheckImport(o.storage(), state.ServerID(o.Settings.MyID), ensemble(&o.Settings))
}

// SeedLimits are the limits that a server with these settings has for imported data.
func SeedLimits(o Options) seed.Limits {
	o.limitByMemory()
	c := &o.Settings
	return seed.Limits{
		TreeBytes: c.Consensus.TreeLimit, MaxBuffer: c.ZooKeeper.MaxFrame,
		MinTimeout: c.Server.MinSessionTimeout, MaxTimeout: c.Server.MaxSessionTimeout,
		ExtendedTypes: c.Server.ExtendedTypes, SASL: c.SASL.File != "",
		X509:   (c.SecureClientPort != config.NoPort || c.PortUnification) && c.TLS.ClientAuth != config.ClientAuthNone,
		Digest: !c.Auth.NoDigest, SHA1: c.Auth.Digest == 0 || c.Auth.Digest == crypto.SHA1,
	}
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
