package state

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/zk-lite/zk-lite/session"
	"github.com/zk-lite/zk-lite/znode"
)

// ServerID names a server of the ensemble: the N of server.N, 0 to MaxServerID.
type ServerID uint64

// MaxServerID is the largest ServerID. It is in the top byte of a session id,
// as the mark 255 is in that of the owner of a znode with a TTL.
const MaxServerID = 254

// NoServer is no server's id: "unknown" or "any". In JSON it is -1.
const NoServer ServerID = 255

// Number returns the id, and -1 for NoServer.
func (id ServerID) Number() int64 {
	if id == NoServer {
		return -1
	}
	return int64(id)
}

// MarshalJSON implements json.Marshaler.
func (id ServerID) MarshalJSON() ([]byte, error) { return strconv.AppendInt(nil, id.Number(), 10), nil }

// UnmarshalJSON implements json.Unmarshaler. It refuses numbers out of range.
func (id *ServerID) UnmarshalJSON(text []byte) error {
	n, err := strconv.ParseInt(string(text), 10, 64)
	switch {
	case err != nil || n < -1 || n > MaxServerID:
		return fmt.Errorf("%s is not a server id from 0 to %d", text, MaxServerID)
	case n == -1:
		*id = NoServer
	default:
		*id = ServerID(n)
	}
	return nil
}

// Member is what the ensemble publishes about a server.
type Member struct {
	ID     ServerID
	Peer   string // host:port:port, as in zoo.cfg
	Client string // host:port of the ZooKeeper port; may be empty
	HTTP   string // host:port of the HTTP API; may be empty
	// Addr is the host:port by which the others reach the peer port of a server
	// that was added to a running ensemble, and so is in no configuration file;
	// empty for the others. It and Vote do not change when the server publishes
	// itself.
	Addr string
	Vote bool // becomes a voter once it has caught up
	// The release that it runs, and the levels that it supports; MaxLevel 0: not known.
	Version, Commit    string
	MinLevel, MaxLevel Level
	// Key is the SHA-256 of its public key for the others (package peerkeys); zero: not known yet.
	Key [32]byte
	// Token is the SHA-256 of the secret with which a server may join under this id, once, until TokenUntil,
	// milliseconds since the epoch; zero: none.
	Token      [32]byte
	TokenUntil int64

	Voter bool // filled in from the configuration
}

// Address is the host:port of the server's peer port, as far as it is known here; empty: it is not.
func (m Member) Address() string { return cmp.Or(m.Addr, addrOf(m.Peer)) }

// clone copies the strings, which are part of a log entry.
func (m Member) clone() Member {
	m.Peer, m.Client, m.HTTP = strings.Clone(m.Peer), strings.Clone(m.Client), strings.Clone(m.HTTP)
	m.Addr = strings.Clone(m.Addr)
	m.Version, m.Commit = strings.Clone(m.Version), strings.Clone(m.Commit)
	return m
}

// shown is the part of a member that /zookeeper/config shows.
func (m Member) shown() Member {
	m.ID, m.Voter = 0, false
	m.Version, m.Commit, m.MinLevel, m.MaxLevel = "", "", 0, 0
	return m
}

// append encodes a member as published, without its id and Voter.
func (m *Member) append(b []byte) []byte {
	b = appendString(appendString(appendString(b, m.Peer), m.Client), m.HTTP)
	b = append(appendString(b, m.Addr), flag(m.Vote))
	b = appendString(appendString(b, m.Version), m.Commit)
	b = appendUint(appendUint(b, uint64(m.MinLevel)), uint64(m.MaxLevel))
	b = append(append(b, m.Key[:]...), m.Token[:]...)
	return appendInt(b, m.TokenUntil)
}

// memberBytes is the least size of a member in a snapshot.
const memberBytes = 1 + 4 + 1 + 2 + 2 + 32 + 32 + 1 + 1

func readMember(id ServerID, r *reader) Member {
	m := Member{
		ID: id, Peer: r.string(), Client: r.string(), HTTP: r.string(),
		Addr: r.string(), Vote: r.byte() == 1, Version: r.string(), Commit: r.string(),
		MinLevel: Level(r.uint()), MaxLevel: Level(r.uint()),
	}
	copy(m.Key[:], r.take(len(m.Key)))
	copy(m.Token[:], r.take(len(m.Token)))
	m.TokenUntil = r.int()
	return m
}

// merged combines c, which a server published, with the fields that were set when it was added, and with the
// addresses, the release, the key and the token that c leaves out. A new key consumes the token.
func (m *Machine) merged(c Member) Member {
	have := m.members[c.ID]
	adding := c.Addr != "" // a server does not publish its own
	if !adding {
		c.Addr = have.Addr
	}
	c.Vote = c.Vote || have.Vote
	if adding {
		c.Client, c.HTTP = cmp.Or(c.Client, have.Client), cmp.Or(c.HTTP, have.HTTP)
	}
	if c.MaxLevel == 0 {
		c.Version, c.Commit, c.MinLevel, c.MaxLevel = have.Version, have.Commit, have.MinLevel, have.MaxLevel
	}
	if c.Peer == "" && c.Client == "" && c.HTTP == "" {
		c.Peer, c.Client, c.HTTP = have.Peer, have.Client, have.HTTP
	}
	none := [32]byte{}
	if c.Token == none {
		c.Token, c.TokenUntil = have.Token, have.TokenUntil
	}
	switch c.Key {
	case none:
		c.Key = have.Key
	case have.Key:
	default:
		c.Token, c.TokenUntil = none, 0
	}
	return c
}

