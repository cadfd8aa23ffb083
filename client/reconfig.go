package client

import (
	"bytes"
	"cmp"
	"context"
	"strings"

	"github.com/zk-lite/zk-lite/internal/jute"
	"github.com/zk-lite/zk-lite/internal/wire"
)

// Reconfiguration is a change of the ensemble's members: either Joining and
// Leaving, or the complete new list, Members.
type Reconfiguration struct {
	// Joining are servers to add or change, as in
	// "server.4=host:2888:3888:participant;2181".
	Joining []string
	// Leaving are the ids of servers to remove.
	Leaving []string
	// Members are all servers, in the form of Joining.
	Members []string
	// Version is the version of the configuration to change (the version= line
	// of Ensemble, a hexadecimal number there); 0 or -1 for any.
	Version int64
}

// Reconfig changes the members of the ensemble and returns the new
// configuration.
//
// Errors: ErrReconfigDisabled, ErrUnimplemented (standalone),
// ErrReconfigInProgress, ErrNewConfigNoQuorum, ErrBadVersion, ErrBadArguments,
// ErrNoAuth (WRITE on /zookeeper/config); ErrOutcomeUnknown.
func (c *Client) Reconfig(ctx context.Context, change Reconfiguration) ([]byte, Stat, error) {
	v, err := write(ctx, c.Async().Reconfig(ctx, change))
	return v.Data, v.Stat, err
}

// Reconfig is Client.Reconfig without waiting for the answer.
func (a Async) Reconfig(ctx context.Context, change Reconfiguration) *Pending[GetReply] {
	o := newOp[wire.ReconfigRequest](a.c, wire.OpReconfig, configReply)
	o.req = wire.ReconfigRequest{
		JoiningServers: joined(change.Joining),
		LeavingServers: joined(change.Leaving),
		NewMembers:     joined(change.Members),
		CurConfigID:    cmp.Or(change.Version, -1),
	}
	return o.submit(ctx)
}

func configReply(_ *call, r *jute.Reader) GetReply {
	var resp wire.ReconfigResponse
	resp.Decode(r)
	return GetReply{Data: bytes.Clone(resp.Data), Stat: resp.Stat}
}

// joined is the list as the protocol has it: null if there is nothing in it.
func joined(list []string) *string {
	if len(list) == 0 {
		return nil
	}
	s := strings.Join(list, ",")
	return &s
}

// configPath is where servers keep the configuration. No chroot applies.
const configPath = "/zookeeper/config"

// Ensemble returns the configuration of the ensemble: a line for every server, as
// in Reconfiguration.Joining, and one with version=. A standalone server has an
// empty one.
func (c *Client) Ensemble(ctx context.Context) ([]byte, Stat, error) {
	v, err := read(ctx, func() *Pending[GetReply] { return c.config(ctx, false) })
	return v.Data, v.Stat, err
}

// EnsembleW is Ensemble, and sets a watch that fires when the configuration
// changes.
func (c *Client) EnsembleW(ctx context.Context) ([]byte, Stat, *Watch, error) {
	v, err := read(ctx, func() *Pending[GetReply] { return c.config(ctx, true) })
	return v.Data, v.Stat, v.Watch, err
}

func (c *Client) config(ctx context.Context, watch bool) *Pending[GetReply] {
	o := newOp[wire.GetDataRequest](c, wire.OpGetData, dataReply)
	o.path, o.full = configPath, configPath
	o.req = wire.GetDataRequest{Path: configPath, Watch: watch}
	o.setWatch(watch, watchData)
	return o.submit(ctx)
}
