package admin

import (
	"cmp"
	"net/http"
	"net/netip"
	"slices"

	"github.com/zk-lite/zk-lite/api/body"
	"github.com/zk-lite/zk-lite/api/rest"
	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/server"
	"github.com/zk-lite/zk-lite/server/insight"
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

// maxAsked bounds the sessions that can be asked for in one request.
const maxAsked = 100

// list lists the sessions by their ids, or those that are asked for: those of all servers, and the local ones of this
// one.
func (h *sessions) list(q *rest.Request) error {
	page := body.Sessions{Sessions: []body.SessionRow{}}
	ids, err := askedSessions(q)
	if err == nil && ids == nil {
		ids, page.Next, err = nextSessions(q)
	}
	if err != nil {
		return err
	}
	q.View(func(v *server.View) {
		page.Total = v.Machine().Sessions().Len() + v.Local().Len()
		for _, id := range ids {
			if row, ok := rowOf(v, id); ok {
				page.Sessions = append(page.Sessions, body.SessionRow{Session: row})
			}
		}
	})
	all := q.IsAdministrator()
	for i := range page.Sessions {
		row := &page.Sessions[i]
		id, _ := rest.ParseSessionID(row.ID)
		if c := h.server.Connection(id); c != nil {
			row.Who, row.LastHeard = whoOf(tellableOf(q, c.Who(), all)), known(c.LastHeard())
		}
	}
	return q.Answer(http.StatusOK, page)
}

// sessionID reads the id of a session.
func sessionID(param, text string) (znode.SessionID, error) {
	id, ok := rest.ParseSessionID(text)
	if !ok {
		return 0, rest.BadRequest(param, "%q is not the id of a session, such as 0x1001", text)
	}
	return id, nil
}

// askedSessions are those of the parameter id; nil: it is not given.
func askedSessions(q *rest.Request) (ids []znode.SessionID, err error) {
	texts := q.Query.Values["id"]
	if len(texts) > maxAsked {
		return nil, rest.BadRequest("id", "given %d times; give it %d times at most", len(texts), maxAsked)
	}
	for _, text := range texts {
		id, err := sessionID("id", text)
		if err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, nil
}

// nextSessions are those of the page that is asked for, and next is where the following one begins; empty: there is
// none.
func nextSessions(q *rest.Request) (ids []znode.SessionID, next string, err error) {
	limit, err := q.Query.Integer("limit", maxShown/10, 1, maxShown)
	if err != nil {
		return nil, "", err
	}
	var after znode.SessionID
	if q.Query.Has("after") {
		if after, err = sessionID("after", q.Query.Text("after")); err != nil {
			return nil, "", err
		}
	}
	q.View(func(v *server.View) {
		table := v.Machine().Sessions()
		local := v.Local().All()
		ids = make([]znode.SessionID, 0, table.Len()+len(local))
		add := func(x *session.Session) {
			if uint64(x.ID) > uint64(after) {
				ids = append(ids, x.ID)
			}
		}
		table.Each(add)
		for i := range local {
			add(&local[i])
		}
	})
	// Not while others wait.
	slices.SortFunc(ids, func(a, b znode.SessionID) int { return cmp.Compare(uint64(a), uint64(b)) })
	if len(ids) > limit {
		ids = ids[:limit]
		next = ids[limit-1].String()
	}
	return ids, next, nil
}

// tellableOf is what the asker may know of a client: an administrator all, others the address if it is their own, and
// the identities that they have, too.
func tellableOf(q *rest.Request, c insight.Client, all bool) insight.Client {
	if all {
		return c
	}
	if at, err := netip.ParseAddrPort(c.Address); err != nil || at.Addr().Unmap().String() != q.Address {
		c.Address = ""
	}
	others := func(i znode.ID) bool { return !slices.Contains(q.IDs, i) }
	c.Identities = slices.DeleteFunc(slices.Clone(c.Identities), others)
	return c
}

// whoOf is a client without hashes.
func whoOf(c insight.Client) body.Who {
	who := body.Who{Address: c.Address}
	for _, i := range c.Identities {
		who.Identities = append(who.Identities, body.Identity{Scheme: i.Scheme, ID: znode.WithoutHash(i)})
	}
	return who
}

// rowOf returns the row of a session; false if there is none with this id.
func rowOf(v *server.View, id znode.SessionID) (body.Session, bool) {
	x, local := v.Machine().Sessions().Get(id), false
	if x == nil {
		own, ok := v.Local().Get(id)
		if !ok {
			return body.Session{}, false
		}
		x, local = &own, true
	}
	return body.Session{
		ID: x.ID.String(), Timeout: x.Timeout.String(), Server: number(state.ServerID(x.Owner)),
		Ephemerals: v.Tree().EphemeralCount(x.ID), Local: local,
	}, true
}

// get shows a session.
func (h *sessions) get(q *rest.Request) error {
	id, err := sessionID("id", q.Vars["id"])
	if err != nil {
		return err
	}
	all, ok := q.IsAdministrator(), false
	d := body.SessionDetail{Paths: []string{}}
	q.View(func(v *server.View) {
		if d.Session, ok = rowOf(v, id); !ok {
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

// connect adds the session's connection if it is this server's: of the client what the asker may know, and the watches
// on paths that it may know of.
func (h *sessions) connect(q *rest.Request, id znode.SessionID, d *body.SessionDetail, all bool) {
	conn := h.server.Connection(id)
	if conn == nil || h.port == nil {
		return
	}
	for _, c := range h.port.Connections() {
		if c.Session != id {
			continue
		}
		who := whoOf(tellableOf(q, conn.Who(), all))
		shown := &body.Connection{
			Address: who.Address, Identities: slices.Concat([]body.Identity{}, who.Identities),
			Established: c.Established.UTC(), LastHeard: known(conn.LastHeard()), Outstanding: c.Outstanding,
			Watches: []body.Watch{},
		}
		held, more := watches(q).Of(conn.Watcher(), maxShown)
		d.More = d.More || more
		for _, w := range held {
			if !all && !tellable(q, w.Path) {
				continue
			}
			shown.Watches = append(shown.Watches, body.Watch{Path: w.Path, Kinds: kindsOf(w.Modes)})
		}
		slices.SortFunc(shown.Watches, func(a, b body.Watch) int { return cmp.Compare(a.Path, b.Path) })
		d.Connection = shown
	}
}

func kindsOf(modes []watch.Mode) (kinds []string) {
	for _, m := range modes {
		kinds = append(kinds, m.String())
	}
	return kinds
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
	shown := body.Watchers{Path: path, Watchers: []body.Watch{}}
	held, more := watches(q).On(path, maxShown)
	shown.More = more
	for _, w := range held {
		shown.Watchers = append(shown.Watchers,
			body.Watch{Session: server.WatcherSession(w.Watcher).String(), Kinds: kindsOf(w.Modes)})
	}
	return q.Answer(http.StatusOK, shown)
}
