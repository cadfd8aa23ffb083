package rest

import (
	"net/http"
	"strings"

	"github.com/zk-lite/zk-lite/server"
	"github.com/zk-lite/zk-lite/znode"
)

// What the operations share that create znodes with those above them.
const (
	// MaxParents bounds how many levels are made.
	MaxParents = 100
	// MaxTries is how often a change of several znodes is tried when others
	// change them meanwhile.
	MaxTries = 16
)

// CreateFailure says of which znode a create speaks: what must be there, and permit
// it, is the parent.
func CreateFailure(code znode.Error, path string) error {
	switch code {
	case znode.ErrNoNode, znode.ErrNoAuth, znode.ErrNoChildrenForEphemeral:
		path = znode.Parent(path)
	}
	return Failure{code, path}
}

// Missing returns how many of these do not exist here, from the last one upwards.
func Missing(q *Request, above []string) (n int) {
	q.View(func(v *server.View) {
		for n < len(above) {
			if _, code := v.Tree().Exists(above[len(above)-1-n], q.IDs); code != znode.ErrNoNode {
				return
			}
			n++
		}
	})
	return n
}

// Ancestors are the paths above a path, from the top, without the root.
func Ancestors(path string) (above []string) {
	for i := 1; i < len(path); i++ {
		if path[i] == '/' {
			above = append(above, strings.Clone(path[:i]))
		}
	}
	return above
}

// Deleted answers with the outcome of a delete.
func Deleted(q *Request, code znode.Error, path string) error {
	switch code {
	case znode.OK:
	case znode.ErrNoAuth:
		return Failure{code, znode.Parent(path)} // whose permission it takes
	default:
		return Failure{code, path}
	}
	q.Begin(http.StatusNoContent)
	return nil
}
