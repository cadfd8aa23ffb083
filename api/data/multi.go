package data

import (
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/zk-lite/zk-lite/api/rest"

	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/znode"
)

// multiFactor is how much larger than one znode's data a transaction may be: room for
// some znodes, and for base64.
const multiFactor = 4

// multiOp is one operation of a transaction as JSON.
type multiOp struct {
	Op   string `json:"op"`
	Path string `json:"path"`
	rest.Content
	Version *int32 `json:"version"`
	Mzxid   string `json:"mzxid"` // as If-Match, without the quotes
	Mode    string `json:"mode"`
	TTL     string `json:"ttl"`
	ACL     string `json:"acl"`
}

// multiResult is the outcome of one of them.
type multiResult struct {
	Op   string `json:"op"`
	Path string `json:"path"`
	rest.Content
	Children *[]string  `json:"children,omitempty"`
	Stat     *rest.Stat `json:"stat,omitempty"`
	Error    string     `json:"error,omitempty"`
	Code     int32      `json:"code,omitempty"`
}

type multiBody struct {
	Branch  string        `json:"branch,omitempty"` // that was taken: then or else
	Results []multiResult `json:"results"`
	Zxid    string        `json:"zxid"`
}

// multi carries out a list of operations, or one of two, all or none.
func multi(q *rest.Request) error {
	if err := refuse(q, "If-Match", "each operation has its own: version or mzxid"); err != nil {
		return err
	}
	var doc struct {
		Ops []multiOp `json:"ops"`
		branchDoc
	}
	if err := q.Decode(multiFactor*q.Core.Config.MaxBody, &doc); err != nil {
		return err
	}
	if doc.If != nil || doc.Then != nil || doc.Else != nil {
		if doc.Ops != nil {
			return rest.BadRequest("ops", "give either ops, or if, then and else")
		}
		return branch(q, &doc.branchDoc)
	}
	if len(doc.Ops) == 0 || len(doc.Ops) > maxOps {
		return rest.BadRequest("ops", "%d of them; a transaction has 1 to %d", len(doc.Ops), maxOps)
	}
	c := state.Command{Op: state.OpMulti, Ops: make([]state.Command, len(doc.Ops))}
	if err := multiCommands(q, "ops", doc.Ops, c.Ops); err != nil {
		return err
	}
	for i := range c.Ops {
		if c.Ops[i].Op.Reads() {
			return rest.BadRequest(fmt.Sprintf("ops[%d].op", i), "%q can be used in then and else only", doc.Ops[i].Op)
		}
	}
	r, err := q.Do(&c)
	if err != nil {
		return err
	}
	return multiAnswer(q, "ops", doc.Ops, &r)
}

// multiCommands translates a list of operations. Its errors name them by param.
func multiCommands(q *rest.Request, param string, ops []multiOp, commands []state.Command) error {
	for i := range ops {
		if err := multiCommand(q, fmt.Sprintf("%s[%d]", param, i), &ops[i], &commands[i]); err != nil {
			return err
		}
	}
	return nil
}

// multiAnswer answers with the outcome of the operations in the list of that name.
func multiAnswer(q *rest.Request, list string, ops []multiOp, r *state.Result) error {
	results := make([]multiResult, len(r.Multi))
	failed := firstFailed(r.Multi)
	for i := range r.Multi {
		results[i] = resultOf(&ops[i], &r.Multi[i], failed < 0)
	}
	if failed >= 0 {
		return multiFailure(q, list, &ops[failed], r.Multi[failed].Code, failed, results)
	}
	body := multiBody{Results: results, Zxid: r.Zxid.String()}
	if r.Op == state.OpBranch {
		body.Branch = list
	}
	return q.Answer(http.StatusOK, body)
}

func multiFailure(q *rest.Request, list string, op *multiOp, code znode.Error, i int, all []multiResult) error {
	err := rest.Fail(code, op.Path)
	switch {
	case code == znode.ErrSystem && (op.Op == "get" || op.Op == "children"):
		err = readsTooMuch(op.Path)
	case op.Op == "create":
		err = rest.CreateFailure(code, op.Path)
	case op.Op == "delete" && code == znode.ErrNoAuth:
		err = rest.Fail(code, znode.Parent(op.Path))
	}
	p := rest.ProblemOf(err, q.Anonymous)
	p.Failed, p.Results = &i, all
	p.Detail = fmt.Sprintf("%s[%d]: %s; none of the operations has been carried out", list, i, p.Detail)
	return p
}

