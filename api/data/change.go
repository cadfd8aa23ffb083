package data

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/zk-lite/zk-lite/api/rest"
	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/server"
	"github.com/zk-lite/zk-lite/znode"
)

// putZnode changes a znode. It is four operations on one URL: create=true, If-None-Match: * and acl select one.
func putZnode(q *rest.Request) error {
	path, err := q.ZnodePath()
	if err != nil {
		return err
	}
	create, err := q.Query.Flag("create")
	if err != nil {
		return err
	}
	absent, err := onlyIfAbsent(q)
	switch {
	case err != nil:
		return err
	case absent:
		return createAbsent(q, path)
	case create:
		return setOrCreate(q, path)
	case q.Query.Has("acl"):
		return setACL(q, path)
	}
	return setData(q, path)
}

// setData sets the data of a znode that exists.
func setData(q *rest.Request, path string) error {
	parents, err := q.Query.Flag("parents")
	if err != nil {
		return err
	}
	if parents {
		return rest.BadRequest("parents", "it can be used with create=true only")
	}
	c := state.Command{Op: state.OpSetData, Path: path}
	if err := guard(q, &c); err != nil {
		return err
	}
	if c.Data, err = q.Data(); err != nil {
		return err
	}
	r, err := q.Do(&c)
	if err != nil {
		return err
	}
	return changed(q, path, &r)
}

// setOrCreate sets the data, or creates the znode if it is missing. It begins again if others delete or create the
// znode meanwhile.
func setOrCreate(q *rest.Request, path string) error {
	create, parents, err := newZnode(q, path)
	if err != nil {
		return err
	}
	for range rest.MaxTries {
		r, err := q.Do(&state.Command{
			Op: state.OpSetData, Path: path, Data: create.Data, Version: znode.AnyVersion,
		})
		if err != nil {
			return err
		}
		if r.Code != znode.ErrNoNode {
			return changed(q, path, &r)
		}
		if exists, err := createOrFind(q, create, parents); !exists {
			return err
		}
	}
	return rest.TooMany(1, "%s: it is created and deleted too often by others", path)
}

// createOrFind answers with the znode that it creates, or with why it cannot, unless one exists already.
func createOrFind(q *rest.Request, create *state.Command, parents bool) (exists bool, err error) {
	made, err := createMaybeParents(q, create, parents)
	switch {
	case err != nil:
		return false, err
	case made.Code == znode.OK:
		return false, created(q, made.Path, &made.Stat)
	case made.Code != znode.ErrNodeExists:
		return false, rest.CreateFailure(made.Code, create.Path)
	}
	return true, nil
}

// createAbsent creates the znode; one that exists fails the precondition.
func createAbsent(q *rest.Request, path string) error {
	create, parents, err := newZnode(q, path)
	if err != nil {
		return err
	}
	if exists, err := createOrFind(q, create, parents); !exists {
		return err
	}
	p := rest.Explain(znode.ErrNodeExists, path, false)
	p.Status, p.Code, p.Path = http.StatusPreconditionFailed, znode.ErrNodeExists, path
	return p
}

// newZnode reads the znode that a PUT may create, and whether those above it may be created, too.
func newZnode(q *rest.Request, path string) (c *state.Command, parents bool, err error) {
	c = &state.Command{Op: state.OpCreate, Path: path}
	if parents, err = q.Query.Flag("parents"); err != nil {
		return nil, false, err
	}
	if err := guard(q, &state.Command{Path: path}); err != nil {
		return nil, false, err
	}
	if q.Query.Has("version") || len(q.HTTP.Header.Values("If-Match")) > 0 {
		return nil, false, rest.BadRequest("create", "a znode that is to be created has no version yet: leave out "+
			"version= and If-Match")
	}
	if c.Data, err = q.Data(); err != nil {
		return nil, false, err
	}
	c.ACL, err = q.Query.ACL("acl")
	return c, parents, err
}

