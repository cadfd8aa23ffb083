package subtree

import (
	"bytes"
	"context"
	"errors"
	"slices"

	"github.com/zk-lite/zk-lite/client"
)

// writeWindow is how many creations are under way at a time, and writeBytes how
// much data: what is under way is held in memory.
const (
	writeWindow = 512
	writeBytes  = 8 << 20
)

// Existing selects what to do with znodes that are there already.
type Existing int

// The answers.
const (
	Refuse  Existing = iota // end with ErrNodeExists
	Keep                    // leave them as they are
	Replace                 // replace data and ACL
)

// Record is a znode to be written.
type Record struct {
	Path string
	Data []byte // nil for null
	ACL  []client.ACL

	Ephemeral bool // it belonged to a session, and is not written
}

// Count is how much has been done.
type Count struct {
	Created, Replaced, Kept int
	Ephemerals              int         // left out
	Zxid                    client.Zxid // of the state that was copied; 0: not one state
}

// writer creates znodes, many at a time, in the order in which they are put.
type writer struct {
	ctx      context.Context
	c        *client.Client
	existing Existing
	step     func()
	Count

	begun   bool // a record has been put
	pending []put
	bytes   int
}

type put struct {
	rec   Record
	reply *client.Pending[client.CreateReply]
}

// put begins to write a record. Parents come first.
func (w *writer) put(rec Record) error {
	if rec.Ephemeral {
		w.Ephemerals++
		return nil
	}
	if err := w.drain(writeWindow-1, writeBytes-len(rec.Data)); err != nil {
		return err
	}
	w.bytes += len(rec.Data)
	w.pending = append(w.pending, put{rec, w.create(&rec)})
	if w.begun {
		return nil
	}
	// If the root is there already, nothing may be put below it.
	w.begun = true
	return w.flush()
}

func (w *writer) create(r *Record) *client.Pending[client.CreateReply] {
	return w.c.Async().Create(w.ctx, r.Path, r.Data, client.Persistent, r.ACL...)
}

// flush waits until everything is written.
func (w *writer) flush() error { return w.drain(0, 0) }

// drain waits until few enough are under way.
func (w *writer) drain(count, size int) error {
	for len(w.pending) > 0 && (len(w.pending) > count || w.bytes > max(size, 0)) {
		p := w.pending[0]
		w.pending = w.pending[1:]
		w.bytes -= len(p.rec.Data)
		_, err := p.reply.Wait(w.ctx)
		if err := w.settle(&p.rec, err); err != nil {
			w.abandon()
			return err
		}
		w.step()
	}
	return nil
}

// abandon counts what is still being created behind the one that has failed.
func (w *writer) abandon() {
	for _, p := range w.pending {
		if _, err := p.reply.Wait(w.ctx); err == nil {
			w.Created++
		}
	}
	w.pending = nil
}

// settle deals with the result of a creation.
func (w *writer) settle(r *Record, err error) error {
	unknown := false
	for lost(err) && w.ctx.Err() == nil {
		unknown = unknown || errors.Is(err, client.ErrOutcomeUnknown)
		_, err = w.create(r).Wait(w.ctx)
		if errors.Is(err, client.ErrNoNode) && unknown {
			// Created, or not, and the parent has gone since: keep the answer.
			return err
		}
	}
	if !errors.Is(err, client.ErrNodeExists) {
		if err == nil {
			w.Created++
		}
		return err
	}
	if unknown && w.isThere(r) {
		w.Created++
		return nil
	}
	switch w.existing {
	case Keep:
		w.Kept++
		return nil
	case Replace:
		w.Replaced++
		return w.replace(r)
	}
	return err
}

// lost reports whether the connection broke under a request.
func lost(err error) bool {
	return errors.Is(err, client.ErrOutcomeUnknown) || errors.Is(err, client.ErrConnectionLoss)
}

// isThere reports whether a znode is as it was to be created: the creation whose
// answer was lost has happened.
func (w *writer) isThere(r *Record) bool {
	data, stat, err := w.c.Get(w.ctx, r.Path)
	return err == nil && bytes.Equal(data, r.Data) && stat.Version == 0
}

// replace gives a znode the data and the ACL of a record. Both may be repeated.
func (w *writer) replace(r *Record) error {
	for {
		_, err := w.c.Set(w.ctx, r.Path, r.Data, client.AnyVersion)
		if err == nil {
			break
		}
		if !lost(err) || w.ctx.Err() != nil {
			return err
		}
	}
	have, _, err := w.c.GetACL(w.ctx, r.Path)
	if err == nil && slices.Equal(have, r.ACL) || len(r.ACL) == 0 {
		return nil
	}
	for {
		_, err := w.c.SetACL(w.ctx, r.Path, r.ACL, client.AnyVersion)
		if err == nil || !lost(err) || w.ctx.Err() != nil {
			return err
		}
	}
}
