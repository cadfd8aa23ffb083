package coordination

import (
	"cmp"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/zk-lite/zk-lite/api/body"
	"github.com/zk-lite/zk-lite/api/rest"
	"github.com/zk-lite/zk-lite/internal/curator"
	"github.com/zk-lite/zk-lite/server"
	"github.com/zk-lite/zk-lite/znode"
)

const (
	maxPlaces      = 1000      // in one answer
	maxFirst       = 20        // participants of each
	maxPlaceBytes  = 1 << 20   // of an answer's places, about
	maxDeadlocks   = 100       // in one answer
	maxEphemerals  = 100_000   // that one request looks at, about
	maxForItems    = 1_000_000 // znodes whose names it looks at for items of queues, about
	maxItems       = 100_000   // of queues that it keeps
	maxShownData   = 128       // bytes of a participant's data
	maxDecodedData = 4096      // bytes of an item's data that are searched for its first item
	chunk          = 256       // ephemerals that are looked at while writes wait
)

var kinds = []string{
	curator.LockKind, curator.ReadWriteKind, curator.SemaphoreKind, curator.ElectionKind, curator.QueueKind,
	curator.GroupKind,
}

// overview finds the places where recipes are in use, a part at a time: all other requests wait meanwhile. It finds
// locks by the sessions' ephemerals, however large the tree is.
type overview struct {
	q     *rest.Request
	below string // with a slash at its end
	begun time.Time
	dirs  map[string]*directory
	more  bool
}

// directory is a znode with what its children tell.
type directory struct {
	visible    bool
	ephemerals map[string]znode.SessionID // 0: the client may not read it
	items      []string
}

// listRecipes shows the places where recipes are in use, those with the most waiters first, and deadlocks.
func listRecipes(q *rest.Request) error {
	below, wanted := znode.RootPath, kinds
	if q.Query.Has("below") {
		below = q.Query.Text("below")
	}
	if err := rest.CheckPath("below", below); err != nil {
		return err
	}
	if q.Query.Has("kind") {
		wanted = strings.Split(q.Query.Text("kind"), ",")
	}
	for _, kind := range wanted {
		if !slices.Contains(kinds, kind) {
			return rest.BadRequest("kind", "%q is none of %s", kind, strings.Join(kinds, ", "))
		}
	}
	contended, err := q.Query.Flag("contended")
	if err != nil {
		return err
	}
	limit, err := q.Query.Integer("limit", maxPlaces/10, 1, maxPlaces)
	if err != nil {
		return err
	}
	leave, err := q.EnterSearch()
	if err != nil {
		return err
	}
	defer leave()
	o := overview{q: q, below: strings.TrimSuffix(below, "/") + "/", begun: time.Now(), dirs: map[string]*directory{}}
	o.findEphemerals()
	if !contended && slices.Contains(wanted, curator.QueueKind) {
		o.findItems()
	}
	places := o.places()
	answer := body.Recipes{Places: []body.Place{}, Deadlocks: o.deadlocks(places), More: o.more}
	size := 0
	for i := range places {
		if p := &places[i]; !slices.Contains(wanted, p.Kind) || contended && p.Waiting() == 0 {
			continue
		}
		if len(answer.Places) == limit || size > maxPlaceBytes {
			answer.More = true
			break
		}
		if shown := o.show(&places[i]); len(shown.First) > 0 {
			answer.Places = append(answer.Places, shown)
			size += sizeOf(&shown)
		}
	}
	return q.Answer(http.StatusOK, answer)
}

// findEphemerals looks at the ephemerals of all sessions.
func (o *overview) findEphemerals() {
	var owners []znode.SessionID
	o.q.View(func(v *server.View) {
		v.Tree().EphemeralOwners(func(id znode.SessionID, _ int) { owners = append(owners, id) })
	})
	slices.SortFunc(owners, func(a, b znode.SessionID) int { return cmp.Compare(uint64(a), uint64(b)) })
	left := maxEphemerals
	for _, owner := range owners {
		if left <= 0 || o.q.Context.Err() != nil {
			o.more = true
			return
		}
		var paths []string
		o.q.View(func(v *server.View) { paths = v.Tree().Ephemerals(owner, o.below) })
		left -= len(paths)
		for some := range slices.Chunk(paths, chunk) {
			o.q.View(func(v *server.View) {
				for _, path := range some {
					o.add(v.Tree(), path, owner)
				}
			})
			o.begun = rest.Pause(o.q.Context, o.begun)
		}
	}
}

// add adds an ephemeral. That a znode has a child may be known to who may list its children; that another than a
// recipe's is ephemeral, to who may read it.
func (o *overview) add(tree *znode.Tree, path string, owner znode.SessionID) {
	d, name := o.directory(tree, znode.Parent(path)), znode.Base(path)
	if !d.visible {
		return
	}
	switch st, code := tree.Exists(path, o.q.IDs); {
	case code == znode.OK && st.EphemeralOwner == owner:
		d.ephemerals[name] = owner
	case code == znode.ErrNoAuth && curator.IsQueued(name):
		d.ephemerals[name] = 0
	}
}

func (o *overview) directory(tree *znode.Tree, path string) *directory {
	d := o.dirs[path]
	if d == nil {
		d = &directory{tree.Visible(path, o.q.IDs), map[string]znode.SessionID{}, nil}
		o.dirs[path] = d
	}
	return d
}

