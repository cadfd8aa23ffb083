package admin

import (
	"net/http"
	"net/netip"
	"slices"
	"time"

	"github.com/zk-lite/zk-lite/api/rest"
	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/server"
	"github.com/zk-lite/zk-lite/session"
	"github.com/zk-lite/zk-lite/watch"
	"github.com/zk-lite/zk-lite/znode"
)

// Sessions and watches as resources. All servers know the sessions, except the local ones; the client's connection and
// its watches are known to the server that has it, which ?server= asks.

// sessions shows a session with its connection.
type sessions struct {
	server Server
	port   Port // nil: there is none
}

// maxShown bounds the items that are listed of one session, or on one path.
const maxShown = 1000

// sessionRow is what every server knows of a session or, if it is local, the server that has it.
type sessionRow struct {
	ID         string         `json:"id"`
	Timeout    string         `json:"timeout"`
	Server     state.ServerID `json:"server"` // that its client was last at
	Ephemerals int            `json:"ephemerals"`
	Local      bool           `json:"local,omitempty"`
}

// sessionPage is a page of sessions.
type sessionPage struct {
	Sessions []sessionRow `json:"sessions"`
	Total    int          `json:"total"`
	Next     string       `json:"next,omitempty"`
}

// listSessions lists the sessions by their ids: those of all servers, and the local ones of this one.
func listSessions(q *rest.Request) error {
	limit, err := q.Query.Integer("limit", maxShown/10, 1, maxShown)
	if err != nil {
		return err
	}
	var after znode.SessionID
	if q.Query.Has("after") {
		var ok bool
		if after, ok = rest.ParseSessionID(q.Query.Text("after")); !ok {
			return rest.BadRequest("after", "%q is not the id of a session, such as 0x1001", q.Query.Text("after"))
		}
	}
	page := sessionPage{Sessions: []sessionRow{}}
	var ids []uint64
	q.View(func(v *server.View) {
		table := v.Machine().Sessions()
		local := v.Local().All()
		page.Total = table.Len() + len(local)
		ids = make([]uint64, 0, page.Total)
		add := func(x *session.Session) {
			if uint64(x.ID) > uint64(after) {
				ids = append(ids, uint64(x.ID))
			}
		}
		table.Each(add)
		for i := range local {
			add(&local[i])
		}
	})
	slices.Sort(ids) // not while others wait
	if len(ids) > limit {
		ids = ids[:limit]
		page.Next = znode.SessionID(ids[limit-1]).String()
	}
	q.View(func(v *server.View) {
		for _, id := range ids {
			if row, ok := rowOf(v, znode.SessionID(id)); ok {
				page.Sessions = append(page.Sessions, row)
			}
		}
	})
	return q.Answer(http.StatusOK, page)
}

// rowOf returns the row of a session; false if there is none with this id.
func rowOf(v *server.View, id znode.SessionID) (sessionRow, bool) {
	x, local := v.Machine().Sessions().Get(id), false
	if x == nil {
		own, ok := v.Local().Get(id)
		if !ok {
			return sessionRow{}, false
		}
		x, local = &own, true
	}
	return sessionRow{
		x.ID.String(), x.Timeout.String(), state.ServerID(x.Owner), v.Tree().EphemeralCount(x.ID), local,
	}, true
}

// sessionDetail is a session with what the server knows that has its connection.
type sessionDetail struct {
	sessionRow
	Paths      []string        `json:"paths"` // of its ephemerals, as far as the client may see them
	Connection *connectionBody `json:"connection,omitempty"`
	More       bool            `json:"more"` // than are listed
}

// connectionBody is a client's connection to the ZooKeeper port.
type connectionBody struct {
	Address     string      `json:"address,omitempty"`
	Identities  []aclID     `json:"identities"` // without hashes
	Established string      `json:"established"`
	LastHeard   string      `json:"last_heard,omitempty"` // when it was last answered
	Outstanding int         `json:"outstanding"`
	Watches     []watchBody `json:"watches"`
}

type aclID struct {
	Scheme string `json:"scheme"`
	ID     string `json:"id"`
}

