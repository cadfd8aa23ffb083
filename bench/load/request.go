package load

import (
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zk-lite/zk-lite/internal/jute"
	"github.com/zk-lite/zk-lite/internal/wire"
	"github.com/zk-lite/zk-lite/znode"
)

// sent is a request under way.
type sent struct {
	op    Op
	path  string    // of a create or delete that must be remembered
	start time.Time // sent, or intended
}

// requester makes the requests of one connection. Its bodies are reused, so that a request
// allocates nothing; one goroutine uses it, except for made.
type requester struct {
	mix    Mix
	keys   *keySpace
	drawer *drawer
	data   []byte
	multi  int
	conn   int
	count  int // of creates
	forget bool
	latest bool

	get      wire.GetDataRequest
	set      wire.SetDataRequest
	create   wire.CreateRequest
	del      wire.DeleteRequest
	exists   wire.ExistsRequest
	children wire.GetChildrenRequest
	sync     wire.SyncRequest
	batch    wire.MultiRequest

	created atomic.Int64 // answered creates, which are answered in their order

	mu   sync.Mutex // protects the fields below
	made []string   // created and not deleted, oldest first
}

func newRequester(cfg *Config, keys *keySpace, data []byte, conn int) *requester {
	q := &requester{mix: cfg.Mix, keys: keys, data: data, multi: cfg.MultiSize, conn: conn,
		drawer: newDrawer(cfg.Seed, conn, cfg.Keys, cfg.Zipf), forget: !cfg.Mix.has(Delete), latest: cfg.Latest}
	q.set = wire.SetDataRequest{Data: data, Version: znode.AnyVersion}
	q.create = wire.CreateRequest{Data: data, ACL: znode.OpenACL, Mode: znode.Persistent}
	q.del = wire.DeleteRequest{Version: znode.AnyVersion}
	if cfg.Mix.has(Multi) {
		for range cfg.MultiSize {
			q.batch.Ops = append(q.batch.Ops, wire.MultiOp{Type: wire.OpSetData,
				Request: &wire.SetDataRequest{Data: data, Version: znode.AnyVersion}})
		}
	}
	return q
}

// append adds the next request to b.
func (q *requester) append(c *conn, b []byte, start time.Time) ([]byte, sent) {
	s := sent{op: q.mix.draw(q.drawer.random), start: start}
	if s.op == Delete {
		if s.path = q.take(); s.path == "" {
			s.op = Create
		}
	}
	switch s.op {
	case Get:
		q.get.Path = q.key()
		return c.append(b, wire.OpGetData, &q.get), s
	case Set:
		q.set.Path = q.key()
		return c.append(b, wire.OpSetData, &q.set), s
	case Create:
		s.path = q.fresh()
		q.create.Path = s.path
		return c.append(b, wire.OpCreate, &q.create), s
	case Delete:
		q.del.Path = s.path
		return c.append(b, wire.OpDelete, &q.del), s
	case Exists:
		q.exists.Path = q.key()
		return c.append(b, wire.OpExists, &q.exists), s
	case Children:
		q.children.Path = q.keys.dirs[q.drawer.draw()/dirKeys]
		return c.append(b, wire.OpGetChildren2, &q.children), s
	case Multi:
		for i := range q.batch.Ops {
			q.batch.Ops[i].Request.(*wire.SetDataRequest).Path = q.key()
		}
		return c.append(b, wire.OpMulti, &q.batch), s
	}
	q.sync.Path = q.key()
	return c.append(b, wire.OpSync, &q.sync), s
}

func (q *requester) key() string {
	k := q.drawer.draw()
	if !q.latest {
		return q.keys.paths[k]
	}
	created := int(q.created.Load())
	if k < created {
		return q.numbered(created - k)
	}
	return q.keys.paths[len(q.keys.paths)-1-(k-created)]
}

// fresh is an unused path.
func (q *requester) fresh() string {
	q.count++
	return q.numbered(q.count)
}

// numbered is the path of this connection's n-th create.
func (q *requester) numbered(n int) string {
	return q.keys.newDir() + "/c" + q.keys.run + strconv.Itoa(q.conn) + "-" + strconv.Itoa(n)
}

// take returns something to delete, or "".
func (q *requester) take() string {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.made) == 0 {
		return ""
	}
	path := q.made[0]
	q.made = q.made[1:]
	return path
}

// done notes the changes that a good answer confirms.
func (q *requester) done(s *sent) {
	if s.op != Create {
		return
	}
	if q.created.Add(1); q.forget {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.made = append(q.made, s.path)
}

// windowBytes is about the size of a full window of requests and of replies.
func (q *requester) windowBytes(inFlight int) int {
	const overhead = 200 // headers, path, Stat
	size := overhead + len(q.data)
	if q.mix.has(Multi) {
		size *= q.multi
	}
	if q.mix.has(Children) {
		size = max(size, min(len(q.keys.paths), dirKeys)*16)
	}
	return size * inFlight
}

// multiError finds the error of a multi, whose header has none: all results of
// a multi that failed are errors, and the first is the one of its first
// operation, so that a good multi costs one look. No results are no error.
func multiError(body []byte) error {
	var first wire.MultiHeader
	r := jute.NewReader(body)
	if first.Decode(r); r.Err() == nil && (first.Done || first.Type != wire.OpError) {
		return nil
	}
	var all wire.MultiResponse
	all.Decode(jute.NewReader(body))
	for _, result := range all.Results {
		if result.Err != znode.OK {
			return result.Err.Err()
		}
	}
	return fmt.Errorf("a multi failed without an error: %x", body)
}
