package znode

import (
	"encoding/binary"

	"github.com/cespare/xxhash/v2"
)

// Digest is a number that two trees share when they hold the same znodes: the
// sum of a hash of every Record. Being a sum, it does not depend on order.
func (s *Snapshot) Digest() uint64 {
	var sum uint64
	var b []byte
	_ = s.Walk(func(r *Record) error {
		b = appendText(b[:0], r.Path)
		b = binary.AppendVarint(b, int64(len(r.Data)))
		if r.Data == nil {
			b = append(b, 1)
		}
		b = append(b, r.Data...)
		for _, v := range []int64{
			int64(r.Stat.Czxid), int64(r.Stat.Mzxid), int64(r.Stat.Pzxid), r.Stat.Ctime, r.Stat.Mtime,
			int64(r.Stat.Version), int64(r.Stat.Cversion), int64(r.Stat.Aversion), int64(r.Stat.EphemeralOwner),
		} {
			b = binary.AppendVarint(b, v)
		}
		for _, a := range r.ACL {
			b = binary.AppendVarint(b, int64(a.Perms))
			b = appendText(appendText(b, a.ID.Scheme), a.ID.ID)
		}
		sum += xxhash.Sum64(b)
		return nil
	})
	return sum
}

func appendText(b []byte, s string) []byte {
	b = binary.AppendVarint(b, int64(len(s)))
	return append(b, s...)
}
