package membership

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/consensus/transport/mux"
)

// Control messages: a line of JSON each way on a control connection.
type controlRequest struct {
	Op       string         `json:"op"`
	From     state.ServerID `json:"from,omitempty"`
	Ensemble string         `json:"ensemble,omitempty"`
	Server   state.ServerID `json:"server,omitempty"` // the one that the request is about
	Leader   state.ServerID `json:"leader,omitempty"` // the one that is to lose it, if Server is NoServer
	Force    bool           `json:"force,omitempty"`
}

// The requests.
const (
	controlWho       = "who"  // who are you, and what am I in your configuration?
	controlBootstrap = "form" // belong to this ensemble, which is being bootstrapped
	// The others are for the leader.
	controlAdd       = "add"
	controlRemove    = "remove"
	controlTransfer  = "transfer"
	controlCheckStop = "spare"
	controlStatus    = "survey"
)

type controlReply struct {
	Server        state.ServerID `json:"server"`
	Ensemble      string         `json:"ensemble,omitempty"` // empty: fresh
	Bootstrapping bool           `json:"forming,omitempty"`
	Suffrage      suffrage       `json:"standing,omitempty"` // of From, in raft's configuration
	Applied       uint64         `json:"applied,omitempty"`  // index
	Last          uint64         `json:"last,omitempty"`     // index
	// Removed says that From is not in the configuration as of Applied.
	Removed bool `json:"removed,omitempty"`
	// Status answers controlStatus.
	Status *Status `json:"survey,omitempty"`
	Error  string  `json:"error,omitempty"`
	// Why Error, if the asker does something about it.
	NotLeader bool `json:"not_leader,omitempty"`
	TooFew    bool `json:"too_few,omitempty"`
}

const (
	controlTimeout = 3 * time.Second
	controlMax     = 64 << 10
)

// Between two tries.
const (
	retryMin = 2 * time.Millisecond
	retryMax = 100 * time.Millisecond
)

// control asks other servers.
type control struct {
	self state.ServerID
	mux  *mux.Mux
}

// ask sends a control request to a server.
func (c *control) ask(
	ctx context.Context, to state.ServerID, req controlRequest,
) (controlReply, error) {
	ctx, cancel := context.WithTimeout(ctx, controlTimeout)
	defer cancel()
	conn, err := c.mux.Dial(ctx, mux.KindControl, AddressOf(to), mux.NoServer)
	if err != nil {
		return controlReply{}, err
	}
	defer func() { _ = conn.Close() }()
	until, _ := ctx.Deadline()
	if err := conn.SetDeadline(until); err != nil {
		return controlReply{}, err
	}
	req.From = c.self
	if err := json.NewEncoder(conn).Encode(req); err != nil {
		return controlReply{}, err
	}
	var reply controlReply
	if err := json.NewDecoder(io.LimitReader(conn, controlMax)).Decode(&reply); err != nil {
		return controlReply{}, err
	}
	switch {
	case reply.Error != "":
		return reply, fmt.Errorf("server %d: %s", to, reply.Error)
	case reply.Server != to:
		return reply, fmt.Errorf("the server at the address of server %d is server %d", to, reply.Server)
	}
	return reply, nil
}
