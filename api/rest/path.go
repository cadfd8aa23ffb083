package rest

import (
	"strings"

	"github.com/zk-lite/zk-lite/znode"
)

// ZnodePath is the path in the URL, which is valid. An escaped slash is a slash:
// names cannot contain one.
func (q *Request) ZnodePath() (string, error) {
	path := q.RawPath()
	return path, CheckPath("path", path)
}

// RawPath is the path in the URL before anybody has looked at it.
func (q *Request) RawPath() string {
	if path := q.Vars["path"]; path != "" {
		return path
	}
	return znode.RootPath
}

// CheckPath reports what is wrong with a path that a parameter has.
func CheckPath(param, path string) error {
	if err := znode.ValidatePath(path); err != nil {
		p := BadRequest(param, "")
		// The error names the path already.
		p.Detail = strings.TrimSuffix(err.Error(), ": "+znode.ErrBadArguments.Error())
		if param != "path" {
			p.Detail = param + ": " + p.Detail
		}
		p.Path = strings.ToValidUTF8(path, "�")
		p.Hint = "names are separated by single slashes, without one at the end; the root is " +
			"/v1/znodes/"
		return p
	}
	return nil
}
