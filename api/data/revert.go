package data

import (
	"bytes"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/zk-lite/zk-lite/api/body"
	"github.com/zk-lite/zk-lite/api/rest"
	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/server"
	"github.com/zk-lite/zk-lite/server/changes"
	"github.com/zk-lite/zk-lite/znode"
)

// revert gives a znode, with recursive all below it, too, its value of a moment again, in one transaction that fails if
// any of them has changed meanwhile.
func revert(q *rest.Request) error {
	path, err := q.ZnodePath()
	if err != nil {
		return err
	}
	p := &reverting{history: history{q: q, path: path}, spans: map[string]*span{}}
	p.body = body.Revert{Path: path, Changes: []body.Reverted{}, Left: []body.Left{}}
	if err := p.read(); err != nil {
		return err
	}
	if err := p.plan(); err != nil {
		return err
	}
	c := state.Command{Op: state.OpMulti, Ops: p.ops}
	switch {
	case len(p.ops) > maxOps || c.MaxSize() > state.MaxCommand:
		return tooMuch(path)
	case p.body.Plan || len(p.body.Changes) == 0:
		p.body.Zxid = p.past.From.String()
		return q.Answer(http.StatusOK, p.body)
	}
	r, err := q.Do(&c)
	if err != nil {
		return err
	}
	switch i := firstFailed(r.Multi); {
	case i >= 0:
		return revertFailure(q, &p.ops[i], r.Multi[i].Code)
	case r.Code != znode.OK:
		return rest.Fail(r.Code, path)
	}
	p.body.Zxid = r.Zxid.String()
	return q.Answer(http.StatusOK, p.body)
}

// reverting is a revert that is being planned.
type reverting struct {
	history
	to, seen znode.Zxid
	spans    map[string]*span // by path, of all that has changed since to
	late     []string         // paths of changes after seen
	ops      []state.Command
	stay     map[string]bool // znodes that cannot be deleted, since one below them is left
	lost     map[string]bool // znodes that are gone, and left
	body     body.Revert
}

// span is how a znode has changed: by its oldest and newest change since then.
type span struct{ oldest, newest changes.Change }

func (s *span) exists() bool  { return s.newest.Type != znode.EventDeleted }
func (s *span) existed() bool { return s.oldest.Type != znode.EventCreated }

func (s *span) ephemeral() bool {
	return s.existed() && s.oldest.Edit.Mode == znode.Ephemeral || s.exists() && s.newest.Edit.Mode == znode.Ephemeral
}

// read finds what has changed.
func (p *reverting) read() (err error) {
	query := p.q.Query
	if !query.Has("to") {
		return rest.BadRequest("to", "missing; it is the zxid of the moment, such as 0x100000002")
	}
	if p.to, err = query.Zxid("to"); err != nil {
		return err
	}
	if p.seen, err = query.Zxid("seen"); err != nil {
		return err
	}
	if p.body.Plan, err = query.Flag("plan"); err != nil {
		return err
	}
	past := changes.Past{Path: p.path, To: p.to}
	if past.Below, err = query.Flag("recursive"); err != nil {
		return err
	}
	if now, err := p.q.WaitForZxid(max(p.to, p.seen)); err != nil {
		return err
	} else if now < p.to {
		return rest.BadRequest("to", "%v is not yet; this ensemble is at %v", p.to, now)
	}
	p.body.To = p.to.String()
	err = p.back(past, p.note)
	switch {
	case err != nil:
		return err
	case len(p.spans) > maxOps:
		return tooMuch(p.path)
	case p.to < p.past.Floor:
		return tooOld("to", p.to, p.past.Floor)
	case len(p.spans) == 0 && p.code != znode.OK:
		return rest.Fail(p.code, p.path)
	}
	return nil
}

// note takes a change; they come newest first.
func (p *reverting) note(c *changes.Change) bool {
	if p.path == znode.RootPath && (c.Path == znode.SystemPath || strings.HasPrefix(c.Path, znode.SystemPath+"/")) {
		return true // the servers keep it
	}
	if p.seen != 0 && c.At.Zxid > p.seen {
		p.late = append(p.late, c.Path)
	}
	s := p.spans[c.Path]
	if s == nil {
		s = &span{newest: *c}
		p.spans[c.Path] = s
	}
	s.oldest = *c
	return len(p.spans) <= maxOps
}

