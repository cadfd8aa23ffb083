package membership

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/hashicorp/raft"

	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/consensus/storage"
	"github.com/zk-lite/zk-lite/consensus/transport/mux"
)

// Ensemble is the ensemble as one of its servers sees it.
type Ensemble struct {
	cfg *Config
	*control
	*bootstrapper
	*configuration
	*leader
}

// New returns an Ensemble that does nothing before Serve and Bootstrap.
func New(cfg Config) *Ensemble {
	c := &control{cfg.Self, cfg.Mux}
	b := &bootstrapper{cfg: &cfg, control: c, accepted: make(chan storage.Identity, 1)}
	x := &configuration{published: cfg.Published}
	return &Ensemble{&cfg, c, b, x, &leader{&cfg, c, x}}
}

// Start begins to answer what only raft can, and finishes what Bootstrap has begun.
func (e *Ensemble) Start(r *raft.Raft) {
	e.configuration.raft.Store(r)
	id := *e.identity.Load()
	if id.Bootstrapping {
		e.cfg.Go(func() { e.finishBootstrap(id) })
	}
	if !e.standalone() {
		e.cfg.Go(func() { e.checkOthers(id) })
		e.cfg.Go(e.watchRemoval)
	}
}

// Serve answers control connections until there are no more.
func (e *Ensemble) Serve() {
	for {
		conn, err := e.cfg.Mux.Accept(mux.KindControl)
		if err != nil {
			return // the mux was closed
		}
		e.cfg.Go(func() {
			defer func() { _ = conn.Close() }()
			e.serveControl(conn, conn.ServerID())
		})
	}
}

// serveControl answers one request of a server; from is NoServer for one that belongs to no ensemble yet, which may
// only find one.
func (e *Ensemble) serveControl(conn net.Conn, from uint64) {
	if conn.SetDeadline(time.Now().Add(controlTimeout)) != nil {
		return
	}
	var req controlRequest
	if err := json.NewDecoder(io.LimitReader(bufio.NewReader(conn), controlMax)).Decode(&req); err != nil {
		return
	}
	reply := controlReply{Server: e.cfg.Self}
	var err error
	if from < mux.NoServer {
		req.From = state.ServerID(from)
	} else if req.Op != controlWho && req.Op != controlBootstrap {
		err = fmt.Errorf("only a server of this ensemble may ask for %q", req.Op)
	}
	if err == nil {
		err = e.answer(&req, &reply)
	}
	if err != nil {
		reply.Error = err.Error()
		reply.NotLeader, reply.TooFew = errors.Is(err, errNotLeader), errors.Is(err, ErrTooFew)
	}
	if id := e.identity.Load(); id != nil {
		reply.Ensemble, reply.Bootstrapping = fmt.Sprintf("%x", id.Ensemble), id.Bootstrapping
		reply.Suffrage, reply.Applied = e.suffrage(req.From), e.cfg.Applied()
		configured := e.cfg.Configured()
		_, in := configured[req.From]
		reply.Removed = len(configured) > 0 && !in
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
