package membership

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/hashicorp/raft"

	"github.com/zk-lite/zk-lite/consensus/peerkeys"
	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/consensus/transport"
	"github.com/zk-lite/zk-lite/consensus/transport/mux"
	"github.com/zk-lite/zk-lite/znode"
)

// A server whose key belongs to no member asks any member to join, and proves that it knows a secret (peerkeys). The
// member passes its key to the leader, which enrolls it. A server with data keeps its vote: it has a new key, no more.
// One without, that had a vote, loses it until it has caught up, if the others can do without it.

// Join has another server enroll this server's key, and takes the keys that it knows. fresh: this server has no data.
func (e *Ensemble) Join(to state.ServerID, fresh bool) (Reply, error) {
	var self Server
	for _, s := range e.cfg.Servers {
		if s.ID == e.cfg.Self {
			self = s
		}
	}
	reply, err := e.Ask(e.cfg.Context, to, Request{Op: controlJoin, Addr: self.Addr, Vote: self.Voter, Fresh: fresh})
	switch {
	case err != nil:
		return reply, err
	case !reply.Proved:
		return reply, fmt.Errorf("server %d has not proved that it knows the join secret", to)
	}
	return reply, e.UpdateKeys(reply.Keys, to, reply.ShownKey)
}

// passJoin has the leader enroll the key of a server that has proved itself, and waits until this server knows it.
func (e *Ensemble) passJoin(conn *mux.Conn, req *Request) error {
	key, _ := e.cfg.Keys.KeyOf(conn.Conn)
	enroll := *req
	enroll.Op, enroll.Server, enroll.Key, enroll.Proof = controlBind, req.From, key, nil
	ctx, cancel := context.WithTimeout(e.cfg.Context, controlTimeout)
	defer cancel()
	if err := e.askLeader(ctx, enroll); err != nil {
		return fmt.Errorf("letting server %d in: %w", req.From, err)
	}
	return e.retry(ctx, func() error {
		if e.cfg.Keys.Table().Keys[req.From] != key {
			return errNotLeader
		}
		return nil
	})
}

// enroll does on the leader what passJoin asks for.
func (l *leader) enroll(req *Request) error {
	l.enrolling <- struct{}{}
	defer func() { <-l.enrolling }()
	r, err := l.leads()
	if err != nil {
		return err
	}
	have, in := l.configuration.Members()[req.Server]
	m := state.Member{ID: req.Server, Key: req.Key}
	switch none := (peerkeys.Key{}); {
	case req.Server > state.MaxServerID || req.Server == l.cfg.Self:
		return fmt.Errorf("server %d cannot join: it leads", req.Server)
	case req.Token != none && (have.Token != req.Token || time.Now().UnixMilli() >= have.TokenUntil):
		return errors.New("the one-time token has been used, or is too old")
	case !in, req.Vote && !have.Voter && have.Addr == "":
		// A member already: an earlier leader got no further than raft's change.
		host, port, wrong := net.SplitHostPort(req.Addr)
		if wrong != nil {
			return fmt.Errorf("server %d joins without the address of its peer port: %w", req.Server, wrong)
		}
		if net.ParseIP(host).IsUnspecified() {
			return fmt.Errorf("server %d joins with the address %s, where no one finds it: its own line server.N must "+
				"name its host", req.Server, req.Addr)
		}
		m.Addr, m.Peer, m.Vote = req.Addr, req.Addr+":"+port, req.Vote
		if !in {
			err = l.addNonvoter(r, req.Server)
		}
	case have.Voter && req.Fresh:
		// It stays a member meanwhile, with its token: another leader may have to go on from here.
		m.Vote = true
		err = l.demote(r, req.Server)
	}
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(l.cfg.Context, changeTimeout)
	defer cancel()
	code, err := l.cfg.Queue.Do(ctx, &state.Command{Op: state.OpMember, Member: m})
	if err == nil && code != znode.OK {
		err = ErrNoMember
	}
	if err == nil && have.Key != m.Key {
		l.cfg.Logger.Info("a server has joined with a new key", "server", req.Server, "key", req.Key.Short(),
			"without_data", req.Fresh, "by_token", req.Token != peerkeys.Key{})
	}
	return err
}

