package state

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

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
	m.membersChanged++
	m.firstLevel()
}

// MembersChanged counts the changes of what Members returns.
func (m *Machine) MembersChanged() uint64 { return m.membersChanged }

// Configure sets Raft's configuration as of the entry with this index, and
// drops servers that left.
func (m *Machine) Configure(index, term uint64, voter map[ServerID]bool, obs Observer) {
	changed := false
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
	if !changed {
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
	ids := make([]ServerID, 0, len(m.members))
	for id := range m.members {
		if m.members[id].Peer != "" { // a standalone server has none
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	var b strings.Builder
	for _, id := range ids {
		member := m.members[id]
		member.Voter = m.voters[id]
		m.members[id] = member
		role := "observer"
		if member.Voter {
			role = "participant"
		}
		fmt.Fprintf(&b, "server.%d=%s:%s", id, member.Peer, role)
		if member.Client != "" {
			fmt.Fprintf(&b, ";%s", member.Client)
		}
		b.WriteByte('\n')
	}
	fmt.Fprintf(&b, "version=%x", uint64(m.txn.Zxid))
	text := []byte(b.String())
	if len(ids) == 0 {
		text = []byte{}
	}
	m.tree.SetConfig(&m.txn, text)
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
