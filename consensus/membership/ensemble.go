// Package membership is the ensemble as one of its servers sees it: who is a member and how that is changed
// (members.go, leader.go), how a server proves that it may join (join.go), and the ensemble's status (status.go).
// Servers ask each other on control connections (control.go). The first start is package founding's.
//
// The package does not start raft, and reads who leads where that is published.
//
// # Goroutines and locks
//
// Serve accepts control connections, with one more goroutine for each. After Start, one waits until this server is no
// longer a member (removal.go), and one follows the keys of the others (join.go). RunAutopilot runs while this server
// leads (autopilot.go), and carries reconfigurations out (reconfigure.go). What raft may never answer has a goroutine
// that nothing waits for.
//
// No lock is held while anything waits for disk or network: leader.enrolling is a channel with room for one.
package membership

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"github.com/zk-lite/zk-lite/consensus/peerkeys"
	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/consensus/storage"
	"github.com/zk-lite/zk-lite/consensus/transport/mux"
)

// Ensemble is the ensemble as one of its servers sees it.
type Ensemble struct {
	cfg *Config
	*control
	*configuration
	*leader
	identity atomic.Pointer[storage.Identity] // nil: this server belongs to no ensemble yet
}

// New returns an Ensemble that does nothing before Serve and Start.
func New(cfg Config) *Ensemble {
	c := &control{cfg.Self, cfg.Mux, cfg.Keys}
	x := &configuration{cfg: &cfg, moved: make(chan struct{}, 1)}
	l := &leader{cfg: &cfg, control: c, configuration: x, enrolling: make(chan struct{}, 1),
		reconfigured: make(chan struct{}, 1)}
	return &Ensemble{cfg: &cfg, control: c, configuration: x, leader: l}
}

// SetIdentity notes to which ensemble this server belongs.
func (e *Ensemble) SetIdentity(id storage.Identity) {
	e.cfg.Keys.SetMember()
	e.identity.Store(&id)
}

// Identity returns to which ensemble this server belongs; nil: none yet.
func (e *Ensemble) Identity() *storage.Identity { return e.identity.Load() }

// Start gives the Ensemble raft, which has been started, and follows what becomes of this server's membership.
func (e *Ensemble) Start(r *raft.Raft) {
	e.raft.Store(r)
	if !e.cfg.Standalone {
		e.cfg.Tasks.Go(e.watchRemoval)
	}
	if e.cfg.Keys != nil {
		e.cfg.Tasks.Go(e.followKeys)
	}
}

// Serve answers control connections until there are no more.
func (e *Ensemble) Serve() {
	for {
		conn, err := e.cfg.Mux.Accept(mux.KindControl)
		if err != nil {
			return // the mux was closed
		}
		e.cfg.Tasks.Go(func() {
			defer func() { _ = conn.Close() }()
			e.serveControl(conn)
		})
	}
}

// serveControl answers one request of a server. One that belongs to no ensemble yet, and has no id, may only find one.
func (e *Ensemble) serveControl(conn *mux.Conn) {
	if conn.SetDeadline(time.Now().Add(controlTimeout)) != nil {
		return
	}
	var req Request
	if err := json.NewDecoder(io.LimitReader(bufio.NewReader(conn), controlMax)).Decode(&req); err != nil {
		return
	}
	reply := Reply{Version: controlVersion, Server: e.cfg.Self, nextRelease: releaseFields()}
	err := checkControlVersion(req.Version)
	if err == nil {
		err = e.authorize(conn, &req, &reply)
	}
	if err == nil {
		err = e.answer(conn, &req, &reply)
	}
	if err != nil {
		reply.Error = err.Error()
		reply.NotLeader, reply.TooFew = errors.Is(err, errNotLeader), errors.Is(err, ErrTooFew)
	}
	bound := e.cfg.Keys.Bound(conn.Conn)
	if id := e.identity.Load(); id != nil && (bound || e.cfg.Keys.WasRemoved(conn.Conn, req.From)) {
		reply.Ensemble, reply.Bootstrapping = fmt.Sprintf("%x", id.Ensemble), id.Bootstrapping
		reply.Suffrage, reply.Applied = e.suffrage(req.From), e.cfg.Applied.Index.Load()
		configured := e.cfg.Applied.Configuration()
		_, in := configured[req.From]
		reply.Removed = len(configured) > 0 && !in
		reply.Led, reply.Called = e.cfg.Leadership.Now().Leader != state.NoServer, e.called(req.From)
		if bound {
			reply.Keys = e.cfg.Keys.Table()
		}
		if r := e.raft.Load(); r != nil {
			reply.Last = r.LastIndex()
		}
	}
	_ = json.NewEncoder(conn).Encode(reply)
}