// createMaybeParents creates a znode, if so asked with those missing above it. That it exists is in the result.
func createMaybeParents(q *rest.Request, c *state.Command, parents bool) (state.OpResult, error) {
	if !parents {
		one := *c
		r, err := q.Do(&one)
		return state.OpResult{Code: r.Code, Path: r.Path, Stat: r.Stat}, err
	}
	r, err := createWithParents(q, c)
	var f rest.Failure
	if errors.As(err, &f) && f.Code == znode.ErrNodeExists && f.Path == c.Path {
		return state.OpResult{Code: f.Code}, nil
	}
	return r, err
}

// changed answers with the outcome of a change of a znode.
func changed(q *rest.Request, path string, r *state.Result) error {
	if r.Code != znode.OK {
		return rest.Fail(r.Code, path)
	}
	setStat(q, &r.Stat)
	return q.Answer(http.StatusOK, znodeBody{Path: path, Stat: rest.StatOf(&r.Stat)})
}

// aclDocument is a znode's ACL with its path and Stat, and what PUT ?acl takes.
type aclDocument struct {
	Path string          `json:"path"`
	ACL  []rest.ACLEntry `json:"acl"`
	Stat *rest.Stat      `json:"stat"`
}

func getACL(q *rest.Request, path string) error {
	if v := q.Query.Text("acl"); v != "" {
		return rest.BadRequest("acl", "%q: to read the ACL it has no value", v)
	}
	var list []znode.ACL
	var st znode.Stat
	var code znode.Error
	q.View(func(v *server.View) { list, st, code = v.Tree().ACLOf(path, q.IDs) })
	if code != znode.OK {
		return rest.Fail(code, path)
	}
	return q.Answer(http.StatusOK, aclDocument{path, rest.ACLBody(list), rest.StatOf(&st)})
}

// setACL sets the ACL that ?acl= gives or, when that is empty, the one of the body.
func setACL(q *rest.Request, path string) error {
	err := refuse(q, "If-Match", "an ETag is about the data; use version= with stat.aversion")
	if err != nil {
		return err
	}
	c := state.Command{Op: state.OpSetACL, Path: path}
	if c.Version, err = q.Query.Version("version"); err != nil {
		return err
	}
	if c.ACL, err = newACL(q); err != nil {
		return err
	}
	r, err := q.Do(&c)
	if err != nil {
		return err
	}
	return changed(q, path, &r)
}

func newACL(q *rest.Request) ([]znode.ACL, error) {
	if text := q.Query.Text("acl"); text != "" {
		if q.HTTP.ContentLength != 0 {
			return nil, rest.BadRequest("acl", "with acl= PUT sets the ACL alone, and ignores the body; "+
				"set the data by a PUT of its own")
		}
		return rest.ParseACL("acl", text)
	}
	var doc aclDocument
	if err := q.Decode(q.Core.Config.MaxBody, &doc); err != nil {
		return nil, err
	}
	if len(doc.ACL) == 0 || len(doc.ACL) > znode.MaxACL {
		return nil, rest.BadACL("acl", "give 1 to %d entries, as ?acl=scheme:id:perms or as the body "+
			`{"acl": [{"scheme", "id", "perms"}]}`, znode.MaxACL)
	}
	var list []znode.ACL
	for _, e := range doc.ACL {
		a, err := rest.MakeACL("acl", e)
		if err != nil {
			return nil, err
		}
		list = append(list, a)
	}
	return list, nil
}

// maxOps is how many operations a transaction has at most: all other requests wait
// while it is applied, which takes about a microsecond each.
const maxOps = state.MaxSubtree

// deleteZnode deletes a znode, with recursive=true all below it, too.
func deleteZnode(q *rest.Request) error {
	path, err := q.ZnodePath()
	if err != nil {
		return err
	}
	switch path {
	case znode.RootPath, znode.SystemPath, znode.QuotaPath, znode.ConfigPath:
		p := rest.BadRequest("path", "%s cannot be deleted: every tree has it", path)
		p.Path = path
		return p
	}
	if err := refuse(q, "If-None-Match", "a delete takes If-Match, or version="); err != nil {
		return err
	}
	recursive, err := q.Query.Flag("recursive")
	if err != nil {
		return err
	}
	c := state.Command{Op: state.OpDelete, Path: path}
	if err := guard(q, &c); err != nil {
		return err
	}
	if recursive {
		return deleteAll(q, &c)
	}
	r, err := q.Do(&c)
	if err != nil {
		return err
	}
	return rest.Deleted(q, r.Code, path)
}

