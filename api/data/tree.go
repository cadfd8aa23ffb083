package data

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"
	"time"

	"github.com/zk-lite/zk-lite/api/rest"
	"github.com/zk-lite/zk-lite/server"
	"github.com/zk-lite/zk-lite/znode"
)

const (
	// sendAtOnce is how many bytes of a subtree are encoded before they are sent.
	sendAtOnce = 64 << 10
	// slowestReader is how many bytes a second a client must read: what is frozen for it keeps old values in memory.
	slowestReader = 1 << 20
	// znodeJSON is about how many bytes a znode has as JSON, besides its path and data.
	znodeJSON = 300
)

// listing is a subtree of one state that is being sent. A large one is frozen meanwhile.
type listing struct {
	*znode.Subtree
	zxid  znode.Zxid
	until time.Time // the client must have read all
	leave func()
}

// openListing reads a subtree. The caller must close it.
func openListing(q *rest.Request, path string) (*listing, error) {
	l := &listing{leave: func() {}}
	var code znode.Error
	read := func(small bool) {
		q.View(func(v *server.View) {
			l.Subtree, code = v.Subtree(path, q.IDs, small)
			l.zxid = v.Zxid()
		})
	}
	if read(true); code == znode.OK && l.Subtree == nil {
		var err error
		if l.leave, err = q.EnterSearch(); err != nil {
			return nil, err
		}
		read(false)
	}
	if code != znode.OK {
		l.leave()
		return nil, rest.Fail(code, path)
	}
	l.List()
	znodes, size := l.Size()
	size += int64(znodes) * znodeJSON
	l.until = time.Now().Add(rest.WriteTimeout + time.Duration(size/slowestReader)*time.Second)
	return l, nil
}

// close frees what the listing holds; only the first call has an effect.
func (l *listing) close() {
	if l.Subtree != nil {
		l.Release()
		l.leave()
		l.Subtree = nil
	}
}

// The lines of a subtree: the first, one for each znode, the last.
type (
	treeHead struct {
		Path   string `json:"path"`
		Zxid   string `json:"zxid"`
		Znodes int    `json:"znodes"` // in the subtree, whether the client may read them or not
	}
	treeZnode struct {
		Path string `json:"path"`
		Type string `json:"type,omitempty"`
		*rest.Content
		ACL    []rest.ACLEntry `json:"acl,omitempty"`
		Hidden bool            `json:"hidden,omitempty"`
		Stat   *rest.Stat      `json:"stat,omitempty"`
	}
	treeEnd struct {
		Complete bool   `json:"complete"`
		Zxid     string `json:"zxid"`
		Znodes   int    `json:"znodes"` // lines before this one, without the first
	}
)

func treeZnodeOf(r *znode.SubtreeRecord, acl bool) *treeZnode {
	z := &treeZnode{Path: r.Path, Hidden: r.Hidden}
	if r.Hidden {
		return z
	}
	c := rest.ContentOf(r.Data)
	z.Type, z.Content, z.Stat = typeName(r.Mode), &c, rest.StatOf(&r.Stat)
	if acl {
		z.ACL = rest.ACLBody(r.ACL)
	}
	return z
}

func typeName(m znode.Mode) string {
	return feedTypes[slices.IndexFunc(feedTypes, func(n name[znode.Mode]) bool { return n.is == m })].word
}

// getTree answers with a znode and all below it, as they are in one state: lines of JSON.
func getTree(q *rest.Request, path string) error {
	acl, err := q.Query.Flag("acl")
	if err != nil {
		return err
	}
	l, err := openListing(q, path)
	if err != nil {
		return err
	}
	defer l.close()
	q.SetZxid(l.zxid)
	q.W.Header().Set("Content-Type", "application/x-ndjson")
	q.Begin(http.StatusOK)
	if q.HTTP.Method == http.MethodHead {
		return nil
	}
	b := &bytes.Buffer{}
	enc := json.NewEncoder(b)
	enc.SetEscapeHTML(false)
	put := func(line any) {
		if err := enc.Encode(line); err != nil {
			panic("data: invariant broken: a znode cannot be encoded: " + err.Error())
		}
		if b.Len() >= sendAtOnce {
			l.send(q, b)
		}
	}
	znodes, _ := l.Size()
	put(treeHead{path, l.zxid.String(), znodes})
	n := 0
	for r, ok := l.Next(); ok; r, ok = l.Next() {
		put(treeZnodeOf(&r, acl))
		n++
	}
	put(treeEnd{true, l.zxid.String(), n})
	l.send(q, b)
	return nil
}

// send sends the lines in b, and cuts the answer off if the client does not read, if so much is written meanwhile that
// the state takes too much memory, or if the server stops.
func (l *listing) send(q *rest.Request, b *bytes.Buffer) {
	deadline := time.Now().Add(rest.WriteTimeout)
	if l.until.Before(deadline) {
		deadline = l.until
	}
	_ = http.NewResponseController(q.W).SetWriteDeadline(deadline)
	if _, err := q.Write(b.Bytes()); err != nil || l.Outgrown() || q.Core.Stopping.Err() != nil {
		panic(http.ErrAbortHandler) // so that it does not pass for a whole one
	}
	b.Reset()
}

// list sends the listing: an event for each znode of these modes, none being all, and one that says that it is
// complete. Before that one, no event has an id: a client that is cut off begins again. It returns false if the stream
// has ended.
func (s *watchStream) list(l *listing, modes []znode.Mode) bool {
	defer l.close()
	n, size := 0, 0
	for r, ok := l.Next(); ok; r, ok = l.Next() {
		if len(modes) > 0 && (r.Hidden || !slices.Contains(modes, r.Mode)) {
			continue
		}
		s.Item("znode", treeZnodeOf(&r, false))
		n++
		if size += len(r.Path) + len(r.Data) + znodeJSON; size >= sendAtOnce {
			if s.Context.Err() != nil || time.Now().After(l.until) || l.Outgrown() || !s.Flush() {
				return false
			}
			size = 0
		}
	}
	s.Event("listed", treeEnd{true, l.zxid.String(), n})
	return s.Flush()
}