func resultOf(op *multiOp, r *state.OpResult, committed bool) multiResult {
	out := multiResult{Op: op.Op, Path: op.Path}
	switch {
	case r.Code != znode.OK:
		out.Error, out.Code = r.Code.Name(), int32(r.Code)
	case committed && r.Op == state.OpCreate:
		out.Path, out.Stat = r.Path, rest.StatOf(&r.Stat)
	case committed && r.Op == state.OpSetData:
		out.Stat = rest.StatOf(&r.Stat)
	case committed && r.Op == state.OpGet:
		out.Content, out.Stat = rest.ContentOf(r.Read.Data), rest.StatOf(&r.Stat)
	case committed && r.Op == state.OpChildren:
		names := append([]string{}, r.Read.Children...)
		slices.Sort(names)
		out.Children, out.Stat = &names, rest.StatOf(&r.Stat)
	}
	return out
}

// multiKind is a kind of operation.
type multiKind struct {
	op      state.Op
	refused []multiFields // that it does not have
}

// multiFields are fields that go together.
type multiFields struct {
	names string
	given func(op *multiOp) bool
}

var (
	guards = multiFields{"version or mzxid", func(op *multiOp) bool {
		return op.Version != nil || op.Mzxid != ""
	}}
	wishes = multiFields{"mode, ttl or acl", func(op *multiOp) bool {
		return op.Mode != "" || op.TTL != "" || op.ACL != ""
	}}
	content = multiFields{"data or encoding", func(op *multiOp) bool {
		return op.Data != nil || op.Encoding != ""
	}}
	allOfThem = multiFields{guards.names + ", " + wishes.names + ", " + content.names, func(op *multiOp) bool {
		return guards.given(op) || wishes.given(op) || content.given(op)
	}}
)

// multiKinds are the values of op.
var multiKinds = map[string]multiKind{
	"create":           {state.OpCreate, []multiFields{guards}},
	"set":              {state.OpSetData, []multiFields{wishes}},
	"delete":           {state.OpDelete, []multiFields{wishes, content}},
	"check":            {state.OpCheck, []multiFields{wishes, content}},
	"check_not_exists": {state.OpCheckAbsent, []multiFields{allOfThem}},
	"get":              {state.OpGet, []multiFields{allOfThem}},
	"children":         {state.OpChildren, []multiFields{allOfThem}},
}

// multiCommand translates one operation. Its errors name it by param.
func multiCommand(q *rest.Request, param string, op *multiOp, c *state.Command) (err error) {
	c.Path = op.Path
	if err := multiGuard(param, op, c); err != nil {
		return err
	}
	kind, known := multiKinds[op.Op]
	if !known {
		return rest.BadRequest(param+".op", "%q is none of create, set, delete, check, check_not_exists, get, children",
			op.Op)
	}
	c.Op = kind.op
	for _, f := range kind.refused {
		if f.given(op) {
			return rest.BadRequest(param, "%q does not have %s", op.Op, f.names)
		}
	}
	switch kind.op {
	case state.OpCreate:
		return multiCreate(q, param, op, c)
	case state.OpSetData:
		if c.Data, err = op.Decode(param); err != nil {
			return err
		}
	}
	return rest.CheckPath(param+".path", op.Path)
}

// multiGuard reads version and mzxid.
func multiGuard(param string, op *multiOp, c *state.Command) (err error) {
	c.Version = znode.AnyVersion
	if op.Version != nil {
		if c.Version = znode.Version(*op.Version); c.Version < znode.AnyVersion {
			return rest.BadRequest(param+".version", "%d is not a version", c.Version)
		}
	}
	if op.Mzxid == "" {
		return nil
	}
	c.Mzxid, err = rest.ParseZxid(param+".mzxid", op.Mzxid)
	if err == nil && c.Mzxid == 0 {
		err = rest.BadRequest(param+".mzxid", "a znode with mzxid 0x0 was never changed; use version")
	}
	return err
}

func multiCreate(q *rest.Request, param string, op *multiOp, c *state.Command) error {
	mode, err := parseMode(param+".mode", op.Mode)
	if err != nil {
		return err
	}
	c.Mode, c.Kind, c.Version = mode.mode, mode.kind, 0
	if op.TTL != "" {
		ttl, err := rest.ParseDuration(param+".ttl", op.TTL, time.Millisecond, maxTTL)
		if err != nil {
			return err
		}
		c.TTL = ttl.Milliseconds()
	}
	c.ACL = znode.OpenACL
	if op.ACL != "" {
		if c.ACL, err = rest.ParseACL(param+".acl", op.ACL); err != nil {
			return err
		}
	}
	if c.Data, err = op.Decode(param); err != nil {
		return err
	}
	return checkCreate(q, param+".path", param+".mode", param+".ttl", c)
}
