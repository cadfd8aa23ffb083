package zk

import (
	"io/fs"
	"maps"
	"os"
	"os/user"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/zk-lite/zk-lite/consensus"
	"github.com/zk-lite/zk-lite/server"
	"github.com/zk-lite/zk-lite/session"
	"github.com/zk-lite/zk-lite/watch"
	"github.com/zk-lite/zk-lite/znode"
)

// conf prints the settings (ZooKeeperServer.dumpConf, QuorumZooKeeperServer).
func (a *answer) conf() {
	d, s, srv := a.listener, &a.listener.cfg.Settings, a.listener.srv.Config()
	a.line("clientPort=%d", s.ClientPort())
	a.line("secureClientPort=%d", s.SecureClientPort)
	a.line("dataDir=%s", s.DataDir)
	a.line("dataDirSize=%d", directorySize(s.DataDir))
	a.line("dataLogDir=%s", s.logDir())
	a.line("dataLogSize=%d", directorySize(s.logDir()))
	a.line("tickTime=%d", srv.Tick.Milliseconds())
	a.line("maxClientCnxns=%d", d.cfg.MaxPerAddress)
	a.line("minSessionTimeout=%d", srv.MinSessionTimeout.Milliseconds())
	a.line("maxSessionTimeout=%d", srv.MaxSessionTimeout.Milliseconds())
	a.line("clientPortListenBacklog=%d", s.ListenBacklog)
	a.line("serverId=%d", srv.ID)
	if d.srv.Status().Role == consensus.RoleStandalone {
		return
	}
	peerType := 0
	if s.Observer {
		peerType = 1
	}
	var members []byte
	a.look(func(v *server.View) { members, _, _ = v.Tree().Get(znode.ConfigPath, []znode.ID{znode.SuperIDs}) })
	a.line("initLimit=%d", s.InitLimit)
	a.line("syncLimit=%d", s.SyncLimit)
	a.line("electionAlg=3")
	a.line("electionPort=%d", s.ElectionPort)
	a.line("quorumPort=%d", s.QuorumPort)
	a.line("peerType=%d", peerType)
	a.line("membership: ")
	a.Write(members)
}

func (s *Settings) logDir() string {
	if s.DataLogDir == "" {
		return s.DataDir
	}
	return s.DataLogDir
}

// dirs prints how large the data directories are, in bytes.
func (a *answer) dirs() {
	data, log := a.listener.DirSizes()
	a.line("datadir_size: %d", data)
	a.line("logdir_size: %d", log)
}

// directorySize sums up the files below dir. What cannot be read, or is gone
// by the time it is looked at, counts nothing.
func directorySize(dir string) (total int64) {
	if dir == "" {
		return 0
	}
	_ = filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return nil
		}
		if info, err := e.Info(); err == nil {
			total += info.Size()
		}
		return nil
	})
	return total
}

// envi prints the process's surroundings. What only a JVM has is "<NA>", which
// ZooKeeper prints for a property that is not set.
func (a *answer) envi() {
	const missing = "<NA>"
	or := func(s string, err error) string {
		if err != nil || s == "" {
			return missing
		}
		return s
	}
	name, home := missing, missing
	if u, err := user.Current(); err == nil {
		name, home = u.Username, u.HomeDir
	}
	release, err := os.ReadFile("/proc/sys/kernel/osrelease")
	const mb = 1 << 20
	var mem runtime.MemStats
	runtime.ReadMemStats(&mem)
	a.line("Environment:")
	a.line("zookeeper.version=%s", a.listener.cfg.fullVersion())
	a.line("host.name=%s", or(os.Hostname()))
	a.line("java.version=%s", missing)
	a.line("java.vendor=%s", missing)
	a.line("go.version=%s", runtime.Version())
	a.line("os.name=%s", runtime.GOOS)
	a.line("os.arch=%s", runtime.GOARCH)
	a.line("os.version=%s", or(strings.TrimSpace(string(release)), err))
	a.line("user.name=%s", name)
	a.line("user.home=%s", home)
	a.line("user.dir=%s", or(os.Getwd()))
	a.line("os.memory.free=%dMB", (mem.HeapIdle-mem.HeapReleased)/mb)
	a.line("os.memory.max=%dMB", memoryLimit()/mb)
	a.line("os.memory.total=%dMB", mem.Sys/mb)
}

// memoryLimit is the Go runtime's soft limit in bytes.
func memoryLimit() int64 { return debug.SetMemoryLimit(-1) }

// dump lists the sessions, those that this server alone knows first, in the form of ZooKeeper's followers; the
// ephemerals of each; and this server's connections.
func (a *answer) dump() {
	type owner struct {
		id    znode.SessionID
		paths []string
	}
	var sessions []session.Session
	var owners []owner
	var local *server.LocalSessions
	a.look(func(v *server.View) {
		sessions, local = v.Machine().Sessions().Clone(), v.Local()
		tree := v.Tree()
		tree.EphemeralOwners(func(id znode.SessionID, _ int) {
			owners = append(owners, owner{id, tree.Ephemerals(id, "")})
		})
	})
	slices.SortFunc(sessions, func(x, y session.Session) int { return compare(x.ID, y.ID) })
	slices.SortFunc(owners, func(x, y owner) int { return compare(x.id, y.id) })
	a.line("SessionTracker dump:")
	if a.listener.srv.Config().LocalSessions {
		a.sets(local.Deadlines())
	}
	a.line("Global Sessions(%d):", len(sessions))
	for _, s := range sessions {
		a.line("%s\t%dms", s.ID, s.Timeout.Milliseconds())
	}
	a.line("ephemeral nodes dump:")
	a.line("Sessions with Ephemerals (%d):", len(owners))
	for _, o := range owners {
		a.line("%s:", o.id)
		slices.Sort(o.paths)
		for _, path := range o.paths {
			a.line("\t%s", path)
		}
	}
	conns := a.listener.snapshot()
	a.line("Connections dump:")
	a.line("Connections Sets (%d)/(%d):", min(1, len(conns)), len(conns))
	for _, c := range conns {
		a.line("\tip: /%s sessionId: %s", c.remote, c.session())
	}
}

// sets lists local sessions by the times at which they expire (ExpiryQueue.dump).
func (a *answer) sets(deadlines map[int64][]znode.SessionID) {
	n := 0
	for _, ids := range deadlines {
		n += len(ids)
	}
	a.line("Local Session Sets (%d)/(%d):", len(deadlines), n)
	for _, at := range slices.Sorted(maps.Keys(deadlines)) {
		a.line("%d expire at %s:", len(deadlines[at]), time.UnixMilli(at).Format("Mon Jan 02 15:04:05 MST 2006"))
		for _, id := range deadlines[at] {
			a.line("\t%s", id)
		}
	}
}

func compare(x, y znode.SessionID) int {
	switch {
	case x < y:
		return -1
	case x > y:
		return 1
	}
	return 0
}

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
