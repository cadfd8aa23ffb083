package membership

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
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
	Leader   state.ServerID `json:"leader,omitempty"` // the one that is to lose leadership
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
	// Status answers controlStatus.
	Status *Status `json:"survey,omitempty"`
	Error  string  `json:"error,omitempty"`
	// Why Error, if the asker does something about it.
	NotLeader bool `json:"not_leader,omitempty"`
	TooFew    bool `json:"too_few,omitempty"`
}

// suffrage is what a server is in raft's configuration.
type suffrage string

const (
	notMember suffrage = ""
	voter     suffrage = "voter"
	nonvoter  suffrage = "nonvoter"
)

const (
	controlTimeout = 3 * time.Second
	controlMax     = 64 << 10
)

// ask sends a control request to a server.
func (e *Ensemble) ask(
	ctx context.Context, to state.ServerID, req controlRequest,
) (controlReply, error) {
	ctx, cancel := context.WithTimeout(ctx, controlTimeout)
	defer cancel()
	conn, err := e.cfg.Mux.Dial(ctx, mux.KindControl, AddressOf(to), 0)
	if err != nil {
		return controlReply{}, err
	}
	defer conn.Close()
	until, _ := ctx.Deadline()
	if err := conn.SetDeadline(until); err != nil {
		return controlReply{}, err
	}
	req.From = e.cfg.Self
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

// Serve answers control connections until there are no more.
func (e *Ensemble) Serve() {
	for {
		conn, err := e.cfg.Mux.Accept(mux.KindControl)
		if err != nil {
			return // the mux was closed
		}
		e.cfg.Go(func() {
			defer conn.Close()
			e.serveControl(conn)
		})
	}
}

func (e *Ensemble) serveControl(conn net.Conn) {
	if conn.SetDeadline(time.Now().Add(controlTimeout)) != nil {
		return
	}
	var req controlRequest
	if err := json.NewDecoder(io.LimitReader(bufio.NewReader(conn), controlMax)).Decode(&req); err != nil {
		return
	}
	reply := controlReply{Server: e.cfg.Self}
	if err := e.answer(&req, &reply); err != nil {
		reply.Error = err.Error()
		reply.NotLeader, reply.TooFew = errors.Is(err, errNotLeader), errors.Is(err, ErrTooFew)
	}
	if id := e.identity.Load(); id != nil {
		reply.Ensemble, reply.Bootstrapping = fmt.Sprintf("%x", id.Ensemble), id.Bootstrapping
		reply.Suffrage, reply.Applied = e.suffrage(req.From), e.cfg.Applied()
		if r := e.raft.Load(); r != nil {
			reply.Last = r.LastIndex()
		}
	}
	_ = json.NewEncoder(conn).Encode(reply)
}

func (e *Ensemble) answer(req *controlRequest, reply *controlReply) (err error) {
	switch req.Op {
	case controlWho:
	case controlBootstrap:
		err = e.acceptBootstrap(req.Ensemble)
	case controlAdd, controlRemove, controlTransfer, controlCheckStop:
		err = e.executeAsLeader(req)
	case controlStatus:
		reply.Status, err = e.statusAsLeader()
	default:
		err = fmt.Errorf("unknown request %q", req.Op)
	}
	return err
}
