package client

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/zk-lite/zk-lite/znode"
)

// ErrConflict is what the reads of a Tx return when another client has changed what it has read before. Transact then
// runs its function again.
var ErrConflict = errors.New("another client has changed what the transaction has read")

// The pauses of a Transact between two runs of its function.
const (
	conflictPauseMin = time.Millisecond
	conflictPauseMax = 128 * time.Millisecond
)

// Transact runs fn, which reads and changes znodes through tx, and then carries out all its changes at once, if nothing
// that it has read has changed in the meantime; otherwise it runs fn again, after a pause. Transactions are strictly
// serializable: they take effect in one order that fits real time, each with what its last run has read, also those
// that only read, and those that an error of fn ends without changes.
//
// Every run sees one state, even one that will not be the last, and then perhaps an old one: what fn computes is never
// from reads that do not fit together. As fn may run several times, it must have no other effects.
//
// zk-lite has what it needs, ZooKeeper does not. A transaction takes one write of the log, and another one for each
// read that finds a znode missing or changed since the first read.
//
// Errors: those of fn and of its operations; ErrUnimplemented; ErrNotReadOnly of an ensemble that mirrors ZooKeeper;
// that of ctx. After ErrOutcomeUnknown the changes may have been made: a transaction that must not happen twice creates
// a znode that tells.
func (c *Client) Transact(ctx context.Context, fn func(tx *Tx) error) error {
	pauses := backoff{min: conflictPauseMin, max: conflictPauseMax, random: c.cfg.random()}
	for {
		tx := &Tx{c: c, seen: map[seenKey]*seen{}, own: map[string]written{}, writes: c.Multi()}
		err := fn(tx)
		switch {
		case tx.stale:
		case err == nil:
			err = tx.commit(ctx)
		case len(tx.seen) > 0:
			if c := tx.confirm(ctx); c != nil {
				err = errors.Join(err, c)
			}
		}
		if !tx.stale {
			return err
		}
		pause := time.NewTimer(pauses.pause())
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			return fmt.Errorf("transaction: %w: %w", ErrConflict, contextError(ctx))
		}
	}
}

// Tx is one run of the function of a Transact. Its reads see its own changes. It is not safe for concurrent use, and of
// no use after the function has returned.
type Tx struct {
	c      *Client
	seen   map[seenKey]*seen
	at     Zxid               // the transaction after which all of seen was so
	own    map[string]written // what the changes leave
	writes *Multi
	stale  bool // ErrConflict
}

type seenKey struct {
	path string
	list bool
}

// seen is what a read has found, and the condition under which it still holds.
type seen struct {
	Condition
	since    Zxid // it has been so since this transaction, or longer; NoZxid: unknown
	data     []byte
	children []string
}

// written is what a change leaves of a znode.
type written struct {
	data    []byte
	gone    bool
	created bool // it has no children but those that tx creates
}

// Get returns the data of a znode, which must not be changed.
//
// Errors: ErrNoNode, ErrNoAuth (READ), ErrConflict.
func (tx *Tx) Get(ctx context.Context, path string) ([]byte, error) {
	if w, ok := tx.own[path]; ok {
		if w.gone {
			return nil, missing("getData", path)
		}
		return w.data, nil
	}
	s, err := tx.look(ctx, seenKey{path, false})
	if err == nil && s.missing() {
		err = missing("getData", path)
	}
	if err != nil {
		return nil, err
	}
	return s.data, nil
}

// Exists reports whether a znode exists. It counts as a read of the data.
//
// Errors: ErrNoAuth (READ), ErrConflict.
func (tx *Tx) Exists(ctx context.Context, path string) (bool, error) {
	_, err := tx.Get(ctx, path)
	if errors.Is(err, ErrNoNode) {
		return false, nil
	}
	return err == nil, err
}

// Children returns the names of a znode's children, sorted.
//
// Errors: ErrNoNode, ErrNoAuth (READ), ErrConflict.
func (tx *Tx) Children(ctx context.Context, path string) ([]string, error) {
	w := tx.own[path]
	names := map[string]bool{}
	if !w.created && !w.gone {
		s, err := tx.look(ctx, seenKey{path, true})
		if err != nil {
			return nil, err
		}
		w.gone = s.missing()
		for _, name := range s.children {
			names[name] = true
		}
	}
	if w.gone {
		return nil, missing("getChildren", path)
	}
	for other, x := range tx.own {
		if other == path || znode.Parent(other) != path {
			continue
		}
		if x.gone {
			delete(names, znode.Base(other))
		} else {
			names[znode.Base(other)] = true
		}
	}
	return slices.Sorted(maps.Keys(names)), nil
}

