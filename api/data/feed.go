package data

import (
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/zk-lite/zk-lite/api/body"
	"github.com/zk-lite/zk-lite/api/rest"
	"github.com/zk-lite/zk-lite/server"
	"github.com/zk-lite/zk-lite/server/changes"
	"github.com/zk-lite/zk-lite/znode"
)

// feed reports changes with their values, one transaction at a time.
func (h *handlers) feed(q *rest.Request) error {
	path, err := q.ZnodePath()
	if err != nil {
		return err
	}
	f := changes.Filter{Path: path, Kind: changes.KindRecursive, Identities: q.IDs}
	if f.Types, err = list(q, "events", feedEvents); err != nil {
		return err
	}
	if f.Modes, err = list(q, "types", feedTypes); err != nil {
		return err
	}
	before, err := q.Query.Flag("before")
	if err != nil {
		return err
	}
	list, err := q.Query.Flag("list")
	if err != nil {
		return err
	}
	if list && !rest.WantsStream(q.HTTP) {
		return rest.BadRequest("list", "it begins a stream; send Accept: text/event-stream")
	}
	v := &values{q, before, q.IsAdministrator(), h.texts}
	if param, _ := rest.ResumePoint(q); !list || param != "" {
		return h.report(q, &f, v) // the client had the listing before
	}
	if q.Query.Has("wait") {
		return streamsEndless()
	}
	l, err := openListing(q, path)
	if err != nil {
		return err
	}
	defer l.close()
	from := changes.Position{Zxid: l.zxid}
	return h.stream(q, []changes.Filter{f}, from, v, func(s *watchStream) bool {
		return s.list(l, f.Modes)
	}, nil)
}

// name is a word of a list in the query, and what it stands for.
type name[T any] struct {
	word string
	is   T
}

var (
	feedEvents = []name[znode.EventType]{
		{"created", znode.EventCreated}, {"changed", znode.EventDataChanged}, {"deleted", znode.EventDeleted},
		{"children", znode.EventChildrenChanged},
	}
	feedTypes = []name[znode.Mode]{
		{znode.KindPersistent, znode.Persistent}, {znode.KindEphemeral, znode.Ephemeral},
		{znode.KindContainer, znode.Container}, {znode.KindTTL, znode.PersistentTTL},
	}
)

// list reads words with commas between them; nil if there are none.
func list[T any](q *rest.Request, param string, names []name[T]) (all []T, err error) {
	if !q.Query.Has(param) {
		return nil, nil
	}
	for word := range strings.SplitSeq(q.Query.Text(param), ",") {
		at := slices.IndexFunc(names, func(n name[T]) bool { return n.word == word })
		if at < 0 {
			known := make([]string, 0, len(names))
			for _, n := range names {
				known = append(known, n.word)
			}
			return nil, rest.BadRequest(param, "%q is none of %s; several have commas between them", word,
				strings.Join(known, ", "))
		}
		all = append(all, names[at].is)
	}
	return all, nil
}

// values is the form of a feed.
type values struct {
	q      *rest.Request
	before bool // with the values that were replaced
	admin  bool // the client is an administrator
	texts  *texts
}

// transactionBody is a transaction as JSON: all its changes that the client asked for and may read.
type transactionBody struct {
	*body.Origin
	Changes []edit `json:"changes"`
}

func originOf(c *changes.Change, administrator bool) *body.Origin {
	o := &body.Origin{
		Zxid: c.At.Zxid.String(), Time: time.UnixMilli(c.TimeMillis).UTC().Format(time.RFC3339Nano),
		Author: []body.Identity{}, Traceparent: c.By.Trace,
	}
	if c.By.Session != 0 {
		o.Session = c.By.Session.String()
	}
	for _, id := range c.By.Names(administrator) {
		o.Author = append(o.Author, body.Identity{Scheme: id.Scheme, ID: id.ID})
	}
	return o
}

