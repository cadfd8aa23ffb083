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
	fenceAhead   = "waiting" // a place behind the holder: its turn has not come
	fenceUnknown = "unknown" // newer than the holder's, and no place in the queue has it
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
	holder, waits, code := q.holder(doc.Path, fence)
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
		case waits:
			body.State = fenceAhead
		default:
			body.State = fenceUnknown
		}
	}
	return q.answer(http.StatusOK, body)
}

// holder is the fence of who holds the lock or election at a path, 0 if nobody does,
// and whether the given one is that of a place behind it.
func (q *request) holder(dir string, fence znode.Zxid) (holds znode.Zxid, waits bool, code znode.Error) {
	q.look(func(v *server.View) {
		var names []string
		names, _, code = v.Tree().Children(dir, q.ids)
		for i, place := range line.Order(names, line.Lock, line.KazooLock, line.Latch) {
			st, _ := v.Tree().Exists(znode.Join(dir, place.Name), superuser())
			switch {
			case i == 0:
				holds = st.Czxid
			case st.Czxid == fence:
				waits = true
			}
			if fence <= holds || waits {
				return
			}
		}
	})
	return holds, waits, code
}
