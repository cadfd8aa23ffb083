package data

import (
	"fmt"
	"net/http"
	"time"

	"github.com/zk-lite/zk-lite/api/body"
	"github.com/zk-lite/zk-lite/api/rest"
	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/server"
	"github.com/zk-lite/zk-lite/server/changes"
	"github.com/zk-lite/zk-lite/znode"
)

const (
	defaultRevisions = 10
	maxRevisions     = 1000
	// maxRevisionBytes bounds the data in one answer; the page then ends early.
	maxRevisionBytes = 1 << 20
)

// history is what a znode is and was, for a client.
type history struct {
	q       *rest.Request
	path    string
	code    znode.Error // of reading the znode now
	data    []byte
	present znode.Stat
	past    changes.Past
}

// getPast reads values that a znode had.
func getPast(q *rest.Request, path string) error {
	const what = "revisions or at"
	for _, other := range [...]string{
		"raw", "children", "stat", "data", "match", "type", "offset", "acl", "about", "tree",
	} {
		if q.Query.Has(other) {
			return rest.BadRequest(other, "it cannot be combined with %s", what)
		}
	}
	at, err := q.Query.Zxid("at")
	if err != nil {
		return err
	}
	listed, err := q.Query.Flag("revisions")
	h := &history{q: q, path: path}
	switch {
	case err != nil:
		return err
	case listed && q.Query.Has("at"):
		return rest.BadRequest("at", "it cannot be combined with revisions")
	case listed:
		return h.list()
	case !q.Query.Has("at"):
		return rest.BadRequest("revisions", "to read the znode, leave it out")
	}
	if err := q.Query.Only("revisions", "limit", "after"); err != nil {
		return err
	}
	return h.at(at)
}

// back visits the changes that p describes, newest first, until visit returns false. The client must be allowed to READ
// the znode, if there is one, whenever the state is looked at.
func (h *history) back(p changes.Past, visit func(c *changes.Change) bool) error {
	leave, err := h.q.EnterSearch()
	if err != nil {
		return err
	}
	defer leave()
	h.past = p
	done := inParts(h.q, func(v *server.View) bool {
		h.data, h.present, h.code = v.Tree().Get(h.path, h.q.IDs)
		return h.code != znode.ErrNoAuth && v.Changes().Back(&h.past, visit)
	})
	switch {
	case h.code == znode.ErrNoAuth:
		return rest.Fail(h.code, h.path)
	case !done:
		return rest.Unavailable("the request timed out while it looked at the changes")
	}
	return nil
}

// inParts calls look until that reports that there is no more, or the request's time ends, and lets others have the
// processor in between.
func inParts(q *rest.Request, look func(v *server.View) (more bool)) (done bool) {
	more := true
	for begun := time.Now(); more && q.Context.Err() == nil; begun = rest.Pause(q.Context, begun) {
		q.View(func(v *server.View) { more = look(v) })
	}
	return !more
}

func (h *history) list() error {
	limit, err := h.q.Query.Integer("limit", defaultRevisions, 1, maxRevisions)
	if err != nil {
		return err
	}
	after, err := h.q.Query.Zxid("after")
	if err != nil {
		return err
	}
	found := body.Revisions{Path: h.path, Revisions: []body.Revision{}}
	bytes, seen := 0, znode.Zxid(0)
	err = h.back(changes.Past{Path: h.path}, func(c *changes.Change) bool {
		amidst := c.At.Zxid == seen // a transaction, whose last value alone was to be seen
		seen = c.At.Zxid
		if amidst || after != 0 && seen >= after || !h.readable(c) {
			return true
		}
		if n := len(found.Revisions); n == limit || bytes > maxRevisionBytes {
			found.Next = found.Revisions[n-1].Zxid
			return false
		}
		found.Revisions = append(found.Revisions, h.revision(c))
		bytes += len(c.Edit.Data)
		return true
	})
	switch {
	case err != nil:
		return err
	case h.code != znode.OK && len(found.Revisions) == 0:
		return rest.Fail(h.code, h.path)
	}
	found.Since = h.past.Floor.String()
	return h.q.Answer(http.StatusOK, found)
}

// readable reports whether the client could READ the znode after a change.
func (h *history) readable(c *changes.Change) bool {
	return znode.Permits(c.Edit.ACL, znode.PermRead, h.q.IDs)
}

