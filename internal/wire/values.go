package wire

import (
	"github.com/zk-lite/zk-lite/internal/jute"
	"github.com/zk-lite/zk-lite/znode"
)

// aclMinBytes is the smallest ACL: perms and the lengths of scheme and id.
const aclMinBytes = 12

// openACLEncoding is znode.OpenACL on the wire, which most creates carry.
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
