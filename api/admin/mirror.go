package admin

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/zk-lite/zk-lite/api/body"
	"github.com/zk-lite/zk-lite/api/rest"
	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/migration/fence"
	"github.com/zk-lite/zk-lite/migration/mirror"
	"github.com/zk-lite/zk-lite/znode"
)

// Mirror is what the operations need of *mirror.Mirror.
type Mirror interface {
	Begin(ctx context.Context, from []string, again bool) error
	End(ctx context.Context) error
	Status() mirror.Status
	Plan() mirror.Plan
	Takeover(ctx context.Context, receipts []*fence.Receipt, force bool) (mirror.Taken, error)
}

// mirrors is the mirror of a ZooKeeper ensemble.
type mirrors struct{ mirror Mirror }

// get shows how the mirror stands.
func (h *mirrors) get(q *rest.Request) error {
	return q.Answer(http.StatusOK, mirrorOf(h.mirror.Status(), q.Core.Config.ID))
}

// begin begins to mirror.
func (h *mirrors) begin(q *rest.Request) error {
	var doc struct {
		From    []string `json:"from"`
		Restart bool     `json:"restart"`
	}
	if err := q.Decode(rest.SmallBody, &doc); err != nil {
		return err
	}
	if err := needLeader(q); err != nil {
		return err
	}
	if err := h.mirror.Begin(q.Context, doc.From, doc.Restart); err != nil {
		return mirrorProblem(err)
	}
	return h.get(q)
}

// end ends the mirror, and keeps what it has brought.
func (h *mirrors) end(q *rest.Request) error {
	if err := needLeader(q); err != nil {
		return err
	}
	if err := h.mirror.End(q.Context); err != nil {
		return mirrorProblem(err)
	}
	q.Begin(http.StatusNoContent)
	return nil
}

func mirrorOf(s mirror.Status, self state.ServerID) *body.Mirror {
	m := &body.Mirror{
		State: string(s.Phase), Server: number(self), Loaded: s.Loaded, Zxid: zxidText(s.Zxid), Loads: s.Loads,
		Relays: s.Relays, Error: s.Error, Fault: s.Fault, Taken: recordOf(&s.Taken),
		Digests: body.MirrorDigests{
			Compared: s.Compared, Differing: s.Differing, First: zxidText(s.FirstDiffering),
			Last: zxidText(s.LastDiffering), Since: zxidText(s.DiffersSince),
		},
	}
	if s.Phase == mirror.Off {
		return m
	}
	m.From = strings.Split(s.Source, ",")
	if !s.Leads {
		return m
	}
	for _, f := range s.Findings {
		m.Findings = append(m.Findings, body.MirrorFinding{
			Setting: f.Setting, Problem: f.Problem, Count: f.Count, Some: f.Some,
		})
	}
	newest := max(s.Received, s.Proposed)
	m.Origin = &body.MirrorOrigin{
		Leader: s.Origin.Server, Epoch: s.Origin.Epoch, Sync: s.Origin.Sync, Zxid: zxidText(newest),
		LagMS: millis(s.Lag), LagP50MS: millis(s.Lags.Quantile(0.5)), LagP99MS: millis(s.Lags.Quantile(0.99)),
		Transactions: s.Applied, Connections: s.Connects, Snapshots: s.Snapshots, SnapshotZnodes: s.Znodes,
		SnapshotBytes: s.Uploaded,
	}
	if newest>>32 == s.Zxid>>32 { // across epochs zxids have a gap
		behind := int64(max(newest-s.Zxid, 0))
		m.Origin.Behind = &behind
	}
	return m
}

// zxidText is empty for none.
func zxidText(z znode.Zxid) string {
	if z == 0 {
		return ""
	}
	return z.String()
}

// mirrorProblem explains why a mirror was not begun or ended.
func mirrorProblem(err error) error {
	p := &rest.Problem{Status: http.StatusConflict, Detail: err.Error() + "; nothing was changed"}
	var level *state.LevelError
	switch {
	case errors.Is(err, mirror.ErrAddress):
		p.Status, p.Code, p.Param = http.StatusBadRequest, znode.ErrBadArguments, "from"
		p.Detail, p.Hint = "from: "+err.Error(), "name what zoo.cfg has in server.N, without the port of elections"
	case errors.Is(err, mirror.ErrNotEmpty):
		p.Code, p.Title = znode.ErrNotEmpty, "the tree is not empty"
		p.Hint = "mirror into a new ensemble, before it has clients"
	case errors.Is(err, mirror.ErrOther):
		p.Title, p.Hint = "another mirror", "DELETE /v1/mirror ends it; its znodes stay, so a new ensemble is needed"
	case errors.Is(err, mirror.ErrOff):
		p.Status, p.Title, p.Hint = http.StatusNotFound, "no mirror", "POST /v1/mirror begins one"
	case errors.As(err, &level):
		p.Title, p.Hint = "not at this level", "zk-lite upgrade status shows what to do"
	default:
		return clusterProblem(err)
	}
	return p
}
