package state

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/zk-lite/zk-lite/znode"
)

// A reconfiguration is ZooKeeper's reconfig: any number of servers join, leave and change at once. Raft changes one
// server at a time, so it is a plan that stays in the state until the leader, whichever server that is meanwhile, has
// carried it out (package membership). Until then /zookeeper/config keeps its text, and the client its place in the
// queue: the first Result has a number, and Observer.Relayed brings the outcome (docs/adr/0038).

// ReconfigStep is the action of an OpReconfig.
type ReconfigStep uint8

// The steps.
const (
	// ReconfigStart begins a reconfiguration, for a client.
	//
	// Codes, in this order: ErrUnimplemented if the server is standalone; ErrReconfigInProgress; ErrBadVersion;
	// ErrBadArguments if fewer than MinVoters would vote, or two servers have the same address; ErrNoAuth.
	ReconfigStart ReconfigStep = iota
	// ReconfigFinish ends it: those vote that shall, and /zookeeper/config changes. Servers that leave are still in
	// raft's configuration, without a vote, so that their clients get the answer; see Leaving.
	ReconfigFinish
	// ReconfigAbort ends it as far as it has come. Code is the client's result.
	ReconfigAbort
)

const lastReconfigStep = ReconfigAbort

// Reconfig is the parameters of an OpReconfig.
type Reconfig struct {
	Step ReconfigStep

	// Of ReconfigStart.
	Version   znode.Zxid      // that /zookeeper/config must have; -1: any
	Complete  bool            // Servers are all there will be; otherwise those that join or change
	Servers   []PlannedServer // of two with the same id the last one counts
	Leaving   []ServerID      // unless Complete; those that are no members do not matter
	MinVoters int             // how many servers must vote at least

	// Of the others, which count in the term of Command.Term alone.
	Number uint64 // of the Reconfiguration
	Code   znode.Error
}

// PlannedServer is a server of a reconfiguration.
type PlannedServer struct {
	ID     ServerID
	Voter  bool
	Peer   string // host:port:port, as in zoo.cfg; empty: as it is
	Client string // host:port; empty: as it is
}

// Addr is the host:port of the server's peer port; empty: as it is.
func (x PlannedServer) Addr() string { return addrOf(x.Peer) }

// addrOf is the host:port in a host:port:port.
func addrOf(peer string) string { return peer[:max(strings.LastIndexByte(peer, ':'), 0)] }

// Reconfiguration is one that has begun, and not ended. It is immutable.
type Reconfiguration struct {
	Number  uint64
	Former  map[ServerID]bool // raft's configuration when it began: the servers, and whether they voted
	Servers []PlannedServer   // all that there will be, by id
}

// Reconfiguring returns the reconfiguration that has begun and not ended; nil: there is none.
func (m *Machine) Reconfiguring() *Reconfiguration { return m.reconfig }

// Leaving returns the servers that a reconfiguration has taken out of /zookeeper/config, and that are still in raft's
// configuration; do not modify. The leader removes them.
func (m *Machine) Leaving() map[ServerID]bool { return m.leaving }

// reconfigRelay marks numbers of reconfigurations among those of relays.
const reconfigRelay = 1 << 63