// findItems looks at the names of all znodes for items of queues, which belong to no session.
func (o *overview) findItems() {
	looked, kept := 0, 0
	for part := range znode.Parts {
		if looked > maxForItems || kept > maxItems || o.q.Context.Err() != nil {
			o.more = true
			return
		}
		o.q.View(func(v *server.View) {
			v.Tree().Visit(part, func(path string, _ []byte, st *znode.Stat) {
				looked++
				name := znode.Base(path)
				if st.EphemeralOwner != 0 || !strings.HasPrefix(path, o.below) || !curator.IsItem(name) {
					return
				}
				if d := o.directory(v.Tree(), znode.Parent(path)); d.visible {
					d.items = append(d.items, name)
					kept++
				}
			})
		})
		o.begun = rest.Pause(o.q.Context, o.begun)
	}
}

// places are those that were found, with the most waiters first.
func (o *overview) places() (all []curator.Place) {
	for path, d := range o.dirs {
		all = append(all, curator.Places(path, d.ephemerals, d.items)...)
	}
	slices.SortFunc(all, func(a, b curator.Place) int {
		return cmp.Or(cmp.Compare(b.Waiting(), a.Waiting()), cmp.Compare(a.Path, b.Path), cmp.Compare(a.Kind, b.Kind))
	})
	return all
}

// deadlocks finds them. The znodes were not read all at once: in a circle, all its znodes are there at one moment.
func (o *overview) deadlocks(places []curator.Place) [][]string {
	all := [][]string{}
	for _, circle := range curator.Deadlocks(places) {
		if len(all) == maxDeadlocks {
			o.more = true
			break
		}
		there := true
		var sessions []string
		o.q.View(func(v *server.View) {
			for _, e := range circle {
				sessions = append(sessions, e.Session.String())
				for _, path := range []string{e.Waiter, e.Holder} {
					_, code := v.Tree().Exists(path, o.q.IDs)
					there = there && code == znode.OK
				}
			}
		})
		if there {
			all = append(all, sessions)
		}
	}
	return all
}

// show shows a place as it is at one moment, but for those who have come to its end since.
func (o *overview) show(p *curator.Place) (shown body.Place) {
	o.q.View(func(v *server.View) {
		p.Confirm(maxFirst, func(u *curator.User) bool {
			_, code := v.Tree().Exists(znode.Join(p.Path, u.Name), o.q.IDs)
			return code == znode.OK || code == znode.ErrNoAuth && v.Tree().Visible(p.Path, o.q.IDs)
		})
		shown = body.Place{
			Path: p.Path, Kind: p.Kind, Participants: len(p.Users), Waiting: p.Waiting(), More: len(p.Users) > maxFirst,
		}
		delayed := false
		if d, _ := delayIn(v, p.Path); d != nil && len(p.Users) > 0 {
			delayed = d.Holder != p.Users[0].Name && (p.Kind == curator.LockKind || p.Kind == curator.ElectionKind)
		}
		for i := range p.Users[:min(len(p.Users), maxFirst)] {
			shown.First = append(shown.First, o.participant(v.Tree(), p, i))
		}
		if delayed {
			shown.First[0].State = stateWaits
			shown.Waiting++
		}
	})
	return shown
}

// What a participant does.
const stateWaits = "waits"

// states are those of participants that do not wait.
var states = map[string]string{
	curator.ElectionKind: "leads", curator.QueueKind: "item", curator.GroupKind: "member", curator.LockKind: "holds",
	curator.ReadWriteKind: "holds", curator.SemaphoreKind: "holds",
}

func (o *overview) participant(tree *znode.Tree, p *curator.Place, i int) body.Participant {
	u := p.Users[i]
	b := body.Participant{Path: znode.Join(p.Path, u.Name), Read: u.Read, State: states[p.Kind]}
	if u.Waits {
		b.State = stateWaits
	}
	for _, id := range p.WaitsFor(i) {
		b.WaitsFor = append(b.WaitsFor, id.String())
	}
	data, st, code := tree.Get(b.Path, o.q.IDs)
	if code != znode.OK {
		return b
	}
	if st.EphemeralOwner != 0 {
		b.Session = st.EphemeralOwner.String()
	}
	since := time.UnixMilli(st.Ctime).UTC()
	b.Since, b.Token = &since, fencingToken(st.Czxid)
	if p.Kind == curator.QueueKind && len(data) <= maxDecodedData {
		if items := curator.DecodeItems(data); len(items) > 0 {
			data = items[0]
		}
	}
	b.Data = beginning(data)
	return b
}

// beginning is the beginning of data as text; empty: it is none.
func beginning(data []byte) string {
	if len(data) > maxShownData {
		data = data[:maxShownData]
		for n := 1; n < utf8.UTFMax && !utf8.Valid(data); n++ { // cut within a character
			data = data[:len(data)-1]
		}
	}
	if !utf8.Valid(data) {
		return ""
	}
	return string(data)
}

// sizeOf is about how many bytes a place takes in an answer.
func sizeOf(p *body.Place) int {
	size := len(p.Path)
	for _, x := range p.First {
		size += 100 + len(x.Path) + len(x.Data) + 20*len(x.WaitsFor)
	}
	return size
}
