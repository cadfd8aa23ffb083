package watch

import (
	"fmt"
	"testing"

	"github.com/zk-lite/zk-lite/znode"
)

// recorder is a Sink that keeps what it gets, as "Type path".
type recorder struct {
	got   []string
	notes []*Notification
}

func (r *recorder) Notify(n *Notification) {
	r.got = append(r.got, fmt.Sprintf("%s %s", n.Type, n.Path))
	r.notes = append(r.notes, n)
}

func (r *recorder) take() []string {
	got := r.got
	r.got, r.notes = nil, nil
	return got
}

func created(path string) *znode.Event {
	return &znode.Event{Type: znode.EventCreated, Path: path, Zxid: 7}
}

func deleted(path string) *znode.Event {
	return &znode.Event{Type: znode.EventDeleted, Path: path, Zxid: 7}
}

func changed(path string) *znode.Event {
	return &znode.Event{Type: znode.EventDataChanged, Path: path, Zxid: 7}
}

func mustAdd(t testing.TB, m *Manager, w *Watcher, path string, modes ...Mode) {
	t.Helper()
	for _, mode := range modes {
		if err := m.Add(w, path, mode); err != nil {
			t.Fatalf("Add(%s, %s): %v", path, mode, err)
		}
	}
}

// watchOn is one Add of the table below.
type watchOn struct {
	path string
	mode Mode
}