// reconfigure carries out an OpReconfig.
func (m *Machine) reconfigure(c *Command, term uint64, timeMillis int64, obs Observer) {
	r, x := &m.result, c.Reconfig
	switch {
	case x.Step == ReconfigStart:
		next, code := m.plan(c)
		if r.Code = code; code != znode.OK {
			return
		}
		// Of one entry at most one begins: it ends in a later one.
		m.reconfig = &Reconfiguration{Number: m.index + 1, Former: m.voters, Servers: next}
		m.membersChanged++
		r.Relay = reconfigRelay | m.reconfig.Number
		return
	case c.Term != term:
		r.Code = znode.ErrSessionMoved // of a leader that has been replaced
		return
	case m.reconfig == nil || m.reconfig.Number != x.Number:
		r.Code = znode.ErrNoNode
		return
	}
	former := m.reconfig
	m.reconfig = nil
	m.membersChanged++
	if x.Step == ReconfigFinish {
		m.adopt(former)
	}
	m.noteVoters()
	if x.Step == ReconfigFinish || m.configLines() != m.shownLines() {
		m.begin(term, timeMillis)
		m.renderConfig()
		m.reportEvents(obs)
	}
	out := Result{Op: OpReconfig, Code: x.Code, Zxid: m.zxid}
	out.Stat, _ = m.tree.Exists(znode.ConfigPath, super)
	obs.Relayed(reconfigRelay|former.Number, &out)
	r.Zxid = m.zxid
}

// plan returns the servers that there will be, in the order and with the codes of ZooKeeper's PrepRequestProcessor.
func (m *Machine) plan(c *Command) ([]PlannedServer, znode.Error) {
	x, version := c.Reconfig, m.configVersion()
	switch {
	case version == 0:
		return nil, znode.ErrUnimplemented
	case m.reconfig != nil:
		return nil, znode.ErrReconfigInProgress
	case x.Version != -1 && x.Version != version:
		return nil, znode.ErrBadVersion
	}
	next := map[ServerID]PlannedServer{}
	if !x.Complete {
		for id, votes := range m.voters {
			if !m.leaving[id] {
				next[id] = PlannedServer{ID: id, Voter: votes}
			}
		}
		for _, id := range x.Leaving {
			delete(next, id)
		}
	}
	for _, s := range x.Servers {
		s.Peer, s.Client = strings.Clone(s.Peer), strings.Clone(s.Client)
		next[s.ID] = s
	}
	voters, at := 0, map[string]bool{}
	for id, s := range next {
		if s.Voter {
			voters++
		}
		addr := cmp.Or(s.Addr(), m.members[id].Address())
		if at[addr] && addr != "" || id > MaxServerID {
			return nil, znode.ErrBadArguments
		}
		at[addr] = true
	}
	if voters < max(x.MinVoters, 1) {
		return nil, znode.ErrBadArguments
	}
	all := slices.SortedFunc(maps.Values(next), func(a, b PlannedServer) int { return cmp.Compare(a.ID, b.ID) })
	return all, m.tree.Allows(&znode.Txn{Identities: rightsOf(c)}, znode.ConfigPath, znode.PermWrite)
}

// adopt gives the members what a reconfiguration says of them, and has the others leave.
func (m *Machine) adopt(x *Reconfiguration) {
	leaving := map[ServerID]bool{}
	for id := range m.voters {
		if _, was := x.Former[id]; was {
			leaving[id] = true
		}
	}
	for _, s := range x.Servers {
		delete(leaving, s.ID)
	}
	m.leaving = leaving
	for id := range leaving {
		if member, in := m.members[id]; in {
			member.Vote = false // it must not get its vote back
			m.members[id] = member
		}
	}
	for _, s := range x.Servers {
		member, in := m.members[s.ID]
		if !in || s.Peer == "" {
			continue
		}
		member.Peer, member.Client, member.Vote = s.Peer, cmp.Or(s.Client, member.Client), s.Voter
		m.members[s.ID] = member
	}
}

// configVersion is the version in the text of /zookeeper/config; 0: there is no text, as on a standalone server.
func (m *Machine) configVersion() znode.Zxid {
	text, _, _ := m.tree.Get(znode.ConfigPath, super)
	_, version, _ := strings.Cut(string(text), "version=")
	n, err := strconv.ParseInt(version, 16, 64)
	if err != nil {
		return 0
	}
	return znode.Zxid(n)
}

// shownLines is the text of /zookeeper/config without its version.
func (m *Machine) shownLines() string {
	text, _, _ := m.tree.Get(znode.ConfigPath, super)
	lines, _, _ := strings.Cut(string(text), "version=")
	return lines
}

