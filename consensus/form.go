package consensus

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/raft"

	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/consensus/storage"
	"github.com/zk-lite/zk-lite/consensus/transport"
	"github.com/zk-lite/zk-lite/consensus/transport/mux"
)

// Forming an ensemble happens once, when all its voters start with empty data
// directories. The voter with the lowest id does it:
//
//  1. it asks every other voter; all must answer that they are fresh;
//  2. it notes on disk that it is forming ensemble X (a random id);
//  3. it tells every voter "you are server N of X", which each notes on disk;
//  4. when all have confirmed, it strikes its note "forming".
//
// A crash in between is made good by doing 3 again. Every server bootstraps
// raft with the same configuration when it learns of X.
//
// A fresh server that finds an ensemble formed, and no longer forming, had its
// disk wiped: it may have voted and acknowledged what it does not know any
// more. Letting it vote again could lose acknowledged writes, so it is
// refused, as is one that is told to join another ensemble than it belongs to.

// Control messages: a line of JSON each way on a control connection.
type controlRequest struct {
	Op       string         `json:"op"` // "who", "form", or one of members.go
	From     state.ServerID `json:"from,omitempty"`
	Ensemble string         `json:"ensemble,omitempty"`
	Server   state.ServerID `json:"server,omitempty"` // whom the request is about
	Leader   state.ServerID `json:"leader,omitempty"` // from whom leadership is taken
	Force    bool           `json:"force,omitempty"`
}

type controlReply struct {
	Server   state.ServerID  `json:"server"`
	Ensemble string          `json:"ensemble,omitempty"` // empty: fresh
	Forming  bool            `json:"forming,omitempty"`
	Standing standing        `json:"standing,omitempty"` // of From, in raft's configuration
	Applied  uint64          `json:"applied,omitempty"`  // index
	Last     uint64          `json:"last,omitempty"`     // index
	Survey   *EnsembleStatus `json:"survey,omitempty"`   // of controlSurvey
	Error    string          `json:"error,omitempty"`
	// Why Error, if the asker does something about it.
	NotLeader bool `json:"not_leader,omitempty"`
	TooFew    bool `json:"too_few,omitempty"`
}

// standing is what a server is in raft's configuration.
type standing string

const (
	standsOutside standing = ""
	standsVoter   standing = "voter"
	standsOther   standing = "nonvoter"
)

const (
	controlTimeout = 3 * time.Second
	controlMax     = 64 << 10
	formInterval   = 50 * time.Millisecond // between two rounds of asking
	formRemind     = 5 * time.Second       // between two log lines about waiting
)

// errWiped says that this server must not take part.
var errWiped = errors.New("this server's data directory is empty, but the ensemble exists")

// form waits until this server belongs to an ensemble and returns its identity.
func (n *Node) form() (storage.Identity, error) {
	if n.cfg.standalone() {
		return n.become(newEnsemble(), false)
	}
	former := n.cfg.lowestVoter() == n.cfg.ID
	reminded := time.Now()
	for {
		id, waiting, err := n.formRound(former)
		if err != nil || id != nil {
			return deref(id), err
		}
		if time.Since(reminded) >= formRemind {
			reminded = time.Now()
			n.logger.Info("waiting to form the ensemble: all its voters must be up", "waiting", waiting)
		}
		select {
		case <-n.ctx.Done():
			return storage.Identity{}, ErrStopped
		case id := <-n.formed:
			return id, nil
		case <-time.After(formInterval):
		}
	}
}

func deref(id *storage.Identity) storage.Identity {
	if id == nil {
		return storage.Identity{}
	}
	return *id
}