// edit is a change with its values as JSON.
type edit struct {
	Event string `json:"event"`
	Path  string `json:"path"`
	Type  string `json:"type"`
	*rest.Content
	Before *rest.Content `json:"before,omitempty"`
	Hidden bool          `json:"hidden,omitempty"`
	Purged bool          `json:"purged,omitempty"`
	Stat   *rest.Stat    `json:"stat"`
}

// feedBody is the answer to a long poll.
type feedBody struct {
	Transactions []transactionBody `json:"transactions"`
	Zxid         string            `json:"zxid"`
}

func (v *values) body(news []changes.Change, position string) any {
	body := feedBody{Transactions: []transactionBody{}, Zxid: position}
	for len(news) > 0 {
		var t transactionBody
		t, news = v.next(news)
		body.Transactions = append(body.Transactions, t)
	}
	return body
}

func (v *values) send(s *rest.EventStream, news []changes.Change) bool {
	for len(news) > 0 {
		var of []changes.Change
		of, news = changes.NextTransaction(news)
		s.At = changes.Position{Zxid: of[0].At.Zxid}
		s.Event("transaction", v.text(of))
		if !s.FlushLong() { // before the next is encoded: a client that does not read holds few
			return false
		}
	}
	return true
}

// next writes the transaction of the first change, of which news has all changes, and returns the others.
func (v *values) next(news []changes.Change) (t transactionBody, others []changes.Change) {
	of, others := changes.NextTransaction(news)
	t.Origin = originOf(&of[0], v.admin)
	hidden := make([]bool, len(of))
	v.q.View(func(view *server.View) {
		for i := range hidden {
			_, code := view.Tree().Exists(of[i].Path, v.q.IDs)
			hidden[i] = code == znode.ErrNoAuth
		}
	})
	for i := range hidden {
		t.Changes = append(t.Changes, v.edit(&of[i], hidden[i]))
	}
	return t, others
}

// edit writes an edit; without the values of a znode that the client may no longer read, and without purged ones.
func (v *values) edit(x *changes.Change, hidden bool) edit {
	e := &x.Edit
	b := edit{
		Event: changeName(e.Type), Path: e.Path, Type: typeName(e.Mode), Stat: rest.StatOf(&e.Stat), Hidden: hidden,
		Purged: x.Purged,
	}
	if hidden || x.Purged {
		return b
	}
	c := rest.ContentOf(e.Data)
	b.Content = &c
	if v.before && e.Type == znode.EventDataChanged {
		was := rest.ContentOf(e.Before)
		b.Before = &was
	}
	return b
}

const (
	keptTexts = 8192 // transactions; a follower that is further behind the first one encodes for itself
	longText  = 1024 // bytes of a text that is kept, at most
)

// texts are the newest transactions as JSON, by their zxids: most followers of a feed get the same, and to encode one
// costs ten times as much as to send it. Only those of one change are kept, which are nearly all.
type texts [keptTexts]atomic.Pointer[keptText]

type keptText struct {
	textKey
	text rest.Text
}

// textKey is all that a text depends on. No two histories of a server have the same Author in memory.
type textKey struct {
	by            *changes.Author
	zxid          znode.Zxid
	timeMillis    int64
	path          string
	typ           znode.EventType
	stat          znode.Stat
	purged        bool
	before, admin bool
}

// text writes a transaction as JSON, or finds it as written for another follower.
func (v *values) text(of []changes.Change) rest.Text {
	may := false
	v.q.View(func(view *server.View) {
		_, code := view.Tree().Exists(of[0].Path, v.q.IDs)
		may = code != znode.ErrNoAuth
	})
	c := &of[0]
	key := textKey{c.By, c.At.Zxid, c.TimeMillis, c.Path, c.Type, c.Edit.Stat, c.Purged, v.before, v.admin}
	slot := &v.texts[uint64(key.zxid)%keptTexts]
	shared := may && len(of) == 1
	have := slot.Load()
	if shared && have != nil && have.textKey == key {
		return have.text
	}
	t, _ := v.next(of)
	text := rest.Encode(&t)
	if newer := have == nil || have.zxid < key.zxid; newer && shared && !t.Changes[0].Hidden && len(text) <= longText {
		slot.Store(&keptText{key, text})
	}
	return text
}