// authorize returns why a server may not ask for something, and notes what it has proved.
func (e *Ensemble) authorize(conn *mux.Conn, req *Request, reply *Reply) error {
	from, known := conn.ServerID(), error(nil)
	if from < mux.NoServer {
		req.From = state.ServerID(from)
		known = e.cfg.Keys.CheckKey(conn.Conn, req.From)
	}
	if req.Op != controlBind {
		req.Token = peerkeys.Key{}
		reply.Proof, req.Token = e.cfg.Keys.CheckProof(conn.Conn, req.From, req.Proof)
	}
	if reply.Proof != nil {
		conn.Known()
	}
	switch member := e.identity.Load() != nil; {
	case req.Op == controlJoin && reply.Proof != nil:
		return nil
	case req.Op == controlJoin:
		return fmt.Errorf("server %d has not proved that it knows the join secret, or a one-time token for this "+
			"number that is neither used nor older than a day; `zk-lite member token %d` makes one", req.From, req.From)
	case req.Op == RequestWho && e.cfg.Keys.WasRemoved(conn.Conn, req.From):
		return nil
	case known != nil:
		return known
	case member && !e.cfg.Keys.Bound(conn.Conn):
		return fmt.Errorf("the key of server %d is bound to no member of the ensemble; to let it in: `zk-lite "+
			"member add` or `zk-lite member token %d`, and the token into its peer.joinSecretFile", req.From, req.From)
	case !member && req.founds() && reply.Proof == nil && e.cfg.Keys.HasSecret():
		return fmt.Errorf("server %d has not proved that it knows the join secret of server %d", req.From, e.cfg.Self)
	case from >= mux.NoServer && req.Op != RequestWho && !req.founds():
		return fmt.Errorf("only a server of this ensemble may ask for %q", req.Op)
	}
	return nil
}

// checkSeeds returns why a server whose release knows no imported data cannot found an ensemble with this one, which
// has some: it would found one without them.
func (c *Config) checkSeeds(req *Request) error {
	if c.Seed == "" || req.Seeds {
		return nil
	}
	return fmt.Errorf("server %d has data imported from ZooKeeper, with which the release of server %d cannot found "+
		"an ensemble: run the same release on all servers", c.Self, req.From)
}

func (e *Ensemble) answer(conn *mux.Conn, req *Request, reply *Reply) (err error) {
	switch req.Op {
	case RequestWho:
		if e.identity.Load() == nil {
			reply.Seed, err = cmp.Or(e.cfg.Seed, NoSeed), e.cfg.checkSeeds(req)
		}
	case controlCheck:
		reply.Check = e.cfg.Check.Answer(req.From, req.At)
	case RequestFound, RequestFoundSeeded:
		err = e.cfg.Found(conn, req)
	case controlJoin:
		err = e.passJoin(conn, req)
	case controlBind:
		err = e.enroll(req)
	case controlAdd, controlRemove, controlTransfer, controlCheckStop:
		err = e.executeAsLeader(req)
	case controlStatus:
		reply.Status, err = e.statusAsLeader()
	default:
		err = fmt.Errorf("unknown request %q", req.Op)
	}
	return err
}
