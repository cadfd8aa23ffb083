package consensus

import (
	"bufio"
	"context"
	"net"
	"runtime"
	"time"

	"github.com/hashicorp/raft"

	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/consensus/transport"
	"github.com/zk-lite/zk-lite/consensus/transport/mux"
)

// Times of a stream.
const (
	streamWriteTimeout = 5 * time.Second // a leader that takes nothing for so long is gone
	redialMin          = 2 * time.Millisecond
	redialMax          = 100 * time.Millisecond
)

// follow keeps this server's commands flowing to the leader, whoever that is,
// until the node stops.
func (n *Node) follow() {
	events := make(chan raft.Observation, 16)
	observer := raft.NewObserver(events, false, func(o *raft.Observation) bool {
		_, isLeader := o.Data.(raft.LeaderObservation)
		return isLeader
	})
	n.raft.RegisterObserver(observer)
	defer n.raft.DeregisterObserver(observer)
	backoff := redialMin
	for n.ctx.Err() == nil {
		_, leader := n.raft.LeaderWithID()
		id := state.ServerID(transport.ParseRaftID(leader))
		var worked bool
		switch {
		case leader == "":
		case id == n.cfg.ID:
			worked = n.serveSelf()
		default:
			worked = n.serveRemote(id, leader, events)
		}
		if worked {
			backoff = redialMin
		} else {
			backoff = min(2*backoff, redialMax)
		}
		select {
		case <-n.ctx.Done():
		case <-events:
			backoff = redialMin
		case <-time.After(backoff):
		}
	}
}

// stillLeads reports whether raft still believes in this leader.
func (n *Node) stillLeads(leader raft.ServerID) bool {
	_, now := n.raft.LeaderWithID()
	return now == leader
}

// serveSelf feeds this server's own reign. It reports whether there was one.
func (n *Node) serveSelf() bool {
	r := n.reign()
	if r == nil || r.ctx.Err() != nil {
		return false
	}
	n.forward.rewind()
	for {
		select {
		case <-r.ctx.Done():
			return true
		case ids := <-n.touches:
			n.cfg.Handler.Touched(ids)
			if n.leads() {
				// A leader that hands over has been in touch until now.
				n.contact.Store(n.now())
			}
		case <-n.forward.wake: // one group at a time, or heartbeats would wait for all
			letOthersAdd()
			if g := n.forward.take(nil); g.Count > 0 && !r.submit(g) {
				return true
			}
		}
	}
}

// serveRemote keeps a stream to the leader. It reports whether that worked
// for a while.
func (n *Node) serveRemote(
	id state.ServerID, leader raft.ServerID, events <-chan raft.Observation,
) bool {
	ctx, cancel := context.WithTimeout(n.ctx, n.cfg.ElectionTimeout)
	conn, err := n.mux.Dial(ctx, mux.KindStream, addressOf(id), uint64(id))
	cancel()
	if err != nil {
		n.logger.Debug("cannot reach the leader", "leader", id, "error", err)
		return false
	}
	ctx, cancel = context.WithCancel(n.ctx)
	defer cancel()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	greeted := make(chan struct{})
	n.tasks.Go(func() {
		defer cancel()
		n.hearLeader(conn, greeted)
	})
	if !writeFrame(conn, endFrame(appendU64(beginFrame(nil, frameHello), n.forward.life().Incarnation))) {
		return false
	}
	select {
	case <-greeted:
	case <-ctx.Done():
		_ = conn.Close()
		return false // it does not lead, or not yet
	}
	n.forward.rewind()
	n.sendStream(ctx, conn, leader, events)
	_ = conn.Close()
	return true
}

// sendStream writes commands and heartbeats until the stream or the
// leadership ends.
func (n *Node) sendStream(
	ctx context.Context, conn net.Conn, leader raft.ServerID, events <-chan raft.Observation,
) {
	// raft drops what an observer has no room for.
	look := time.NewTicker(n.cfg.ElectionTimeout)
	defer look.Stop()
	var buf []byte
	said := reports{}
	defer func() { n.Touch(said.unconfirmed(n.contact.Load())) }()
	for {
		select {
		case <-ctx.Done():
			return
		case <-events:
			if !n.stillLeads(leader) {
				return
			}
		case <-look.C:
			if !n.stillLeads(leader) {
				return
			}
		case ids := <-n.touches:
			stamp := n.now()
			said.add(ids, stamp, n.contact.Load())
			if !writeFrame(conn, appendTouch(buf[:0], uint64(stamp), ids)) {
				return
			}
		case <-n.forward.wake: // one group at a time, or heartbeats would wait for all
			letOthersAdd()
			g := n.forward.take(appendGroupHeader(buf[:0]))
			buf = g.Commands
			if g.Count > 0 && !writeFrame(conn, finishGroup(buf, &g)) {
				return
			}
		}
	}
}

// letOthersAdd lets everybody run who can, before a group is taken. Go runs who was woken last
// first: of twenty clients whose requests have come together, the first one's command would be sent
// alone, and so would each that follows (ADR 0014). Nobody is waited for.
func letOthersAdd() { runtime.Gosched() }

func writeFrame(conn net.Conn, frame []byte) bool {
	if conn.SetWriteDeadline(time.Now().Add(streamWriteTimeout)) != nil {
		return false
	}
	_, err := conn.Write(frame)
	return err == nil
}

// hearLeader reads what the leader says: that it leads, and how recently it
// has heard us.
func (n *Node) hearLeader(conn net.Conn, greeted chan struct{}) {
	in := bufio.NewReader(conn)
	for first := true; ; first = false {
		kind, body, err := readFrame(in)
		if err != nil || kind != frameContact || len(body) != 8 {
			return
		}
		stamp, _, _ := parseTouch(body)
		if first {
			n.contact.Store(n.now())
			close(greeted)
		} else if int64(stamp) > n.contact.Load() {
			n.contact.Store(int64(stamp))
		}
	}
}

// acceptStreams serves the other servers' streams.
func (n *Node) acceptStreams() {
	for {
		conn, err := n.mux.Accept(mux.KindStream)
		if err != nil {
			return // the mux was closed
		}
		n.tasks.Go(func() {
			defer conn.Close()
			n.serveStream(conn)
		})
	}
}

// serveStream takes commands from another server while this one leads.
func (n *Node) serveStream(conn *mux.Conn) {
	r := n.reign()
	if r == nil || !n.leads() {
		return
	}
	defer context.AfterFunc(r.ctx, func() { _ = conn.Close() })()
	from := state.ServerID(conn.ServerID())
	in := bufio.NewReaderSize(conn, 64<<10)
	if kind, _, err := readFrame(in); err != nil || kind != frameHello {
		return
	}
	if !writeFrame(conn, endFrame(appendU64(beginFrame(nil, frameContact), 0))) {
		return
	}
	n.streams.enter(from, conn)
	defer n.streams.leave(from, conn)
	for {
		kind, body, err := readFrame(in)
		if err != nil {
			return
		}
		n.streams.hear(from)
		switch kind {
		case frameGroup:
			g, err := parseGroup(body, from)
			if err != nil {
				n.logger.Error("refusing commands", "server", from, "error", err)
				return
			}
			if !r.submit(g) {
				return
			}
		case frameTouch:
			stamp, ids, err := parseTouch(body)
			if err != nil || !n.leads() {
				return
			}
			n.cfg.Handler.Touched(ids)
			if !writeFrame(conn, endFrame(appendU64(beginFrame(nil, frameContact), stamp))) {
				return
			}
		default:
			n.logger.Error("unknown frame on a stream", "server", from, "type", kind)
			return
		}
	}
}
