package zk

import (
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/zk-lite/zk-lite/consensus"
	"github.com/zk-lite/zk-lite/server"
	"github.com/zk-lite/zk-lite/znode"
)

// conf prints the settings (ZooKeeperServer.dumpConf, QuorumZooKeeperServer).
func (a *answer) conf() {
	d, s, srv := a.listener, &a.listener.cfg.Settings, a.listener.srv.Config()
	a.line("clientPort=%d", s.ClientPort)
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
