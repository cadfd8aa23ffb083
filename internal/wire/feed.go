package wire

import (
	"github.com/zk-lite/zk-lite/internal/jute"
	"github.com/zk-lite/zk-lite/znode"
)

// FromNow as FeedRequest.Since asks for the position of the server's state, and for no changes.
const FromNow znode.Zxid = -1

// FeedRequest is the body of feed: which changes of a znode and all below it, after which transaction.
type FeedRequest struct {
	Path   string
	Since  znode.Zxid
	Events int32 // those whose bit 1<<znode.EventType is set; 0: all
	Modes  int32 // of znodes whose bit 1<<znode.Mode is set; 0: all
	Before bool  // with the data that a change replaced
}

func (*FeedRequest) isRequest() {}

// Append appends the record to b.
func (f *FeedRequest) Append(b []byte) []byte {
	b = jute.AppendInt64(jute.AppendUstring(b, f.Path), int64(f.Since))
	return jute.AppendBool(jute.AppendInt32(jute.AppendInt32(b, f.Events), f.Modes), f.Before)
}

// Decode reads the record.
func (f *FeedRequest) Decode(r *jute.Reader) {
	f.Path, f.Since = r.Ustring(), znode.Zxid(r.Int64())
	f.Events, f.Modes, f.Before = r.Int32(), r.Int32(), r.Bool()
}

// FeedResponse is the reply to feed.
type FeedResponse struct {
	Zxid         znode.Zxid // continue after it
	TooOld       bool       // the server does not know all changes since then; Zxid is that of its state
	More         bool       // there is more to be asked for at once
	Transactions []FeedTransaction
}

// FeedTransaction is a transaction, with those of its changes that were asked for and may be read.
type FeedTransaction struct {
	Zxid       znode.Zxid
	TimeMillis int64 // by the leader's clock, milliseconds since the epoch
	Session    znode.SessionID
	Author     []ClientInfo
	Trace      string // W3C traceparent
	Changes    []FeedChange
}

// FeedChange is a change of one znode.
type FeedChange struct {
	Type   znode.EventType
	Path   string
	Mode   znode.Mode
	Hidden bool // the client may no longer read the znode, or the data were purged: there are none
	Data   []byte
	Before []byte
	Stat   znode.Stat
}

// The smallest encodings of a transaction and a change.
const (
	transactionMinBytes = 3*8 + 3*4
	changeMinBytes      = 2*4 + 4 + 1 + 2*4 + StatBytes
)

func (*FeedResponse) isResponse() {}

// Append appends the record to b.
func (f *FeedResponse) Append(b []byte) []byte {
	b = jute.AppendBool(jute.AppendBool(jute.AppendInt64(b, int64(f.Zxid)), f.TooOld), f.More)
	b = jute.AppendVectorLen(b, len(f.Transactions))
	for i := range f.Transactions {
		t := &f.Transactions[i]
		b = jute.AppendInt64(jute.AppendInt64(jute.AppendInt64(b, int64(t.Zxid)), t.TimeMillis), int64(t.Session))
		author := WhoAmIResponse{t.Author}
		b = jute.AppendUstring(author.Append(b), t.Trace)
		b = jute.AppendVectorLen(b, len(t.Changes))
		for i := range t.Changes {
			b = t.Changes[i].append(b)
		}
	}
	return b
}

func (c *FeedChange) append(b []byte) []byte {
	b = jute.AppendInt32(jute.AppendUstring(jute.AppendInt32(b, int32(c.Type)), c.Path), int32(c.Mode))
	b = jute.AppendBuffer(jute.AppendBuffer(jute.AppendBool(b, c.Hidden), c.Data), c.Before)
	return AppendStat(b, &c.Stat)
}

// Decode reads the record; null and empty vectors are nil. Data point into r's bytes.
func (f *FeedResponse) Decode(r *jute.Reader) {
	*f = FeedResponse{Zxid: znode.Zxid(r.Int64()), TooOld: r.Bool(), More: r.Bool()}
	for range r.VectorLen(transactionMinBytes) {
		t := FeedTransaction{Zxid: znode.Zxid(r.Int64()), TimeMillis: r.Int64(), Session: znode.SessionID(r.Int64())}
		var author WhoAmIResponse
		author.Decode(r)
		t.Author, t.Trace = author.ClientInfo, r.Ustring()
		for range r.VectorLen(changeMinBytes) {
			c := FeedChange{Type: znode.EventType(r.Int32()), Path: r.Ustring(), Mode: znode.Mode(r.Int32())}
			c.Hidden, c.Data, c.Before = r.Bool(), r.Buffer(), r.Buffer()
			DecodeStat(r, &c.Stat)
			t.Changes = append(t.Changes, c)
		}
		if r.Err() != nil {
			return
		}
		f.Transactions = append(f.Transactions, t)
	}
}

// RevisionsRequest is the body of revisions: at most how many values of a znode, of transactions before which one; 0:
// the newest. The reply is a FeedResponse with a change for each, the newest first, Hidden if it was purged. Its Zxid
// is the Before with which to continue if there is More; else nothing older than it is known.
type RevisionsRequest struct {
	Path   string
	Before znode.Zxid
	Limit  int32
}

func (*RevisionsRequest) isRequest() {}

// Append appends the record to b.
func (q *RevisionsRequest) Append(b []byte) []byte {
	return jute.AppendInt32(jute.AppendInt64(jute.AppendUstring(b, q.Path), int64(q.Before)), q.Limit)
}

// Decode reads the record.
func (q *RevisionsRequest) Decode(r *jute.Reader) {
	q.Path, q.Before, q.Limit = r.Ustring(), znode.Zxid(r.Int64()), r.Int32()
}
