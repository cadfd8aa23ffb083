package api

import (
	"fmt"
	"net/http"
	"time"

	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/znode"
)

// multiOp is one operation of a transaction as JSON.
type multiOp struct {
	Op   string `json:"op"`
	Path string `json:"path"`
	content
	Version *int32 `json:"version"`
	Mzxid   string `json:"mzxid"` // as If-Match, without the quotes
	Mode    string `json:"mode"`
	TTL     string `json:"ttl"`
	ACL     string `json:"acl"`
}

// multiResult is what became of one of them.
type multiResult struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Stat  *stat  `json:"stat,omitempty"`
	Error string `json:"error,omitempty"`
	Code  int32  `json:"code,omitempty"`
}

type multiBody struct {
	Results []multiResult `json:"results"`
	Zxid    string        `json:"zxid"`
}

// multi carries out a list of operations, all or none.
func (q *request) multi() error {
	if err := q.refuse("If-Match", "each operation has its own: version or mzxid"); err != nil {
		return err
	}
	var doc struct {
		Ops []multiOp `json:"ops"`
	}
	if err := q.decode(multiFactor*q.door.cfg.MaxBody, &doc); err != nil {
		return err
	}
	if len(doc.Ops) == 0 || len(doc.Ops) > maxOps {
		return badRequest("ops", "%d of them; a transaction has 1 to %d", len(doc.Ops), maxOps)
	}
	c := state.Command{Op: state.OpMulti, Ops: make([]state.Command, len(doc.Ops))}
	for i := range doc.Ops {
		param := fmt.Sprintf("ops[%d]", i)
		if err := q.multiCommand(param, &doc.Ops[i], &c.Ops[i]); err != nil {
			return err
		}
	}
	r, err := q.do(&c)
	if err != nil {
		return err
	}
	results := make([]multiResult, len(r.Multi))
	failed := culprit(r.Multi)
	for i := range r.Multi {
		results[i] = resultOf(&doc.Ops[i], &r.Multi[i], failed < 0)
	}
	if failed >= 0 {
		return q.multiFailure(&doc.Ops[failed], r.Multi[failed].Code, failed, results)
	}
	return q.answer(http.StatusOK, multiBody{results, r.Zxid.String()})
}

func (q *request) multiFailure(op *multiOp, code znode.Error, i int, all []multiResult) error {
	err := error(failure{code, op.Path})
	switch {
	case op.Op == "create":
		err = createFailure(code, op.Path)
	case op.Op == "delete" && code == znode.ErrNoAuth:
		err = failure{code, znode.Parent(op.Path)}
	}
	p := problemOf(err, q.anonymous)
	p.Failed, p.Results = &i, all
	p.Detail = fmt.Sprintf("ops[%d]: %s; none of the operations has been carried out", i, p.Detail)
	return p
}

func resultOf(op *multiOp, r *state.OpResult, committed bool) multiResult {
	out := multiResult{Op: op.Op, Path: op.Path}
	switch {
	case r.Code != znode.OK:
		out.Error, out.Code = r.Code.Name(), int32(r.Code)
	case committed && r.Op == state.OpCreate:
		out.Path, out.Stat = r.Path, statOf(&r.Stat)
	case committed && r.Op == state.OpSetData:
		out.Stat = statOf(&r.Stat)
	}
	return out
}

// multiCommand translates one operation. Its errors name it by param.
func (q *request) multiCommand(param string, op *multiOp, c *state.Command) (err error) {
	c.Path, c.Version = op.Path, znode.AnyVersion
	if op.Version != nil {
		if c.Version = znode.Version(*op.Version); c.Version < znode.AnyVersion {
			return badRequest(param+".version", "%d is not a version", c.Version)
		}
	}
	if op.Mzxid != "" {
		if c.Mzxid, err = parseZxid(param+".mzxid", op.Mzxid); err != nil {
			return err
		}
		if c.Mzxid == 0 {
			return badRequest(param+".mzxid", "a znode with mzxid 0x0 was never changed; use version")
		}
	}
	guarded := op.Version != nil || op.Mzxid != ""
	creating := op.Mode != "" || op.TTL != "" || op.ACL != ""
	holding := op.Data != nil || op.Encoding != ""
	unknown := func(wrong bool, what string) error {
		if !wrong {
			return nil
		}
		return badRequest(param, "%q does not have %s", op.Op, what)
	}
	const guards, wishes, data = "version or mzxid", "mode, ttl or acl", "data or encoding"
	switch op.Op {
	case "create":
		c.Op = state.OpCreate
		if err = unknown(guarded, guards); err == nil {
			err = q.multiCreate(param, op, c)
		}
	case "set":
		c.Op = state.OpSetData
		if err = unknown(creating, wishes); err == nil {
			c.Data, err = op.decode(param)
		}
	case "delete", "check":
		c.Op = state.OpDelete
		if op.Op == "check" {
			c.Op = state.OpCheck
		}
		if err = unknown(creating, wishes); err == nil {
			err = unknown(holding, data)
		}
	case "check_not_exists":
		c.Op = state.OpCheckAbsent
		err = unknown(guarded || creating || holding, guards+", "+wishes+", "+data)
	default:
		err = badRequest(param+".op", "%q is none of create, set, delete, check, check_not_exists",
			op.Op)
	}
	if err != nil || op.Op == "create" {
		return err
	}
	return checkPath(param+".path", op.Path)
}

func (q *request) multiCreate(param string, op *multiOp, c *state.Command) error {
	mode, err := parseMode(param+".mode", op.Mode)
	if err != nil {
		return err
	}
	c.Mode, c.Kind, c.Version = mode.mode, mode.kind, 0
	if op.TTL != "" {
		ttl, err := parseDuration(param+".ttl", op.TTL, time.Millisecond, maxTTL)
		if err != nil {
			return err
		}
		c.TTL = ttl.Milliseconds()
	}
	c.ACL = znode.OpenACL
	if op.ACL != "" {
		if c.ACL, err = parseACL(param+".acl", op.ACL); err != nil {
			return err
		}
	}
	if c.Data, err = op.decode(param); err != nil {
		return err
	}
	return q.checkCreate(param+".path", param+".mode", param+".ttl", c)
}
