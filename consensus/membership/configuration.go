package membership

import (
	"sync/atomic"

	"github.com/hashicorp/raft"

	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/consensus/transport"
)

// configuration is raft's latest configuration, committed or not.
type configuration struct {
	cfg  *Config
	raft atomic.Pointer[raft.Raft] // nil: not started

	published atomic.Bool   // by this server, since its start
	moved     chan struct{} // has one when ClientAddress may have changed
}

// Leads reports whether this server leads at this very moment, as far as it can see. raft calls a
// server leader as long as its main loop waits for the disk, however long the
// others have had another one.
func (c *configuration) Leads() bool {
	r := c.raft.Load()
	return r != nil && r.State() == raft.Leader && c.cfg.Disk.Waiting() < c.cfg.ElectionTimeout
}

// AddressOf returns a server's address in raft's configuration: its id. Where that
// is in the network every server reads in its own configuration, so that an
// address may change, and may differ from one server's view to another's.
func AddressOf(id state.ServerID) string { return string(transport.RaftID(uint64(id))) }

// ServerOf is the server that has an address in raft's configuration; NoServer: none.
func ServerOf(addr string) state.ServerID {
	id := transport.ParseRaftID(raft.ServerID(addr))
	if id > state.MaxServerID {
		return state.NoServer
	}
	return state.ServerID(id)
}

// ConfigurationOf returns raft's configuration of these servers.
func ConfigurationOf(servers []Server) (c raft.Configuration) {
	for _, x := range servers {
		suffrage := raft.Nonvoter
		if x.Voter {
			suffrage = raft.Voter
		}
		c.Servers = append(c.Servers, raft.Server{
			Suffrage: suffrage, ID: transport.RaftID(uint64(x.ID)), Address: raft.ServerAddress(AddressOf(x.ID)),
		})
	}
	return c
}

// VotersOf returns the servers of a configuration of raft's, and whether they vote.
func VotersOf(servers []raft.Server) map[state.ServerID]bool {
	voters := map[state.ServerID]bool{}
	for _, s := range servers {
		voters[state.ServerID(transport.ParseRaftID(s.ID))] = s.Suffrage == raft.Voter
	}
	return voters
}

// configured is raft's latest configuration, committed or not: the servers, and
// whether they vote.
func (c *configuration) configured() map[state.ServerID]bool {
	r := c.raft.Load()
	if r == nil {
		return nil
	}
	return VotersOf(r.GetConfiguration().Configuration().Servers)
}

// Voters returns the servers that vote in raft's latest configuration.
func (c *configuration) Voters() map[state.ServerID]bool {
	voters := c.configured()
	for id, v := range voters {
		if !v {
			delete(voters, id)
		}
	}
	return voters
}

func (c *configuration) suffrage(id state.ServerID) Suffrage {
	switch votes, in := c.configured()[id]; {
	case !in:
		return NotMember
	case votes:
		return Voter
	default:
		return Nonvoter
	}
}

// Members returns the servers of the ensemble, with what they have published.
func (c *configuration) Members() map[state.ServerID]state.Member {
	all := map[state.ServerID]state.Member{}
	published := c.cfg.Applied.Members()
	for id, votes := range c.configured() {
		m := published[id]
		m.ID, m.Voter = id, votes
		all[id] = m
	}
	return all
}

// ClientAddress returns the host:port at which the ensemble says that ZooKeeper clients find this server, and a channel
// that receives when that may have changed, for one receiver. The address is empty if the ensemble names none, and
// before this server has published itself: what the log says of it then may be of a former start.
func (c *configuration) ClientAddress() (addr string, moved <-chan struct{}) {
	if c.published.Load() {
		addr = c.cfg.Applied.Members()[c.cfg.Self].Client
	}
	return addr, c.moved
}

// NotePublished notes that what this server has published of itself since its start has been applied here.
func (c *configuration) NotePublished() {
	c.published.Store(true)
	c.NoteMembers()
}

// NoteMembers notes that Config.Applied has other members.
func (c *configuration) NoteMembers() {
	select {
	case c.moved <- struct{}{}:
	default:
	}
}

// Suffrage is what a server is in raft's configuration.
type Suffrage string

// The suffrages.
const (
	NotMember Suffrage = ""
	Voter     Suffrage = "voter"
	Nonvoter  Suffrage = "nonvoter"
)

// Applied is what one server has applied of the log, for others than the goroutine that applies. The zero value is
// that of a server that has applied nothing since its start.
type Applied struct {
	Index         atomic.Uint64 // of the last entry
	level         atomic.Uint32
	members       atomic.Pointer[map[state.ServerID]state.Member]
	configuration atomic.Pointer[map[state.ServerID]bool]
}

// Level returns the ensemble's feature level; 0: it has none yet.
func (a *Applied) Level() state.Level { return state.Level(a.level.Load()) }

// SetLevel notes the ensemble's feature level, also that of before the start.
func (a *Applied) SetLevel(level state.Level) { a.level.Store(uint32(level)) }

// Members returns what the servers have published, and Configuration the servers of the newest configuration and
// whether they vote. Neither may be changed.
func (a *Applied) Members() map[state.ServerID]state.Member { return value(&a.members) }

// Configuration is as Members says.
func (a *Applied) Configuration() map[state.ServerID]bool { return value(&a.configuration) }

// SetMembers notes both, which must not change afterwards.
func (a *Applied) SetMembers(members map[state.ServerID]state.Member, configuration map[state.ServerID]bool) {
	a.members.Store(&members)
	a.configuration.Store(&configuration)
}

// value is what p points to, or the zero value.
func value[T any](p *atomic.Pointer[T]) (v T) {
	if x := p.Load(); x != nil {
		v = *x
	}
	return v
}
