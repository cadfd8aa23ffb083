package wire

import (
	"encoding/binary"
	"slices"

	"github.com/zk-lite/zk-lite/internal/jute"
	"github.com/zk-lite/zk-lite/znode"
)

// aclMinBytes is the smallest ACL: perms and the lengths of scheme and id.
const aclMinBytes = 12

// openACLEncoding is the encoding of znode.OpenACL, which most creates have.
const openACLEncoding = "\x00\x00\x00\x01" + // one entry

	"\x00\x00\x00\x1f" + // all permissions
	"\x00\x00\x00\x05world" + "\x00\x00\x00\x06anyone"

// AppendACLs appends a vector of ACLs to b; nil is written as null.
func AppendACLs(b []byte, acls []znode.ACL) []byte {
	if acls == nil {
		return jute.AppendVectorLen(b, -1)
	}
	b = jute.AppendVectorLen(b, len(acls))
	for i := range acls {
		b = jute.AppendInt32(b, int32(acls[i].Perms))
		b = jute.AppendUstring(b, acls[i].ID.Scheme)
		b = jute.AppendUstring(b, acls[i].ID.ID)
	}
	return b
}

// DecodeACLs reads a vector of ACLs: nil for null, non-nil for an empty one.
// The result may be the shared znode.OpenACL: do not modify it.
func DecodeACLs(r *jute.Reader) []znode.ACL {
	const open = len(openACLEncoding)
	if rest := r.Rest(); len(rest) >= open && string(rest[:open]) == openACLEncoding {
		r.Take(open, "ACL")
		return znode.OpenACL
	}
	n := r.VectorLen(aclMinBytes)
	if n < 0 || r.Err() != nil {
		return nil
	}
	acls := make([]znode.ACL, n)
	for i := range acls {
		acls[i].Perms = znode.Perms(r.Int32())
		acls[i].ID.Scheme = schemeString(r.UstringBytes())
		acls[i].ID.ID = r.Ustring()
	}
	if r.Err() != nil {
		return nil
	}
	return acls
}

// schemeString is string(b) without an allocation for the known schemes.
func schemeString(b []byte) string {
	// A switch over string(b) compares without converting.
	switch string(b) {
	case "world":
		return "world"
	case "digest":
		return "digest"
	case "auth":
		return "auth"
	case "ip":
		return "ip"
	case "sasl":
		return "sasl"
	case "x509":
		return "x509"
	}
	return string(b)
}

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
