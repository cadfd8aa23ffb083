package state

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// merged combines c, which a server published, with what was set when it was added,
// and with the addresses, the key and the token that c leaves out. A new key has used the token up.
func (m *Machine) merged(c Member) Member {
	have := m.members[c.ID]
	adding := c.Addr != "" // a server does not say it of itself
	if !adding {
		c.Addr = have.Addr
	}
	c.Vote = c.Vote || have.Vote
	if adding {
		c.Client, c.HTTP = cmp.Or(c.Client, have.Client), cmp.Or(c.HTTP, have.HTTP)
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

// MembersChanged counts the changes of what Members returns.
func (m *Machine) MembersChanged() uint64 { return m.membersChanged }

// Configure sets Raft's configuration since the entry
// with this index: servers that left are forgotten.
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
	m.begin(term, m.time) // a configuration entry carries no time
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
		ids = append(ids, id)
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
