package admin

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/zk-lite/zk-lite/api/body"
	"github.com/zk-lite/zk-lite/api/rest"
	"github.com/zk-lite/zk-lite/consensus/membership"
	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/migration/fence"
	"github.com/zk-lite/zk-lite/migration/mirror"
	"github.com/zk-lite/zk-lite/znode"
)

// takeovers is the take-over from a ZooKeeper ensemble that is mirrored.
type takeovers struct {
	mirror   Mirror
	ensemble *membership.Ensemble
}

// maxReceipts bounds the receipts of one request, in bytes: a voter in five has a full one.
const maxReceipts = 5 * fence.MaxReceipt

// plan says what is in the way of a take-over, and what its commands need.
func (h *takeovers) plan(q *rest.Request) error {
	p := h.mirror.Plan()
	out := &body.Takeover{
		Unmet: []body.TakeoverUnmet{}, Voters: []body.TakeoverVoter{}, From: p.From, Need: len(p.From)/2 + 1,
		Taken: recordOf(&p.Taken),
	}
	if len(p.From) > 0 {
		out.Zxid, out.Digest = znode.Zxid(p.Point.After).String(), p.Point.Digest.String()
	}
	for _, m := range p.Members {
		out.Voters = append(out.Voters, body.TakeoverVoter{ID: m.ID, Peer: m.Peers[0]})
		out.Need = len(p.Members)/2 + 1
	}
	for _, u := range append(p.Unmet, h.missing(q)...) {
		out.Unmet = append(out.Unmet, body.TakeoverUnmet{What: u.What, Do: u.Do})
	}
	out.Ready = len(out.Unmet) == 0
	return q.Answer(http.StatusOK, out)
}

// missing are our own servers that are not there.
func (h *takeovers) missing(q *rest.Request) (all []mirror.Unmet) {
	ctx, cancel := context.WithTimeout(q.Context, statusTimeout)
	defer cancel()
	s, err := h.ensemble.Status(ctx)
	if err != nil {
		return []mirror.Unmet{{What: "whether all servers of zk-lite are up is not known: " + err.Error(),
			Do: "zk-lite status"}}
	}
	for i := range s.Members {
		if m := &s.Members[i]; !m.Connected {
			all = append(all, mirror.Unmet{
				What: fmt.Sprintf("server %d of zk-lite is not connected", number(m.ID)),
				Do:   "start it, or zk-lite member remove",
			})
		}
	}
	return all
}

// execute takes over.
func (h *takeovers) execute(q *rest.Request) error {
	var doc struct {
		Receipts []*fence.Receipt `json:"receipts"`
		Force    bool             `json:"force"`
	}
	if err := q.Decode(maxReceipts, &doc); err != nil {
		return err
	}
	for _, r := range doc.Receipts {
		if r == nil {
			return rest.BadRequest("receipts", "one is null")
		}
	}
	if err := needLeader(q); err != nil {
		return err
	}
	t, err := h.mirror.Takeover(q.Context, doc.Receipts, doc.Force)
	if err != nil {
		return takeoverProblem(err)
	}
	return q.Answer(http.StatusOK, &body.TakenOver{
		Already: t.Already, Time: recordOf(&t.Record).Time, Zxid: t.Zxid.String(), Znodes: t.Znodes,
		Sessions: t.Sessions, Server: t.Record.Server, Tail: t.Record.Tail, TookMS: millis(t.Took),
	})
}

// recordOf is what the state keeps of a take-over; nil if there was none.
func recordOf(t *state.Takeover) *body.TakeoverRecord {
	if t.Source == "" {
		return nil
	}
	return &body.TakeoverRecord{
		From: strings.Split(t.Source, ","), Time: time.UnixMilli(t.Time).UTC().Format(time.RFC3339Nano),
		Server: t.Server, Zxid: zxidText(t.Last), Tail: t.Tail, Forced: t.Forced,
	}
}

// takeoverProblem explains why a take-over was refused.
func takeoverProblem(err error) error {
	p := &rest.Problem{Status: http.StatusConflict, Detail: err.Error()}
	switch {
	case errors.Is(err, fence.ErrDamaged):
		p.Status, p.Code, p.Param, p.Title = http.StatusBadRequest, znode.ErrBadArguments, "receipts", "damaged receipt"
		p.Detail, p.Hint = "receipts: "+err.Error(), "give the files as zk-lite takeover fence has printed them"
	case errors.Is(err, fence.ErrTooFew):
		p.Title = "too few are fenced"
		p.Hint = "stop and fence more of ZooKeeper's servers; force goes on, and loses what the others acknowledge"
	case errors.Is(err, fence.ErrVoters):
		p.Title, p.Hint = "not the voters", "GET /v1/takeover makes a new plan"
	case errors.Is(err, fence.ErrDiffers):
		p.Title = "another history"
		p.Hint = "unfence and start ZooKeeper, and find out which history is right; force takes the one that is here"
	case errors.Is(err, mirror.ErrNotLoaded):
		p.Title, p.Hint = "not loaded", "unfence and start ZooKeeper; zk-lite mirror status shows when it is loaded"
	default:
		return mirrorProblem(err)
	}
	return p
}
