package wire

import (
	"github.com/zk-lite/zk-lite/internal/jute"
	"github.com/zk-lite/zk-lite/znode"
)

// TreeRequest is the body of tree: a part of a subtree as it is in one state, which the server keeps for the session.
type TreeRequest struct {
	Paths   []string // to begin: one or two subtrees, of one state
	ID      int64    // of the state, by which the client knows it
	Subtree int32    // which of the paths
	Place   int64    // in it: 0, or TreeResponse.Next; less ends all
}

func (*TreeRequest) isRequest() {}

// Append appends the record to b.
func (t *TreeRequest) Append(b []byte) []byte {
	b = jute.AppendVectorLen(b, len(t.Paths))
	for _, path := range t.Paths {
		b = jute.AppendUstring(b, path)
	}
	return jute.AppendInt64(jute.AppendInt32(jute.AppendInt64(b, t.ID), t.Subtree), t.Place)
}

// Decode reads the record; an empty vector is nil.
func (t *TreeRequest) Decode(r *jute.Reader) {
	*t = TreeRequest{}
	for range r.VectorLen(4) {
		t.Paths = append(t.Paths, r.Ustring())
	}
	t.ID, t.Subtree, t.Place = r.Int64(), r.Int32(), r.Int64()
}

// TreeResponse is the reply to tree.
type TreeResponse struct {
	Zxid   znode.Zxid // of the state; FromNow: the server has no room for it yet
	Wait   bool       // ask again, in a moment
	Gone   bool       // the server does not have the state, or no longer
	Next   int64      // the place of the next part; less than 0: there is none. Not with Wait.
	Znodes []TreeZnode
}

// TreeZnode is a znode of a subtree.
type TreeZnode struct {
	Path   string
	Mode   znode.Mode
	Hidden bool // the client may not read the znode: nothing else is known of it, and those below it are left out
	Data   []byte
	Stat   znode.Stat
	ACL    []znode.ACL
}

const treeZnodeMinBytes = 4 + 4 + 1 + 4 + StatBytes + 4

func (*TreeResponse) isResponse() {}

// Append appends the record to b.
func (t *TreeResponse) Append(b []byte) []byte {
	b = jute.AppendBool(jute.AppendBool(jute.AppendInt64(b, int64(t.Zxid)), t.Wait), t.Gone)
	b = jute.AppendVectorLen(jute.AppendInt64(b, t.Next), len(t.Znodes))
	for i := range t.Znodes {
		z := &t.Znodes[i]
		b = jute.AppendBool(jute.AppendInt32(jute.AppendUstring(b, z.Path), int32(z.Mode)), z.Hidden)
		b = AppendACLs(AppendStat(jute.AppendBuffer(b, z.Data), &z.Stat), z.ACL)
	}
	return b
}

// Decode reads the record; null and empty vectors are nil. Data point into r's bytes.
func (t *TreeResponse) Decode(r *jute.Reader) {
	*t = TreeResponse{Zxid: znode.Zxid(r.Int64()), Wait: r.Bool(), Gone: r.Bool(), Next: r.Int64()}
	for range r.VectorLen(treeZnodeMinBytes) {
		z := TreeZnode{Path: r.Ustring(), Mode: znode.Mode(r.Int32()), Hidden: r.Bool(), Data: r.Buffer()}
		DecodeStat(r, &z.Stat)
		if z.ACL = DecodeACLs(r); r.Err() != nil {
			return
		}
		t.Znodes = append(t.Znodes, z)
	}
}