// setMember stores what a server has published.
func (m *Machine) setMember(x Member) {
	x.Voter = m.voters[x.ID]
	m.members[x.ID] = x.clone()
	if x.Addr != "" && m.reconfig == nil { // it is added again
		delete(m.leaving, x.ID)
	}
	m.membersChanged++
	m.firstLevel()
}

// MembersChanged counts the changes of what Members returns.
func (m *Machine) MembersChanged() uint64 { return m.membersChanged }

// Configure sets Raft's configuration as of the entry with this index, and
// drops servers that left.
func (m *Machine) Configure(index, term uint64, voter map[ServerID]bool, obs Observer) {
	changed := false
	maps.DeleteFunc(m.leaving, func(id ServerID, _ bool) bool { _, in := voter[id]; return !in })
	for id, member := range m.members {
		v, in := voter[id]
		switch {
		case !in:
			delete(m.members, id)
			changed = true
		case v != member.Voter:
			changed = true
		}
	}
	m.voters = voter
	m.index = index
	m.membersChanged++
	if !changed || m.reconfig != nil || m.configLines() == m.shownLines() && m.level >= level2 {
		return
	}
	m.command = Command{}
	m.begin(term, m.time) // a configuration entry has no time
	m.renderConfig()
	for i := range m.txn.Events {
		obs.Event(&m.txn.Events[i])
	}
}

// renderConfig writes /zookeeper/config in ZooKeeper's format, which Curator's
// EnsembleTracker reads.
func (m *Machine) renderConfig() {
	m.noteVoters()
	text := []byte{}
	if lines := m.configLines(); lines != "" {
		text = fmt.Appendf(nil, "%sversion=%x", lines, uint64(m.txn.Zxid))
	}
	m.tree.SetConfig(&m.txn, text)
}

// noteVoters notes which of the servers that /zookeeper/config shows vote.
func (m *Machine) noteVoters() {
	for id, member := range m.members {
		if member.Peer != "" { // a standalone server has none
			member.Voter = m.voters[id]
			m.members[id] = member
		}
	}
}

// configLines is what /zookeeper/config has before its version.
func (m *Machine) configLines() string {
	var b strings.Builder
	for _, id := range slices.Sorted(maps.Keys(m.members)) {
		member := m.members[id]
		if member.Peer == "" || m.leaving[id] {
			continue
		}
		role := "observer"
		if m.voters[id] {
			role = "participant"
		}
		fmt.Fprintf(&b, "server.%d=%s:%s", id, member.Peer, role)
		if member.Client != "" {
			fmt.Fprintf(&b, ";%s", member.Client)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// Configuration returns the servers of Raft's configuration, and whether they vote; do not modify.
func (m *Machine) Configuration() map[ServerID]bool { return m.voters }

// Voters returns the ids of the servers that vote.
func (m *Machine) Voters() []ServerID {
	var ids []ServerID
	for id, v := range m.voters {
		if v {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

const (
	// TermJump is added to the term when an ensemble goes on where another has ended. A lost server of that may have
	// been in later terms than is known here, by one for each election since, and its clients may have seen zxids with
	// such a term in their high half. An ensemble that elects once a minute takes 45 days for this many terms.
	TermJump = 1 << 16
	// TermLimit keeps zxids, signed 64-bit numbers with the term in their high half, from becoming negative.
	TermLimit = 1 << 31
)

// Recover makes m the state of an ensemble that continues with one server alone, after the entry with this index and
// in this term: it drops the other servers, and a backup that was being uploaded. The zxid's high half becomes the
// term, so that it is above all that a client may have seen from a lost server. Sessions stay.
func (m *Machine) Recover(self ServerID, index, term uint64) {
	m.reconfig, m.leaving = nil, nil
	m.Configure(index, term, map[ServerID]bool{self: true}, Unobserved{})
	if m.mirror == nil { // otherwise the source has all transactions, and the lost ones come again
		m.zxid = max(m.zxid, znode.Zxid(term<<32))
	}
	m.upload = nil
	m.Chain(index, term, nil)
}

// NewFrom returns the state with which a new ensemble goes on where another, one of ZooKeeper's, has ended: after
// entry 1 of this term. It takes the tree and the sessions, and the zxid of the last transaction. Equal ones make
// equal states. No server has a client of a session yet; and /zookeeper/config, which named the other servers, is
// empty.
func NewFrom(tree *znode.Tree, sessions *session.Table, zxid znode.Zxid, term uint64) (*Machine, error) {
	m := New()
	m.tree, m.sessions, m.zxid = tree, sessions, zxid
	sessions.Disown(uint64(NoServer))
	s := tree.Snapshot()
	defer s.Release()
	err := s.Walk(func(r *znode.Record) error {
		m.time = max(m.time, r.Stat.Ctime, r.Stat.Mtime)
		return nil
	})
	if err != nil {
		return nil, err
	}
	m.begin(term, m.time)
	m.renderConfig()
	m.index = 1
	m.Chain(m.index, term, nil)
	return m, nil
}
