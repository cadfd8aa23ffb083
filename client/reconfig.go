package client

import (
	"bytes"
	"context"
	"strings"

	"github.com/zk-lite/zk-lite/internal/jute"
	"github.com/zk-lite/zk-lite/internal/wire"
)

// Reconfiguration is a change of the ensemble's members. Either Joining and
// Leaving say what changes, or Members says what shall be.
type Reconfiguration struct {
	// Joining are servers to add or change, as in
	// "server.4=host:2888:3888:participant;2181".
	Joining []string
	// Leaving are the ids of servers to remove.
	Leaving []string
	// Members are all servers, in the form of Joining.
	Members []string
	// Version is that of the configuration which may be changed (the version=
	// line of Config, a hexadecimal number there); 0 or -1 for any.
	Version int64
}

type reconfigOp struct {
	Pending[GetReply]
	req wire.ReconfigRequest
}

func (op *reconfigOp) request() wire.Request { return &op.req }

func (op *reconfigOp) decode(r *jute.Reader) {
	var resp wire.ReconfigResponse
	resp.Decode(r)
	op.value = GetReply{Data: bytes.Clone(resp.Data), Stat: resp.Stat}
}

// Reconfig changes the members of the ensemble and returns the new
// configuration.
//
// Errors: ErrUnimplemented (zk-lite); of ZooKeeper ErrReconfigDisabled,
// ErrReconfigInProgress, ErrNewConfigNoQuorum, ErrBadVersion, ErrBadArguments,
// ErrNoAuth (WRITE on /zookeeper/config); ErrOutcomeUnknown.
func (c *Client) Reconfig(ctx context.Context, change Reconfiguration) ([]byte, Stat, error) {
	v, err := write(ctx, c.Async().Reconfig(ctx, change))
	return v.Data, v.Stat, err
}

// Reconfig is Client.Reconfig without waiting for the answer.
func (a Async) Reconfig(ctx context.Context, change Reconfiguration) *Pending[GetReply] {
	c := a.c
	op := new(reconfigOp)
	c.prepareAny(&op.call, wire.OpReconfig, "")
	op.req = wire.ReconfigRequest{
		JoiningServers: joined(change.Joining),
		LeavingServers: joined(change.Leaving),
		NewMembers:     joined(change.Members),
		CurConfigID:    change.Version,
	}
	if change.Version == 0 {
		op.req.CurConfigID = -1
	}
	c.submit(ctx, op)
	return &op.Pending
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

// EnsembleW is Config, and leaves a watch that fires when the configuration
// changes.
func (c *Client) EnsembleW(ctx context.Context) ([]byte, Stat, *Watch, error) {
	v, err := read(ctx, func() *Pending[GetReply] { return c.config(ctx, true) })
	return v.Data, v.Stat, v.Watch, err
}

func (c *Client) config(ctx context.Context, watch bool) *Pending[GetReply] {
	op := new(getDataOp)
	c.prepareAny(&op.call, wire.OpGetData, configPath)
	op.full = configPath
	op.req = wire.GetDataRequest{Path: configPath, Watch: watch}
	if watch {
		op.watch = newWatch(c, configPath, watchData, 1)
	}
	c.submit(ctx, op)
	return &op.Pending
}