func (l *leader) addNonvoter(r *raft.Raft, id state.ServerID) error {
	return leaderError(l.answerOf(r.AddNonvoter(transport.RaftID(uint64(id)), raft.ServerAddress(AddressOf(id)), 0,
		changeTimeout)))
}

// ErrNoTokens reports that servers do not need tokens to join.
var ErrNoTokens = errors.New("servers need no token here: with peer.tls=false everybody may join, and with " +
	"sslQuorum=true certificates decide")

// NewToken makes a one-time token with which a server may join as a member, with a new key, and returns it and when it
// ends. It takes the place of an earlier one.
//
// Errors: ErrNoTokens, ErrNoMember, ErrNoLeader; ctx's, and then the outcome is unknown.
func (e *Ensemble) NewToken(ctx context.Context, id state.ServerID) (secret string, until time.Time, err error) {
	switch {
	case !e.cfg.Keys.Tokens():
		err = ErrNoTokens
	case e.suffrage(id) == NotMember:
		err = ErrNoMember
	default:
		m := state.Member{ID: id}
		secret, m.Token = peerkeys.NewToken()
		until = time.Now().Add(peerkeys.TokenTime)
		m.TokenUntil = until.UnixMilli()
		var code znode.Error
		if err = e.awaitLeader(ctx); err == nil {
			code, err = e.cfg.Queue.Do(ctx, &state.Command{Op: state.OpMember, Member: m})
		}
		if err == nil && code != znode.OK {
			err = ErrNoMember
		}
	}
	if err != nil {
		return "", until, fmt.Errorf("making a token for server %d: %w", id, err)
	}
	return secret, until, nil
}

// UpdateKeys takes the table that another server has sent, with its own key. A nil key is a connection without TLS,
// which proves nothing, and whose table is not needed.
func (e *Ensemble) UpdateKeys(t *peerkeys.Table, from state.ServerID, key *peerkeys.Key) error {
	switch {
	case key == nil:
		return nil
	case t == nil:
		return fmt.Errorf("server %d has sent no table of keys", from)
	case t.Keys[from] != *key:
		return fmt.Errorf("server %d has sent a table in which its key is not the one that it shows", from)
	case t.Keys[e.cfg.Self] != e.cfg.Keys.Own():
		return fmt.Errorf("server %d takes another key for that of server %d: is there another server with this "+
			"number?", from, e.cfg.Self)
	}
	return e.cfg.Keys.Update(t)
}

// followKeys asks the others for their tables when a key is shown that this server does not know, and it has no leader:
// members may have changed while it was away. Strangers cause it at most once in an election timeout.
func (e *Ensemble) followKeys() {
	for {
		select {
		case <-e.cfg.Context.Done():
			return
		case <-e.cfg.Keys.Met():
		}
		if e.cfg.Leadership.Now().Leader == state.NoServer {
			e.refreshKeys()
		}
		select {
		case <-e.cfg.Context.Done():
			return
		case <-time.After(e.cfg.ElectionTimeout):
		}
	}
}

// refreshKeys takes the newest table of those servers that this one knows.
func (e *Ensemble) refreshKeys() {
	for id := range e.cfg.Keys.Table().Keys {
		if id == e.cfg.Self {
			continue
		}
		reply, err := e.Ask(e.cfg.Context, id, Request{Op: RequestWho})
		if err == nil && reply.Keys != nil && reply.ShownKey != nil {
			if err := e.cfg.Keys.Update(reply.Keys); err != nil {
				e.cfg.Logger.Warn("the keys that another server knows are not taken", "server", id, "error", err)
			}
		}
	}
}