// Set changes the data of a znode, which must exist then.
func (tx *Tx) Set(path string, data []byte) {
	tx.writes.Set(path, data, AnyVersion)
	tx.own[path] = written{data: data, created: tx.own[path].created}
}

// Create creates a znode; see Client.Create. A sequential one, whose name would be known at the end only, makes
// Transact fail with ErrBadArguments.
func (tx *Tx) Create(path string, data []byte, mode Mode, acl ...ACL) {
	if mode.Sequential() && tx.writes.err == nil {
		tx.writes.err = &MultiError{Index: tx.writes.Len(), Op: "create", Path: path, Err: ErrBadArguments}
	}
	tx.writes.Create(path, data, mode, acl...)
	tx.own[path] = written{data: data, created: true}
}

// Delete deletes a znode, which must exist then and have no children.
func (tx *Tx) Delete(path string) {
	tx.writes.Delete(path, AnyVersion)
	tx.own[path] = written{gone: true}
}

func missing(op, path string) error { return &OpError{Op: op, Path: path, Err: ErrNoNode} }

func (s *seen) missing() bool { return s.Of == OfExistence }

// look reads a znode, and makes sure that there was a moment at which it was so, and all that was read before.
func (tx *Tx) look(ctx context.Context, key seenKey) (*seen, error) {
	switch s := tx.seen[key]; {
	case tx.stale:
		return nil, &OpError{Op: "transaction", Path: key.path, Err: ErrConflict}
	case s != nil:
		return s, nil
	}
	s, now, err := tx.c.see(ctx, key)
	if err != nil {
		return nil, err
	}
	tx.seen[key] = s
	switch {
	case len(tx.seen) == 1:
		tx.at = now
	case now != tx.at && (s.since == NoZxid || s.since > tx.at || now < tx.at):
		if err := tx.confirm(ctx); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// see reads a znode, and returns the last transaction that the server knew.
func (c *Client) see(ctx context.Context, key seenKey) (s *seen, now Zxid, err error) {
	s = &seen{Condition: Condition{Path: key.path, Is: Equal}}
	if key.list {
		var p *Pending[ChildrenReply]
		var v ChildrenReply
		v, err = read(ctx, func() *Pending[ChildrenReply] { p = c.getChildren(ctx, key.path, false); return p })
		s.Of, s.since, s.children, now = OfPzxid, v.Stat.Pzxid, v.Children, p.Zxid()
	} else {
		var p *Pending[GetReply]
		var v GetReply
		v, err = read(ctx, func() *Pending[GetReply] { p = c.getData(ctx, key.path, false, nil); return p })
		s.Of, s.since, s.data, now = OfMzxid, v.Stat.Mzxid, v.Data, p.Zxid()
	}
	s.Number = int64(s.since)
	if errors.Is(err, ErrNoNode) {
		s.Of, s.Number, s.since, err = OfExistence, 0, NoZxid, nil
	}
	return s, now, err
}

// confirm compares all that was read with the newest state.
func (tx *Tx) confirm(ctx context.Context) error {
	var p *Pending[branchReply]
	v, err := read(ctx, func() *Pending[branchReply] { p = tx.c.branch(ctx, tx.conditions(), nil, nil); return p })
	if err == nil && !v.then {
		tx.stale = true
		err = p.wrap(ErrConflict)
	}
	tx.at = p.Zxid()
	return err
}

func (tx *Tx) conditions() (all []Condition) {
	for _, s := range tx.seen {
		all = append(all, s.Condition)
	}
	slices.SortFunc(all, func(a, b Condition) int { return strings.Compare(a.Path, b.Path) })
	return all
}

// commit makes the changes, unless tx is stale then.
func (tx *Tx) commit(ctx context.Context) error {
	switch {
	case tx.writes.Len() == 0 && len(tx.seen) == 0:
		return nil
	case tx.writes.Len() == 0:
		return tx.confirm(ctx)
	}
	held, err := tx.c.Branch(ctx, tx.conditions(), tx.writes, nil)
	tx.stale = err == nil && !held
	return err
}