// check returns an error if x cannot be decoded.
func (x *Reconfig) check() error {
	if x == nil || x.Step > lastReconfigStep {
		return fmt.Errorf("unknown step of a reconfiguration: %+v", x)
	}
	return nil
}

func (x *Reconfig) append(b []byte, term uint64) []byte {
	b = appendUint(append(b, byte(x.Step)), term)
	if x.Step != ReconfigStart {
		return appendInt(appendUint(b, x.Number), int64(x.Code))
	}
	b = append(appendInt(b, int64(x.Version)), flag(x.Complete), byte(x.MinVoters))
	b = appendPlanned(b, x.Servers)
	b = appendUint(b, uint64(len(x.Leaving)))
	for _, id := range x.Leaving {
		b = appendUint(b, uint64(id))
	}
	return b
}

func readReconfig(r *reader) (x *Reconfig, term uint64) {
	x = &Reconfig{Step: ReconfigStep(r.byte())}
	term = r.uint()
	if err := x.check(); err != nil {
		r.fail(err)
	}
	if x.Step != ReconfigStart {
		x.Number, x.Code = r.uint(), znode.Error(r.int())
		return x, term
	}
	x.Version, x.Complete, x.MinVoters = znode.Zxid(r.int()), r.byte() == 1, int(r.byte())
	x.Servers = readPlanned(r)
	for n := r.count(1); n > 0; n-- {
		x.Leaving = append(x.Leaving, ServerID(r.uint()))
	}
	return x, term
}

// size is an upper bound of the bytes of x's encoding.
func (x *Reconfig) size() (n int) {
	if x == nil {
		return 0
	}
	const server, id = 32, 10
	for _, s := range x.Servers {
		n += server + len(s.Peer) + len(s.Client)
	}
	return n + id*len(x.Leaving)
}

func appendPlanned(b []byte, servers []PlannedServer) []byte {
	b = appendUint(b, uint64(len(servers)))
	for _, s := range servers {
		b = appendString(appendString(append(appendUint(b, uint64(s.ID)), flag(s.Voter)), s.Peer), s.Client)
	}
	return b
}

func readPlanned(r *reader) (servers []PlannedServer) {
	for n := r.count(4); n > 0; n-- {
		servers = append(servers, PlannedServer{
			ID: ServerID(r.uint()), Voter: r.byte() == 1, Peer: r.string(), Client: r.string(),
		})
	}
	return servers
}

// append encodes x; nothing for none.
func (x *Reconfiguration) append(b []byte) []byte {
	if x == nil {
		return b
	}
	b = appendServers(appendUint(append(b, reconfigSection), x.Number), x.Former)
	return appendPlanned(b, x.Servers)
}

// appendLeaving encodes servers that leave; nothing for none.
func appendLeaving(b []byte, leaving map[ServerID]bool) []byte {
	if len(leaving) == 0 {
		return b
	}
	return appendServers(append(b, leavingSection), leaving)
}

func appendServers(b []byte, servers map[ServerID]bool) []byte {
	b = appendUint(b, uint64(len(servers)))
	for _, id := range slices.Sorted(maps.Keys(servers)) {
		b = append(appendUint(b, uint64(id)), flag(servers[id]))
	}
	return b
}

func readServers(r *reader) map[ServerID]bool {
	servers := map[ServerID]bool{}
	for n := r.count(2); n > 0; n-- {
		id := ServerID(r.uint())
		servers[id] = r.byte() == 1
	}
	return servers
}

func readReconfiguration(r *reader) *Reconfiguration {
	x := &Reconfiguration{Number: r.uint(), Former: readServers(r)}
	x.Servers = readPlanned(r)
	for i := range x.Servers { // the block's bytes will be overwritten
		s := &x.Servers[i]
		s.Peer, s.Client = strings.Clone(s.Peer), strings.Clone(s.Client)
	}
	return x
}
