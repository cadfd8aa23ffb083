package changes

import (
	"slices"
	"sort"
	"strings"

	"github.com/zk-lite/zk-lite/internal/fault"
	"github.com/zk-lite/zk-lite/znode"
)

// record holds the newest changes of the tree, numbered from 0, of at most window bytes, and always the newest one.
type record struct {
	window  int64
	chunks  []*chunk     // change n is in chunk n/chunkLength, counted from that of the oldest
	total   uint64       // how many there were
	first   uint64       // number of the oldest
	bytes   int64        // of the entries and what they keep alive
	floor   znode.Zxid   // every change after it is in the record
	newest  znode.Zxid   // of the newest change, or floor
	restart uint64       // counts how often the record was cleared
	authors [256]*Author // those of the newest changes, by a hash of their session
}

// A record grows and shrinks by chunks: to copy a large one would make all requests wait.
const chunkLength = 256

type chunk [chunkLength]entry

// The memory of an entry, an author and an identity besides texts and data, in bytes.
const (
	entryMemory    = 184
	authorMemory   = 56
	identityMemory = 32
)

// entry is a znode.Event, but for what it shares with others.
type entry struct {
	path         string
	zxid         znode.Zxid
	may          *permissions
	by           *Author
	typ          znode.EventType
	mode         znode.Mode
	stat         znode.Stat
	data, before []byte
	timeMillis   int64
	purged       bool // data and before were removed
}

// permissions are an event's lists.
type permissions struct{ own, parent []znode.ACL }

// Author is the client of a transaction.
type Author struct {
	Session    znode.SessionID // 0: none, as for a server's own, and HTTP without a session
	Identities []znode.ID      // those of scheme digest with the password's hash
	Trace      string          // W3C traceparent of the request; "" if it has none

	uses int // by changes in the record
}

// Names are the author's identities for others to read: without hashes, and without addresses for those who are not
// administrators.
func (a *Author) Names(administrator bool) (names []znode.ID) {
	for _, id := range a.Identities {
		if id.Scheme != "ip" || administrator {
			names = append(names, znode.ID{Scheme: id.Scheme, ID: znode.WithoutHash(id)})
		}
	}
	return names
}

// add puts the newest change in, perhaps in place of older ones.
func (r *record) add(e *znode.Event) {
	if at := int(r.total/chunkLength - r.first/chunkLength); at == len(r.chunks) {
		r.chunks = append(r.chunks, new(chunk))
	}
	k := r.entry(r.total)
	*k = entry{
		path: e.Path, zxid: e.Zxid, may: r.permissions(e), by: r.author(e.Txn), typ: e.Type, mode: e.Mode,
		stat: e.Stat, data: e.Data, before: e.Before,
	}
	if e.Txn != nil {
		k.timeMillis = e.Txn.TimeMillis
	}
	r.bytes += k.bytes()
	if r.total == r.first || k.may != r.entry(r.total-1).may {
		r.bytes += k.may.bytes()
	}
	if k.by.uses++; k.by.uses == 1 {
		r.bytes += k.by.bytes()
	}
	r.total++
	r.newest = e.Zxid
	for r.bytes > r.window && r.total-r.first > 1 {
		r.drop()
	}
}

// drop forgets the oldest change, which is not the newest.
func (r *record) drop() {
	k := r.entry(r.first)
	r.floor = k.zxid
	r.bytes -= k.bytes()
	if k.may != r.entry(r.first+1).may {
		r.bytes -= k.may.bytes()
	}
	if k.by.uses--; k.by.uses == 0 {
		r.bytes -= k.by.bytes()
	}
	*k = entry{}
	if r.first++; r.first%chunkLength == 0 {
		r.chunks[0] = nil
		r.chunks = r.chunks[1:]
	}
}

// entry is the place of change n.
func (r *record) entry(n uint64) *entry {
	return &r.chunks[n/chunkLength-r.first/chunkLength][n%chunkLength]
}

// bytes is what k takes and keeps alive besides permissions and author. A path lies beside its data, in the tree.
func (k *entry) bytes() int64 {
	b := entryMemory + len(k.path) + len(k.data)
	if k.typ == znode.EventDataChanged {
		b += len(k.path) + len(k.before)
	}
	return int64(b)
}

func (p *permissions) bytes() int64 { return znode.ACLMemory(p.own) + znode.ACLMemory(p.parent) }

func (a *Author) bytes() int64 {
	b := authorMemory + len(a.Trace)
	for _, id := range a.Identities {
		b += identityMemory + len(id.Scheme) + len(id.ID)
	}
	return int64(b)
}

// permissions returns those of the change before, if e has the same.
func (r *record) permissions(e *znode.Event) *permissions {
	if r.total > r.first {
		p := r.entry(r.total - 1).may
		if sameList(p.own, e.ACL) && sameList(p.parent, e.ParentACL) {
			return p
		}
	}
	return &permissions{e.ACL, e.ParentACL}
}

// sameList reports whether two lists are one in memory, as those of the tree are
// that say the same.
func sameList(a, b []znode.ACL) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

// author returns that of an earlier transaction, if it is the same and still known.
func (r *record) author(x *znode.Txn) *Author {
	if x == nil {
		x = &znode.Txn{}
	}
	const spread = 0x9E3779B97F4A7C15 // 2^64 divided by the golden ratio: neighbours get different slots
	known := &r.authors[uint64(x.Session)*spread>>56]
	if a := *known; a != nil && a.Session == x.Session && a.Trace == x.Trace &&
		slices.Equal(a.Identities, x.Identities) {
		return a
	}
	a := &Author{Session: x.Session, Trace: strings.Clone(x.Trace)} // they lie in a log entry
	for _, id := range x.Identities {
		a.Identities = append(a.Identities, znode.ID{Scheme: strings.Clone(id.Scheme), ID: strings.Clone(id.ID)})
	}
	*known = a
	return a
}

// clear forgets everything: the state has been replaced by one of that zxid.
func (r *record) clear(zxid znode.Zxid) {
	*r = record{window: r.window, floor: zxid, newest: zxid, restart: r.restart + 1}
	if fault.On(fault.HideGap) {
		r.floor = 0
	}
}

// oldest is the number of the oldest change in the record.
func (r *record) oldest() uint64 { return r.first }

// purge removes the values of k. Its path lay beside them in memory.
func (r *record) purge(k *entry) {
	r.bytes -= k.bytes()
	k.path, k.data, k.before, k.purged = strings.Clone(k.path), nil, nil, true
	r.bytes += k.bytes()
}

// event returns change n, without its transaction.
func (r *record) event(n uint64) znode.Event {
	k := r.entry(n)
	return znode.Event{
		Type: k.typ, Path: k.path, Zxid: k.zxid, ACL: k.may.own, ParentACL: k.may.parent,
		Stat: k.stat, Data: k.data, Before: k.before, Mode: k.mode,
	}
}

// seek returns the number of the first change after a zxid.
func (r *record) seek(zxid znode.Zxid) uint64 {
	return r.oldest() + uint64(sort.Search(int(r.total-r.first), func(i int) bool {
		return r.entry(r.oldest()+uint64(i)).zxid > zxid
	}))
}
