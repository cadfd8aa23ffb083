package state

import (
	"github.com/cespare/xxhash/v2"
)

// Digest is a number that is the same on servers in the same state: the same
// znodes, sessions, members, origins and zxid. It is a sum of hashes, so that
// no order of iteration matters.
func (s *Snapshot) Digest() uint64 {
	sum := s.tree.Digest()
	add := func(b []byte) { sum += xxhash.Sum64(b) }
	add(appendInt([]byte("zxid"), int64(s.zxid)))
	add(appendUint([]byte("level"), uint64(s.level)))
	for id, v := range s.voters {
		add(append(appendUint([]byte("voter"), uint64(id)), flag(v)))
	}
	for _, m := range s.members {
		add(append(m.append(appendUint([]byte("member"), uint64(m.ID))), flag(m.Voter)))
	}
	for id, o := range s.origins {
		add(appendUint(appendUint(appendUint([]byte("origin"), uint64(id)), o.incarnation), o.last))
	}
	for i := range s.sessions {
		x := &s.sessions[i]
		b := appendInt(appendInt([]byte("session"), int64(x.ID)), x.Timeout.Milliseconds())
		add(appendUint(append(b, x.Password[:]...), x.Owner))
	}
	for _, a := range s.keys {
		add(a.append([]byte("key")))
	}
	if s.upload != nil {
		add(s.upload.appendHead([]byte("upload")))
		for i, p := range s.upload.parts {
			sum += xxhash.Sum64(p) * (2*uint64(i) + 1) // their order does matter
		}
	}
	return sum
}

// Digest computes the digest of the current state; it reads every znode.
func (m *Machine) Digest() uint64 {
	s := m.Snapshot()
	defer s.Release()
	return s.Digest()
}
