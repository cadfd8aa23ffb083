package check

import "github.com/zk-lite/zk-lite/znode"

// Ephemerals checks sessions and their znodes: no session expires before it may; an ephemeral is
// deleted by a client, or by the transaction that ends its session, and by nothing else; no read
// shows one after the end of its session; the final tree has no ephemeral of an ended session, and
// every acknowledged one of a live session. Without Changes the rules about transactions are left
// out.
//
// Guarantees: Ephemerals, Sessions.
func Ephemerals(h *History) []Violation {
	var f findings
	sessions := map[znode.SessionID]*Session{}
	for i := range h.Sessions {
		s := &h.Sessions[i]
		sessions[s.ID] = s
		if s.Ended == Expired && s.NotBefore > 0 && s.EndedAt < s.NotBefore {
			f.add("Sessions", "session %v of client %d (timeout %v) expired at %v, %v too early", s.ID,
				s.Client, s.Timeout, s.EndedAt, s.NotBefore-s.EndedAt)
		}
	}
	deletes := deletedBy(h)
	f.transactions(h, sessions, deletes)
	for i := range h.Ops {
		o := &h.Ops[i]
		if (o.Kind != Get && o.Kind != Exists) || o.Outcome != OK || o.Stat.EphemeralOwner == 0 {
			continue
		}
		s := sessions[o.Stat.EphemeralOwner]
		if s != nil && s.Ended != Alive && s.EndZxid != 0 && o.Zxid >= s.EndZxid {
			f.add("Ephemerals", "%s shows a znode of session %v, which ended at %v", o.say(), s.ID, s.EndZxid)
		}
	}
	if h.Final != nil {
		f.final(h, sessions, deletes)
	}
	return f.list
}

// transactions checks how ephemerals were deleted.
func (f *findings) transactions(h *History, sessions map[znode.SessionID]*Session, deletes deletions) {
	type own struct {
		owner znode.SessionID
		since znode.Zxid
	}
	live := map[string]own{}
	gone := map[znode.Zxid]int{}
	ended := map[znode.Zxid]*Session{}
	for _, s := range sessions {
		if s.EndZxid != 0 {
			ended[s.EndZxid] = s
		}
	}
	for _, c := range h.Changes {
		switch c.Type {
		case znode.EventCreated:
			if c.Owner == 0 {
				continue
			}
			if s := sessions[c.Owner]; s != nil && s.EndZxid != 0 && c.Zxid >= s.EndZxid {
				f.add("Ephemerals", "%s was created at %v for session %v, which had ended at %v",
					c.Path, c.Zxid, c.Owner, s.EndZxid)
			}
			live[c.Path] = own{c.Owner, c.Zxid}
		case znode.EventDeleted:
			x, ok := live[c.Path]
			if !ok {
				continue
			}
			delete(live, c.Path)
			gone[c.Zxid]++
			s := ended[c.Zxid]
			if (s == nil || s.ID != x.owner) && !deletes.explain(c.Path, c.Zxid) {
				f.add("Ephemerals", "%s of session %v was removed at %v, by no client and not with its session",
					c.Path, x.owner, c.Zxid)
			}
		}
	}
	for path, x := range live {
		if s := sessions[x.owner]; s != nil && s.EndZxid != 0 {
			f.add("Ephemerals", "%s of session %v outlived it: it ended at %v", path, x.owner, s.EndZxid)
		}
	}
}

// deletions are the deletes that clients have requested.
type deletions map[string][]*Op

func deletedBy(h *History) deletions {
	d := deletions{}
	for i := range h.Ops {
		o := &h.Ops[i]
		if o.Outcome == Failed {
			continue
		}
		if o.Kind == Delete {
			d[o.Path] = append(d[o.Path], o)
		}
		for k := range o.Ops {
			if o.Ops[k].Kind == Delete {
				d[o.Ops[k].Path] = append(d[o.Ops[k].Path], o)
			}
		}
	}
	return d
}

// explain reports whether a client's delete may have been the transaction z.
func (d deletions) explain(path string, z znode.Zxid) bool {
	for _, o := range d[path] {
		if o.Outcome == Unknown || o.Zxid == 0 || o.Zxid == z {
			return true
		}
	}
	return false
}

// final looks for ephemerals of ended sessions, and for missing ephemerals of live sessions.
func (f *findings) final(h *History, sessions map[znode.SessionID]*Session, deletes deletions) {
	there := map[string]znode.SessionID{}
	for _, z := range h.Final {
		there[z.Path] = z.Owner
		if s := sessions[z.Owner]; z.Owner != 0 && s != nil && s.Ended != Alive {
			f.add("Ephemerals", "%s is a ghost: its session %v ended at %v", z.Path, z.Owner, s.EndedAt)
		}
	}
	for i := range h.Ops {
		o := &h.Ops[i]
		if o.Kind != Create || o.Outcome != OK || !o.Mode.Ephemeral() {
			continue
		}
		path := o.Created
		if path == "" {
			path = o.Path
		}
		s := sessions[o.Session]
		if s == nil || s.Ended != Alive || len(deletes[path]) > 0 {
			continue
		}
		if there[path] != s.ID {
			f.add("Ephemerals", "%s has gone although session %v lives", o.say(), s.ID)
		}
	}
}
