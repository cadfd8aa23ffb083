package wire

import (
	"encoding/binary"
	"slices"

	"github.com/zk-lite/zk-lite/internal/jute"
	"github.com/zk-lite/zk-lite/znode"
)

// StatBytes is the size of a Stat.
const StatBytes = 68

// AppendStat appends s to b.
func AppendStat(b []byte, s *znode.Stat) []byte {
	n := len(b)
	b = slices.Grow(b, StatBytes)[:n+StatBytes]
	// One slice of a known length, so that a single bounds check covers all.
	p := (*[StatBytes]byte)(b[n:])
	binary.BigEndian.PutUint64(p[0:8], uint64(s.Czxid))
	binary.BigEndian.PutUint64(p[8:16], uint64(s.Mzxid))
	binary.BigEndian.PutUint64(p[16:24], uint64(s.Ctime))
	binary.BigEndian.PutUint64(p[24:32], uint64(s.Mtime))
	binary.BigEndian.PutUint32(p[32:36], uint32(s.Version))
	binary.BigEndian.PutUint32(p[36:40], uint32(s.Cversion))
	binary.BigEndian.PutUint32(p[40:44], uint32(s.Aversion))
	binary.BigEndian.PutUint64(p[44:52], uint64(s.EphemeralOwner))
	binary.BigEndian.PutUint32(p[52:56], uint32(s.DataLength))
	binary.BigEndian.PutUint32(p[56:60], uint32(s.NumChildren))
	binary.BigEndian.PutUint64(p[60:68], uint64(s.Pzxid))
	return b
}

// DecodeStat reads a Stat into s.
func DecodeStat(r *jute.Reader, s *znode.Stat) {
	b := r.Take(StatBytes, "Stat")
	if b == nil {
		*s = znode.Stat{}
		return
	}
	p := (*[StatBytes]byte)(b)
	s.Czxid = znode.Zxid(binary.BigEndian.Uint64(p[0:8]))
	s.Mzxid = znode.Zxid(binary.BigEndian.Uint64(p[8:16]))
	s.Ctime = int64(binary.BigEndian.Uint64(p[16:24]))
	s.Mtime = int64(binary.BigEndian.Uint64(p[24:32]))
	s.Version = znode.Version(binary.BigEndian.Uint32(p[32:36]))
	s.Cversion = znode.Version(binary.BigEndian.Uint32(p[36:40]))
	s.Aversion = znode.Version(binary.BigEndian.Uint32(p[40:44]))
	s.EphemeralOwner = znode.SessionID(binary.BigEndian.Uint64(p[44:52]))
	s.DataLength = int32(binary.BigEndian.Uint32(p[52:56]))
	s.NumChildren = int32(binary.BigEndian.Uint32(p[56:60]))
	s.Pzxid = znode.Zxid(binary.BigEndian.Uint64(p[60:68]))
}