// formRound asks all others once. It returns the identity if this server has
// one now, or what it is waiting for.
func (n *Node) formRound(former bool) (*storage.Identity, string, error) {
	var missing []string // what there is to wait for
	for _, s := range n.cfg.Servers {
		if s.ID == n.cfg.ID {
			continue
		}
		reply, err := n.ask(s.ID, controlRequest{Op: "who"})
		switch {
		case err != nil:
			if s.Voter {
				missing = append(missing, fmt.Sprintf("for server %d (%s): %v", s.ID, s.Addr, err))
			}
		case reply.Ensemble != "" && !reply.Forming:
			ensemble, err := storage.ParseEnsemble(reply.Ensemble)
			if err != nil {
				return nil, "", fmt.Errorf("server %d: %w", s.ID, err)
			}
			if !n.cfg.self().Voter || reply.Standing == standsOther {
				// Who does not vote has acknowledged nothing that counts.
				id, err := n.enter(ensemble)
				return &id, "", err
			}
			if reply.Standing == standsOutside {
				missing = append(missing, fmt.Sprintf("to be added to ensemble %s, of which server %d "+
					"is not a member", reply.Ensemble, n.cfg.ID))
				continue
			}
			if told := n.identity.Load(); told != nil {
				// The answer was given after this server had been told to form.
				return told, "", nil
			}
			if former || s.ID == n.cfg.lowestVoter() {
				// The voter with the lowest id strikes "forming" last.
				return nil, "", fmt.Errorf("%w: server %d is in ensemble %s. If its disk was "+
					"replaced, remove server %d from the ensemble and add it again; if it holds "+
					"the wrong directory, set dataDir", errWiped, s.ID, reply.Ensemble, n.cfg.ID)
			}
		}
	}
	switch {
	case len(missing) > 0:
		return nil, strings.Join(slices.Compact(missing), "; "), nil // members say the same
	case !former:
		return nil, "to be told by the voter with the lowest id", nil
	}
	id, err := n.become(newEnsemble(), true)
	return &id, "", err
}

func newEnsemble() (id [16]byte) {
	if _, err := rand.Read(id[:]); err != nil {
		panic(fmt.Sprintf("consensus: the system gives no random bytes: %v", err))
	}
	return id
}

// enter notes that this server belongs to an ensemble that exists. Raft's
// configuration comes with the log.
func (n *Node) enter(ensemble [16]byte) (storage.Identity, error) {
	id := storage.Identity{Ensemble: ensemble, Server: n.cfg.ID}
	return id, n.cfg.Storage.Identity.Save(id)
}

// become notes that this server belongs to an ensemble that is being formed, and
// gives raft its first configuration.
func (n *Node) become(ensemble [16]byte, forming bool) (storage.Identity, error) {
	id := storage.Identity{Ensemble: ensemble, Server: n.cfg.ID, Forming: forming}
	if err := n.bootstrap(); err != nil {
		return id, err
	}
	return id, n.cfg.Storage.Identity.Save(id)
}

// bootstrap writes raft's first configuration. It may have done so before a
// crash, in which case it is there.
func (n *Node) bootstrap() error {
	s := &n.cfg.Storage
	exists, err := raft.HasExistingState(s.Log, s.Stable, s.Snapshots)
	if err != nil {
		return fmt.Errorf("looking for raft's state: %w", err)
	}
	if exists {
		return nil
	}
	var c raft.Configuration
	for _, x := range n.cfg.Servers {
		suffrage := raft.Nonvoter
		if x.Voter {
			suffrage = raft.Voter
		}
		c.Servers = append(c.Servers, raft.Server{
			Suffrage: suffrage, ID: transport.RaftID(uint64(x.ID)), Address: raft.ServerAddress(addressOf(x.ID)),
		})
	}
	cfg := n.raftConfig()
	if err := raft.BootstrapCluster(cfg, s.Log, s.Stable, s.Snapshots, n.transport, c); err != nil {
		return fmt.Errorf("bootstrapping raft: %w", err)
	}
	return nil
}

// finishForming tells every voter which ensemble it belongs to, until all know.
func (n *Node) finishForming(id storage.Identity) {
	request := controlRequest{Op: "form", Ensemble: fmt.Sprintf("%x", id.Ensemble)}
	told := map[state.ServerID]bool{n.cfg.ID: true}
	for left := true; left; {
		left = false
		for _, s := range n.cfg.Servers {
			if told[s.ID] || !s.Voter {
				continue
			}
			if _, err := n.ask(s.ID, request); err != nil {
				left = true
				n.logger.Debug("telling a server which ensemble it is in", "server", s.ID, "error", err)
				continue
			}
			told[s.ID] = true
		}
		if left {
			select {
			case <-n.ctx.Done():
				return
			case <-time.After(formInterval):
			}
		}
	}
	id.Forming = false
	if err := n.cfg.Storage.Identity.Save(id); err != nil {
		n.fatal(err)
		return
	}
	n.identity.Store(&id)
	n.logger.Info("ensemble formed", "ensemble", fmt.Sprintf("%x", id.Ensemble))
}