// revision is the value that a change has left. If that is still the present one, it was not purged: the tree has it.
func (h *history) revision(c *changes.Change) body.Revision {
	e := &c.Edit
	r := body.Revision{
		Origin: originOf(c, h.q.IsAdministrator()), Event: changeName(c.Type), Type: typeName(e.Mode),
		Version: new(int32(e.Stat.Version)),
	}
	if !c.Purged {
		fill(&r, e.Data)
	} else if r.Purged = h.code != znode.OK || !c.Stands(&h.present); !r.Purged {
		fill(&r, h.data)
	}
	return r
}

func fill(r *body.Revision, data []byte) {
	c := rest.ContentOf(data)
	r.Data, r.Encoding = c.Data, c.Encoding
}

// at answers with the znode as it was after a transaction: as the newest change up to that has left it or, if that is
// no longer known, as the oldest change since then has found it.
func (h *history) at(zxid znode.Zxid) error {
	if now, err := h.q.WaitForZxid(zxid); err != nil {
		return err
	} else if now < zxid {
		return rest.BadRequest("at", "%v is not yet; this ensemble is at %v", zxid, now)
	}
	var own, next *changes.Change
	err := h.back(changes.Past{Path: h.path}, func(c *changes.Change) bool {
		kept := *c
		if c.At.Zxid <= zxid {
			own = &kept
			return false
		}
		next = &kept
		return true
	})
	if err != nil {
		return err
	}
	answer := body.ZnodeAt{Path: h.path}
	switch {
	case own == nil && next == nil && h.code == znode.OK && h.present.Mzxid <= zxid:
		answer.Version = new(int32(h.present.Version))
		fill(&answer.Revision, h.data)
	case own == nil && zxid < h.past.Floor:
		return tooOld("at", zxid, h.past.Floor)
	case own == nil && next == nil:
		return rest.Fail(znode.ErrNoNode, h.path)
	case own != nil && !h.readable(own), next != nil && !h.readable(next):
		return rest.Fail(znode.ErrNoAuth, h.path)
	case own != nil && own.Type == znode.EventDeleted, own == nil && next.Type == znode.EventCreated:
		p := rest.Explain(znode.ErrNoNode, h.path, false)
		p.Code, p.Path = znode.ErrNoNode, h.path
		p.Detail, p.Hint = fmt.Sprintf("%s did not exist at %v", h.path, zxid), "GET ?revisions shows when it did"
		return p
	case own != nil:
		answer.Revision = h.revision(own)
	case !next.Purged:
		answer.Type = typeName(next.Edit.Mode)
		fill(&answer.Revision, valueBefore(next))
	default:
		answer.Purged = true
	}
	if answer.Purged {
		return purged(h.path)
	}
	return h.q.Answer(http.StatusOK, answer)
}

// valueBefore is the value that a change has found; it is none that has created the znode.
func valueBefore(c *changes.Change) []byte {
	if c.Type == znode.EventDeleted {
		return c.Edit.Data
	}
	return c.Edit.Before
}

// tooOld is the problem of a zxid that is before what this server knows.
func tooOld(param string, zxid, floor znode.Zxid) error {
	return &rest.Problem{
		Status: http.StatusGone, Title: "too old", Param: param,
		Detail: fmt.Sprintf("%s: %v is too long ago; this server knows what has changed since %v", param, zxid, floor),
		Hint:   "another server may know more; the setting limits.changesBytes says how much is kept",
	}
}

func purged(path string) error {
	return &rest.Problem{Status: http.StatusGone, Title: "purged", Path: path,
		Detail: path + ": the value of that time was purged", Hint: "only a backup may have it"}
}

// purge has all servers forget the values that a znode had.
func purge(q *rest.Request) error {
	path, err := q.ZnodePath()
	if err != nil {
		return err
	}
	c := state.Command{Op: state.OpPurge, Path: path}
	if c.Below, err = q.Query.Flag("recursive"); err != nil {
		return err
	}
	q.View(func(v *server.View) { err = c.CheckLevel(v.Machine().Level()) })
	if err != nil {
		return err
	}
	r, err := q.Do(&c)
	switch {
	case err != nil:
		return err
	case r.Code != znode.OK:
		return rest.Fail(r.Code, path)
	}
	q.Begin(http.StatusNoContent)
	return nil
}
