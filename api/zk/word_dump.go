package zk

import (
	"slices"
	"strings"

	"github.com/zk-lite/zk-lite/server"
	"github.com/zk-lite/zk-lite/watch"
)

// dumpLimit bounds what wchc and wchp list: a million watches are a hundred
// megabytes of text.
const dumpLimit = 1 << 20

// wchs counts the watches.
func (a *answer) wchs() {
	s := a.watches().Summary()
	a.line("%d connections watching %d paths", s.Connections, s.Paths)
	a.line("Total watches:%d", s.Watches)
}

// wchc lists them by connection.
func (a *answer) wchc() {
	rows, more := a.watches().ByWatcher(dumpLimit)
	for _, row := range rows {
		a.line("%s", server.WatcherSession(row.Watcher))
		slices.Sort(row.Paths)
		for _, path := range row.Paths {
			a.line("\t%s", path)
		}
	}
	a.line("")
	a.truncated(more)
}

// wchp lists them by path.
func (a *answer) wchp() {
	rows, more := a.watches().ByPath(dumpLimit)
	slices.SortFunc(rows, func(x, y watch.PathReport) int { return strings.Compare(x.Path, y.Path) })
	for _, row := range rows {
		a.line("%s", row.Path)
		for _, w := range row.Watchers {
			a.line("\t%s", server.WatcherSession(w))
		}
	}
	a.line("")
	a.truncated(more)
}

// truncated logs that a list was cut: its format has no place to say so.
func (a *answer) truncated(more bool) {
	if more {
		a.listener.logger.Warn("a four-letter word's list of watches was cut", "watches", dumpLimit)
	}
}

func (a *answer) watches() (m *watch.Manager) {
	a.look(func(v *server.View) { m = v.Watches() })
	return m
}
