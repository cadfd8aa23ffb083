package raftlog

import (
	"errors"

	"github.com/hashicorp/raft"
)

// Visit calls visit with each entry of the log in dir, oldest first, until it returns an error. It changes nothing, and
// another process may go on with the log meanwhile: what that appends is perhaps not seen. Errors: as of Open.
func Visit(dir string, opt Options, visit func(*raft.Log) error) (err error) {
	opt.MustExist = true
	if opt, err = opt.withDefaults(); err != nil {
		return err
	}
	s := &Store{fs: opt.FS, dir: dir, opt: opt, logger: opt.Logger}
	defer func() { err = errors.Join(err, s.closeFiles()) }()
	if err := s.loadManifest(); err != nil {
		return err
	}
	r, err := s.openRecords()
	if err != nil || r.span.empty() {
		return err
	}
	for i := r.span.first; i <= r.span.last; i++ {
		p := r.index.get(i)
		var l raft.Log
		if err := readEntry(s.segments[p.segment()-s.segments[0].id], p.offset(), i, &l); err != nil {
			return err
		}
		if err := visit(&l); err != nil {
			return err
		}
	}
	return nil
}
