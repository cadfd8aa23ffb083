package coordination

import (
	"net/http"
	"strconv"

	"github.com/zk-lite/zk-lite/api/rest"
	"github.com/zk-lite/zk-lite/internal/curator"
	"github.com/zk-lite/zk-lite/server"
	"github.com/zk-lite/zk-lite/znode"
)

// The states of a fencing token.
const (
	tokenCurrent = "current" // the holder's
	tokenStale   = "stale"   // there is a newer grant
	tokenFree    = "free"    // no one holds the lock
	tokenWaiting = "waiting" // that of a waiter after the holder
	tokenUnknown = "unknown" // newer than the holder's, and no waiter has it
)

// tokenBody answers a check.
type tokenBody struct {
	Path         string `json:"path"`
	FencingToken string `json:"fencing_token"`
	Current      bool   `json:"current"`
	State        string `json:"state"`
	Newest       string `json:"newest,omitempty"` // the holder's token
}

// fencingToken is the token of a grant: the czxid of its znode in decimal digits, as the
// command line prints it. It is a string, since JSON's numbers have 53 bits.
func fencingToken(czxid znode.Zxid) string { return strconv.FormatInt(int64(czxid), 10) }

// parseFencingToken is the inverse of fencingToken.
func parseFencingToken(text string) (znode.Zxid, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 || fencingToken(znode.Zxid(n)) != text {
		return 0, rest.BadRequest("fencing_token", "%q is not a fencing token: give the decimal digits of the grant's "+
			`fencing_token, as a string such as "8589934609"`, text)
	}
	return znode.Zxid(n), nil
}

// checkFencingToken reports whether a token is that of the newest grant of a lock or an
// election: that of its holder now. It asks a majority first, unless the request is content
// with what this server has: an old state would take an old token for good.
func checkFencingToken(q *rest.Request) error {
	var doc struct {
		Path         string `json:"path"`
		FencingToken string `json:"fencing_token"`
	}
	if err := q.Decode(rest.SmallBody, &doc); err != nil {
		return err
	}
	if err := rest.CheckPath("path", doc.Path); err != nil {
		return err
	}
	token, err := parseFencingToken(doc.FencingToken)
	if err != nil {
		return err
	}
	if !q.Query.Has("consistency") && !q.Query.Has("max_stale") {
		if err := q.Barrier(); err != nil {
			return err
		}
		q.W.Header().Set(rest.HeaderConsistency, rest.ConsistencyLinearizable)
	}
	holder, waits, code := holder(q, doc.Path, token)
	if code != znode.OK && code != znode.ErrNoNode {
		return rest.Fail(code, doc.Path)
	}
	body := tokenBody{Path: doc.Path, FencingToken: fencingToken(token), State: tokenFree}
	switch {
	case holder == 0 && waits:
		body.State = tokenWaiting
	case holder != 0:
		body.Newest = fencingToken(holder)
		switch {
		case token == holder:
			body.Current, body.State = true, tokenCurrent
		case token < holder:
			body.State = tokenStale
		case waits:
			body.State = tokenWaiting
		default:
			body.State = tokenUnknown
		}
	}
	return q.Answer(http.StatusOK, body)
}

// holder is the token of the holder of the lock or election at a path, 0 if there is none, and
// whether the given one is that of a waiter.
func holder(q *rest.Request, dir string, token znode.Zxid) (holds znode.Zxid, waits bool, code znode.Error) {
	q.View(func(v *server.View) {
		var names []string
		names, _, code = v.Tree().Children(dir, q.IDs)
		order := curator.Order(names, curator.Lock, curator.KazooLock, curator.Latch)
		d, _ := delayIn(v, dir)
		for i, c := range order {
			st, _ := v.Tree().Exists(znode.Join(dir, c.Name), superuser())
			switch {
			case i == 0 && !d.pending(order):
				holds = st.Czxid
			case st.Czxid == token:
				waits = true
			}
			if token <= holds || waits {
				return
			}
		}
	})
	return holds, waits, code
}