// watchBody is what one session watches on one path.
type watchBody struct {
	Path    string   `json:"path,omitempty"`
	Session string   `json:"session,omitempty"`
	Kinds   []string `json:"kinds"`
}

// get shows a session.
func (h *sessions) get(q *rest.Request) error {
	id, ok := rest.ParseSessionID(q.Vars["id"])
	if !ok {
		return rest.BadRequest("id", "%q is not the id of a session, such as 0x1001", q.Vars["id"])
	}
	all := q.IsAdministrator()
	var d sessionDetail
	q.View(func(v *server.View) {
		d.Paths = []string{}
		if d.sessionRow, ok = rowOf(v, id); !ok {
			return
		}
		paths := v.Tree().Ephemerals(id, "")
		slices.Sort(paths)
		d.More = len(paths) > maxShown
		for _, path := range paths[:min(maxShown, len(paths))] {
			if all || v.Tree().Visible(path, q.IDs) {
				d.Paths = append(d.Paths, path)
			}
		}
	})
	if !ok {
		return &rest.Problem{Status: http.StatusNotFound, Title: "no such session", Param: "id",
			Detail: "id: there is no session " + id.String() + " (any more)", Hint: "GET /v1/sessions lists them"}
	}
	h.connect(q, id, &d, all)
	return q.Answer(http.StatusOK, d)
}

// connect adds the session's connection if it is this server's: all of it or, of the client's address and identities,
// the asker's own, and the watches on paths that it may know of.
func (h *sessions) connect(q *rest.Request, id znode.SessionID, d *sessionDetail, all bool) {
	conn := h.server.Connection(id)
	if conn == nil || h.port == nil {
		return
	}
	for _, c := range h.port.Connections() {
		if c.Session != id {
			continue
		}
		body := &connectionBody{Established: c.Established.UTC().Format(time.RFC3339Nano),
			Outstanding: c.Outstanding, Identities: []aclID{}, Watches: []watchBody{}}
		if !c.LastAnswer.IsZero() {
			body.LastHeard = c.LastAnswer.UTC().Format(time.RFC3339Nano)
		}
		if at, err := netip.ParseAddrPort(c.Remote); all || err == nil && at.Addr().Unmap().String() == q.Address {
			body.Address = c.Remote
		}
		for _, i := range conn.Identities() {
			if all || slices.Contains(q.IDs, i) {
				body.Identities = append(body.Identities, aclID{i.Scheme, znode.WithoutHash(i)})
			}
		}
		held, more := watches(q).Of(conn.Watcher(), maxShown)
		d.More = d.More || more
		for _, w := range held {
			if !all && !tellable(q, w.Path) {
				continue
			}
			body.Watches = append(body.Watches, watchBody{Path: w.Path, Kinds: kindsOf(w.Modes)})
		}
		slices.SortFunc(body.Watches, func(a, b watchBody) int {
			if a.Path < b.Path {
				return -1
			}
			return 1
		})
		d.Connection = body
	}
}

func kindsOf(modes []watch.Mode) (kinds []string) {
	for _, m := range modes {
		kinds = append(kinds, m.String())
	}
	return kinds
}

// watchersBody is who watches a path at this server.
type watchersBody struct {
	Path     string      `json:"path"`
	Watchers []watchBody `json:"watchers"`
	More     bool        `json:"more"`
}

// listWatchers lists the sessions that watch a path, by connections to this server.
func listWatchers(q *rest.Request) error {
	path, err := q.ZnodePath()
	if err != nil {
		return err
	}
	if !tellable(q, path) && !q.IsAdministrator() {
		return rest.Fail(znode.ErrNoAuth, path)
	}
	body := watchersBody{Path: path, Watchers: []watchBody{}}
	held, more := watches(q).On(path, maxShown)
	body.More = more
	for _, w := range held {
		body.Watchers = append(body.Watchers,
			watchBody{Session: server.WatcherSession(w.Watcher).String(), Kinds: kindsOf(w.Modes)})
	}
	return q.Answer(http.StatusOK, body)
}
