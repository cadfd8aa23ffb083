package api

import (
	"net/http"

	"github.com/zk-lite/zk-lite/api/line"
	"github.com/zk-lite/zk-lite/server"
	"github.com/zk-lite/zk-lite/znode"
)

// What a fence is at the moment.
const (
	fenceCurrent = "current" // the holder's
	fenceStale   = "stale"   // there is a newer grant
	fenceFree    = "free"    // nobody holds the lock
	fenceAhead   = "waiting" // newer than the holder's: its turn has not come
)

// fenceBody answers a check.
type fenceBody struct {
	Path    string `json:"path"`
	Fence   string `json:"fence"`
	Current bool   `json:"current"`
	State   string `json:"state"`
	Newest  string `json:"newest,omitempty"` // the holder's fence
}

// checkFence tells whether a fence is that of the newest grant of a lock or an
// election: of who holds it now. It asks a majority first, unless the request is
// content with what this server knows: an old state would take an old fence for good.
func (q *request) checkFence() error {
	var doc struct {
		Path  string `json:"path"`
		Fence string `json:"fence"`
	}
	if err := q.decode(smallBody, &doc); err != nil {
		return err
	}
	if err := checkPath("path", doc.Path); err != nil {
		return err
	}
	fence, err := parseZxid("fence", doc.Fence)
	if err != nil {
		return err
	}
	if !q.query.has("consistency") {
		if err := q.barrier(); err != nil {
			return err
		}
		q.w.Header().Set(headerConsistency, consistencyLinearizable)
	}
	holder, code := q.holder(doc.Path)
	if code != znode.OK && code != znode.ErrNoNode {
		return failure{code, doc.Path}
	}
	body := fenceBody{Path: doc.Path, Fence: fence.String(), State: fenceFree}
	if holder != 0 {
		body.Newest = holder.String()
		switch {
		case fence == holder:
			body.Current, body.State = true, fenceCurrent
		case fence < holder:
			body.State = fenceStale
		default:
			body.State = fenceAhead
		}
	}
	return q.answer(http.StatusOK, body)
}

// holder is the fence of who holds the lock or election at a path; 0: nobody.
func (q *request) holder(dir string) (fence znode.Zxid, code znode.Error) {
	q.look(func(v *server.View) {
		var names []string
		names, _, code = v.Tree().Children(dir, q.ids)
		all := line.Order(names, line.Lock, line.KazooLock, line.Latch)
		if code != znode.OK || len(all) == 0 {
			return
		}
		st, _ := v.Tree().Exists(znode.Join(dir, all[0].Name), superuser())
		fence = st.Czxid
	})
	return fence, code
}