// checkOthers asks the other voters until one is in this server's ensemble. A
// server that most of them turn away has the wrong data directory, or is in the
// wrong configuration, and says so rather than ask for ever.
func (n *Node) checkOthers(id storage.Identity) {
	look := time.NewTicker(n.cfg.ElectionTimeout)
	defer look.Stop()
	for {
		voters, foreign := 0, []state.ServerID(nil)
		for _, s := range n.cfg.Servers {
			if s.Voter {
				voters++
			}
			if !s.Voter || s.ID == n.cfg.ID {
				continue
			}
			reply, err := n.ask(s.ID, controlRequest{Op: "who"})
			var refused *mux.RefusedError
			switch {
			case err == nil && reply.Ensemble == fmt.Sprintf("%x", id.Ensemble):
				return
			case errors.As(err, &refused) && refused.Code == mux.RefusedEnsemble:
				foreign = append(foreign, s.ID)
			}
		}
		if len(foreign) > voters/2 {
			n.fatal(fmt.Errorf("this server's data directory belongs to ensemble %x, but servers %v "+
				"belong to another ensemble: check dataDir, and the addresses in the configuration",
				id.Ensemble, foreign))
			return
		}
		select {
		case <-n.ctx.Done():
			return
		case <-look.C:
		}
	}
}

// ask sends a control request to a server.
func (n *Node) ask(to state.ServerID, req controlRequest) (controlReply, error) {
	return n.askIn(n.ctx, to, req)
}

// askIn is ask for who does not wait as long.
func (n *Node) askIn(
	ctx context.Context, to state.ServerID, req controlRequest,
) (controlReply, error) {
	ctx, cancel := context.WithTimeout(ctx, controlTimeout)
	defer cancel()
	conn, err := n.mux.Dial(ctx, mux.KindControl, addressOf(to), 0)
	if err != nil {
		return controlReply{}, err
	}
	defer conn.Close()
	until, _ := ctx.Deadline()
	if err := conn.SetDeadline(until); err != nil {
		return controlReply{}, err
	}
	req.From = n.cfg.ID
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
		return reply, fmt.Errorf("the server at the address of server %d says that it is server %d", to, reply.Server)
	}
	return reply, nil
}

// acceptControl answers control connections.
func (n *Node) acceptControl() {
	for {
		conn, err := n.mux.Accept(mux.KindControl)
		if err != nil {
			return // the mux was closed
		}
		n.tasks.Go(func() {
			defer conn.Close()
			n.serveControl(conn)
		})
	}
}

func (n *Node) serveControl(conn net.Conn) {
	if conn.SetDeadline(time.Now().Add(controlTimeout)) != nil {
		return
	}
	var req controlRequest
	if err := json.NewDecoder(io.LimitReader(bufio.NewReader(conn), controlMax)).Decode(&req); err != nil {
		return
	}
	reply := controlReply{Server: n.cfg.ID}
	switch req.Op {
	case "who":
	case "form":
		if err := n.toldToForm(req.Ensemble); err != nil {
			reply.Error = err.Error()
		}
	default:
		n.serveMembers(&req, &reply)
	}
	if id := n.identity.Load(); id != nil {
		reply.Ensemble, reply.Forming = fmt.Sprintf("%x", id.Ensemble), id.Forming
		reply.Standing, reply.Applied = n.standing(req.From), n.applied.Load()
		select {
		case <-n.ready:
			reply.Last = n.raft.LastIndex()
		default:
		}
	}
	_ = json.NewEncoder(conn).Encode(reply)
}

// toldToForm makes this server a member of the ensemble that another forms.
func (n *Node) toldToForm(ensemble string) error {
	want, err := storage.ParseEnsemble(ensemble)
	if err != nil {
		return err
	}
	n.forming.Lock()
	defer n.forming.Unlock()
	if have := n.identity.Load(); have != nil {
		if have.Ensemble != want {
			return fmt.Errorf("this server belongs to ensemble %x", have.Ensemble)
		}
		return nil
	}
	id, err := n.become(want, false)
	if err != nil {
		return err
	}
	n.identity.Store(&id)
	n.formed <- id
	return nil
}
