package api

import (
	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/znode"
)

// leaveGroup ends a membership, which must be the session's own.
func (q *request) leaveGroup() error {
	path, err := q.memberPath()
	if err != nil {
		return err
	}
	if err := q.needSession(); err != nil {
		return err
	}
	// It may have been made through another server a moment ago.
	if err := q.barrier(); err != nil {
		return err
	}
	if !q.repeats() {
		if _, err := q.ownMember(path); err != nil {
			return err
		}
	}
	r, err := q.do(&state.Command{Op: state.OpDelete, Path: path, Version: znode.AnyVersion})
	if err != nil {
		return err
	}
	return q.deleted(r.Code, path)
}
