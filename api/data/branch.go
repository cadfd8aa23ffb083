package data

import (
	"fmt"
	"net/http"

	"github.com/zk-lite/zk-lite/api/rest"
	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/server"
	"github.com/zk-lite/zk-lite/znode"
)

// branchDoc is a transaction with conditions as JSON.
type branchDoc struct {
	If   []condition `json:"if"`
	Then []multiOp   `json:"then"`
	Else []multiOp   `json:"else"`
}

// condition is one of them: one attribute of a znode, and what it is compared with.
type condition struct {
	Path     string  `json:"path"`
	Is       string  `json:"is"` // nothing: =
	Exists   *bool   `json:"exists"`
	Version  *int32  `json:"version"`
	Mzxid    *string `json:"mzxid"`
	Pzxid    *string `json:"pzxid"`
	Children *int32  `json:"children"`
	Owner    *string `json:"owner"`
	rest.Content
}

// branch carries out one of two lists of operations.
func branch(q *rest.Request, doc *branchDoc) error {
	if n := len(doc.If) + len(doc.Then) + len(doc.Else); n == 0 || n > maxOps {
		return rest.BadRequest("if", "%d conditions and operations; a transaction has 1 to %d", n, maxOps)
	}
	b := &state.Branch{If: make([]znode.Condition, len(doc.If)), Then: len(doc.Then)}
	for i := range doc.If {
		if err := doc.If[i].parse(fmt.Sprintf("if[%d]", i), &b.If[i]); err != nil {
			return err
		}
	}
	c := &state.Command{Op: state.OpBranch, Branch: b, Ops: make([]state.Command, len(doc.Then)+len(doc.Else))}
	then, otherwise := c.Branches()
	err := multiCommands(q, "then", doc.Then, then)
	if err == nil {
		err = multiCommands(q, "else", doc.Else, otherwise)
	}
	if err != nil {
		return err
	}
	q.View(func(v *server.View) { err = c.CheckLevel(v.Machine().Level()) })
	if err != nil {
		return err
	}
	r, err := q.Do(c)
	switch {
	case err != nil:
		return err
	case r.Code != znode.OK:
		return rest.Fail(r.Code, r.Path)
	case r.Then:
		return multiAnswer(q, "then", doc.Then, &r)
	}
	return multiAnswer(q, "else", doc.Else, &r)
}

// parse translates a condition. Its errors name it by param.
func (x *condition) parse(param string, c *znode.Condition) (err error) {
	n := 0
	compare := func(given bool, of znode.Attribute, number func() int64) {
		if given {
			n++
			c.Of, c.Number = of, number()
		}
	}
	zxid := func(name string, text *string) func() int64 {
		return func() int64 {
			var z znode.Zxid
			if z, err = rest.ParseZxid(param+"."+name, *text); err != nil {
				return 0
			}
			return int64(z)
		}
	}
	compare(x.Exists != nil, znode.OfExistence, func() int64 {
		if *x.Exists {
			return 1
		}
		return 0
	})
	compare(x.Version != nil, znode.OfVersion, func() int64 { return int64(*x.Version) })
	compare(x.Children != nil, znode.OfChildren, func() int64 { return int64(*x.Children) })
	compare(x.Mzxid != nil, znode.OfMzxid, zxid("mzxid", x.Mzxid))
	compare(x.Pzxid != nil, znode.OfPzxid, zxid("pzxid", x.Pzxid))
	compare(x.Owner != nil, znode.OfOwner, func() int64 {
		id, ok := rest.ParseSessionID(*x.Owner)
		if !ok && *x.Owner != "0x0" {
			err = rest.BadRequest(param+".owner", "%q is no session's id, such as 0x1a20aac7f8f0001, or 0x0 for none",
				*x.Owner)
		}
		return int64(id)
	})
	compare(x.Data != nil, znode.OfData, func() int64 { c.Data, err = x.Decode(param); return 0 })
	known := true
	if c.Path, c.Is = x.Path, znode.Equal; x.Is != "" {
		c.Is, known = znode.RelationOf(x.Is)
	}
	switch {
	case err != nil:
		return err
	case n != 1:
		return rest.BadRequest(param, "it compares %d attributes; give one of exists, version, mzxid, pzxid, "+
			"children, owner, data", n)
	case !known:
		return rest.BadRequest(param+".is", "%q is none of =, !=, <, >", x.Is)
	}
	return rest.CheckPath(param+".path", x.Path)
}

// readsTooMuch is the problem of a branch that reads more than an answer may have.
func readsTooMuch(path string) *rest.Problem {
	return &rest.Problem{
		Status: http.StatusBadRequest, Code: znode.ErrSystem, Path: path, Title: "reads too much",
		Detail: fmt.Sprintf("%s: the reads before it leave no room; those of a transaction take at most %d KiB, and "+
			"%d KiB with an %s", path, state.MaxReads>>10, state.MaxKeyedReads>>10, rest.HeaderKey),
		Hint: "read less in one transaction",
	}
}