// deleteAll deletes a znode and all below it in one transaction.
func deleteAll(q *rest.Request, c *state.Command) error {
	c.Op = state.OpDeleteAll
	r, err := q.Do(c)
	switch {
	case err != nil:
		return err
	case r.Code == znode.ErrNotEmpty:
		return &rest.Problem{
			Status: http.StatusConflict, Code: znode.ErrNotEmpty, Path: c.Path,
			Detail: fmt.Sprintf("%s: more than %d znodes, which is too much for one "+
				"transaction", c.Path, maxOps),
			Hint: "delete the parts of it first",
		}
	case r.Code != znode.OK:
		return rest.Fail(r.Code, r.Path)
	}
	return rest.Deleted(q, znode.OK, c.Path)
}

// A znode's ETag is its mzxid: unlike a version it never comes again, not even when
// the znode is deleted and created.

func etag(mzxid znode.Zxid) string { return `"` + mzxid.String() + `"` }

func versionText(v znode.Version) string { return strconv.Itoa(int(v)) }

// matchesNone reports whether If-None-Match names this mzxid (RFC 9110, 13.1.2).
func matchesNone(q *rest.Request, mzxid znode.Zxid) bool {
	for _, field := range q.HTTP.Header.Values("If-None-Match") {
		for tag := range strings.SplitSeq(field, ",") {
			tag = strings.TrimPrefix(strings.TrimSpace(tag), "W/")
			if tag == "*" || tag == etag(mzxid) {
				return true
			}
		}
	}
	return false
}

// guard puts ?version= and If-Match into a command for the znode at c.Path; they
// are compared where the command is applied.
func guard(q *rest.Request, c *state.Command) (err error) {
	if c.Version, err = q.Query.Version("version"); err != nil {
		return err
	}
	fields := q.HTTP.Header.Values("If-Match")
	if len(fields) == 0 || len(fields) == 1 && strings.TrimSpace(fields[0]) == "*" {
		return nil // "*" asks that it exist, which the command does anyhow
	}
	mzxid, err := parseETag(strings.Join(fields, ","))
	if err != nil {
		return err
	}
	if mzxid != 0 {
		c.Mzxid = mzxid
		return nil
	}
	// In a command 0 means any. Only the znodes that every tree has can have it:
	// until they are changed, and they cannot be deleted.
	switch c.Path {
	case znode.RootPath, znode.SystemPath, znode.QuotaPath:
		if c.Version == znode.AnyVersion {
			c.Version = 0
		}
		return nil
	}
	return rest.Fail(znode.ErrBadVersion, c.Path)
}

func parseETag(text string) (znode.Zxid, error) {
	inner, ok := strings.CutPrefix(strings.TrimSpace(text), `"`)
	inner, closed := strings.CutSuffix(inner, `"`)
	digits, hex := strings.CutPrefix(inner, "0x")
	n, err := strconv.ParseUint(digits, 16, 63)
	if !ok || !closed || !hex || err != nil {
		return 0, rest.BadRequest("If-Match",
			`%q is not one ETag of a znode, such as "0x100000002", or *`, text)
	}
	return znode.Zxid(n), nil
}

// refuse rejects a request with a header that has no effect here, as its sender relies on it.
func refuse(q *rest.Request, header, why string) error {
	if len(q.HTTP.Header.Values(header)) == 0 {
		return nil
	}
	return rest.BadRequest(header, "%s", why)
}

// onlyIfAbsent reads If-None-Match of a PUT.
func onlyIfAbsent(q *rest.Request) (bool, error) {
	switch fields := q.HTTP.Header.Values("If-None-Match"); {
	case len(fields) == 0:
		return false, nil
	case len(fields) == 1 && strings.TrimSpace(fields[0]) == "*":
		return true, nil
	default:
		p := rest.BadRequest("If-None-Match", "a change takes * only, for a znode that does not exist")
		p.Status = http.StatusBadRequest
		return false, p
	}
}