// plan decides what to do: creations first, parents before their children, then changes, then deletions.
func (p *reverting) plan() error {
	paths := slices.Sorted(maps.Keys(p.spans))
	if err := p.check(paths); err != nil {
		return err
	}
	if len(p.late) > 0 {
		return changedMeanwhile(p.late)
	}
	p.stay, p.lost = map[string]bool{}, map[string]bool{}
	var deleted []string
	for _, path := range paths {
		s := p.spans[path]
		switch {
		case s.ephemeral() && (s.exists() || s.existed()):
			p.leave(path, "ephemeral")
		case s.existed() && !s.exists() && s.oldest.Edit.Mode == znode.PersistentTTL:
			p.leave(path, "gone; and it had a time to live")
		case s.existed() && !s.exists() && p.lost[znode.Parent(path)]:
			p.leave(path, "gone; and the znode above it is left so")
		case !s.existed() && s.exists():
			deleted = append(deleted, path)
		case s.existed():
			if err := p.restore(path, s); err != nil {
				return err
			}
		}
	}
	for _, path := range slices.Backward(deleted) {
		if p.stay[path] {
			p.leave(path, "it has ephemeral znodes below it")
			continue
		}
		p.add("delete", &state.Command{Op: state.OpDelete, Path: path})
	}
	return nil
}

// check reports a znode whose change since then, or present value, the client may not READ.
func (p *reverting) check(paths []string) (err error) {
	p.q.View(func(v *server.View) {
		for _, path := range paths {
			_, code := v.Tree().Exists(path, p.q.IDs)
			if code == znode.ErrNoAuth || !p.readable(&p.spans[path].oldest) {
				err = rest.Fail(znode.ErrNoAuth, p.path) // others' names are not told
				return
			}
		}
	})
	return err
}

// restore gives a znode its value again. If it has that, it must keep it.
func (p *reverting) restore(path string, s *span) error {
	if s.oldest.Purged {
		return purged(path)
	}
	e := &s.oldest.Edit
	data := valueBefore(&s.oldest)
	switch {
	case !s.exists():
		c := &state.Command{Op: state.OpCreate, Path: path, Data: data, ACL: e.ACL, Mode: e.Mode}
		if e.Mode == znode.Container {
			c.Kind = znode.CreateContainer
		}
		p.add("create", c)
	case s.newest.Purged || !bytes.Equal(data, s.newest.Edit.Data):
		p.add("set", &state.Command{Op: state.OpSetData, Path: path, Data: data})
	default:
		p.add("", &state.Command{Op: state.OpCheck, Path: path})
	}
	return nil
}

// add adds an operation on a znode which must be as it was seen.
func (p *reverting) add(action string, c *state.Command) {
	if c.Op != state.OpCreate {
		c.Version, c.Mzxid = znode.AnyVersion, p.spans[c.Path].newest.Edit.Stat.Mzxid
	}
	p.ops = append(p.ops, *c)
	if action != "" {
		p.body.Changes = append(p.body.Changes, body.Reverted{Action: action, Path: c.Path})
	}
}

func (p *reverting) leave(path, reason string) {
	p.body.Left = append(p.body.Left, body.Left{Path: path, Reason: reason})
	p.lost[path] = !p.spans[path].exists()
	if !p.lost[path] {
		for _, above := range rest.Ancestors(path) {
			p.stay[above] = true
		}
	}
}

func tooMuch(path string) error {
	return &rest.Problem{Status: http.StatusConflict, Code: znode.ErrBadArguments, Path: path,
		Title: "too much for one transaction",
		Detail: fmt.Sprintf("%s: more than %d znodes have changed since, or more than %d MiB", path, maxOps,
			state.MaxCommand>>20),
		Hint: "revert the parts of it one after the other, or restore a backup"}
}

// changedMeanwhile is the problem of a plan that is no longer the one that was seen.
func changedMeanwhile(paths []string) error {
	const shown = 10
	slices.Sort(paths)
	paths = slices.Compact(paths)
	text := strings.Join(paths[:min(len(paths), shown)], ", ")
	if more := len(paths) - shown; more > 0 {
		text += fmt.Sprintf(" and %d others", more)
	}
	return &rest.Problem{Status: http.StatusPreconditionFailed, Code: znode.ErrBadVersion, Path: paths[0],
		Detail: text + ": changed meanwhile; nothing was reverted", Hint: "ask for the plan again"}
}

func revertFailure(q *rest.Request, c *state.Command, code znode.Error) error {
	switch {
	case code == znode.ErrBadVersion, c.Op != state.OpCreate && code == znode.ErrNoNode,
		c.Op == state.OpCreate && code == znode.ErrNodeExists, code == znode.ErrNotEmpty:
		return changedMeanwhile([]string{c.Path})
	}
	err := rest.Fail(code, c.Path)
	switch {
	case c.Op == state.OpCreate:
		err = rest.CreateFailure(code, c.Path)
	case c.Op == state.OpDelete && code == znode.ErrNoAuth:
		err = rest.Fail(code, znode.Parent(c.Path))
	}
	p := rest.ProblemOf(err, q.Anonymous)
	p.Detail += "; nothing was reverted"
	return p
}
