package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// resolve computes the values that depend on others and checks them together.
func (l *loader) resolve() {
	l.resolveDirs()
	l.resolveTimes()
	l.resolveRest()
	l.resolveTLS()
	l.resolvePeerTLS()
	l.resolveAuth()
	l.resolveBackup()
	l.resolveThrottle()
	l.checkServers()
	for _, step := range []func(){l.resolveMyID, l.resolveRole, l.resolveClientPort, l.checkPorts} {
		if len(l.errs) > 0 {
			return // a later step would blame the consequence
		}
		step()
	}
}

// defaultDataDir is where the data of a server without a zoo.cfg is.
const defaultDataDir = "./zk-lite-data"

func (l *loader) resolveDirs() {
	s := &l.s
	if s.DataDir == "" {
		if s.ConfigFile != "" {
			l.fail(l.where("data-dir"), "dataDir", "is missing",
				"name the directory for the data, as in dataDir=/var/lib/zookeeper")
		}
		s.DataDir = defaultDataDir
	}
	l.checkDir("data-dir", s.DataDir)
	if s.Audit.File == "" {
		s.Audit.File = filepath.Join(s.DataDir, AuditFile)
	}
	if s.DataLogDir == "" {
		s.DataLogDir = s.DataDir
		return
	}
	l.checkDir("data-log-dir", s.DataLogDir)
}

// checkDir finds what can never be a directory; one that is missing is made at the start.
func (l *loader) checkDir(flag, path string) {
	info, err := os.Stat(path)
	if errors.Is(err, syscall.ENOTDIR) || err == nil && !info.IsDir() {
		l.fail(l.where(flag), l.row(flag).key, fmt.Sprintf("%s: %v", path, syscall.ENOTDIR),
			"name a directory; it need not be there yet")
	}
}

func (l *loader) resolveTimes() {
	s := &l.s
	if s.Server.MinSessionTimeout == 0 {
		s.Server.MinSessionTimeout = 2 * s.Server.Tick
	}
	if s.Server.MaxSessionTimeout == 0 {
		s.Server.MaxSessionTimeout = 20 * s.Server.Tick
	}
	if s.Server.MinSessionTimeout > s.Server.MaxSessionTimeout {
		at := l.where("max-session-timeout")
		if l.given("min-session-timeout") {
			at = l.where("min-session-timeout")
		}
		l.fail(at, "minSessionTimeout", fmt.Sprintf("%d ms is more than maxSessionTimeout, %d ms",
			s.Server.MinSessionTimeout.Milliseconds(), s.Server.MaxSessionTimeout.Milliseconds()),
			"the defaults are 2 and 20 times tickTime")
	}
}

// minSnapCount is ZooKeeper's (ZooKeeperServer.getSnapCount).
const minSnapCount = 2

// minSnapRetain is ZooKeeper's (QuorumPeerConfig.MIN_SNAP_RETAIN_COUNT).
const minSnapRetain = 3

func (l *loader) resolveRest() {
	s := &l.s
	if !l.given("extended-types-enabled") {
		s.Server.ExtendedTypes = s.ConfigFile == ""
	}
	if n := &s.Consensus.SnapshotCommands; *n < minSnapCount {
		l.warn(l.where("snap-count"), "snapCount", "%d counts as %d, the least", *n, minSnapCount)
		*n = minSnapCount
	}
	if s.ZooKeeper.Settings.ListenBacklog != -1 {
		l.warn(l.where("client-port-listen-backlog"), "clientPortListenBacklog",
			"has no effect but to be shown by conf: the operating system's limit applies")
	}
	if s.Storage.Retain < minSnapRetain {
		l.warn(l.where("autopurge-snap-retain-count"), "autopurge.snapRetainCount",
			"%d counts as %d, the least", s.Storage.Retain, minSnapRetain)
		s.Storage.Retain = minSnapRetain
	}
	s.ZooKeeper.Words = slices.DeleteFunc(s.ZooKeeper.Words, func(w string) bool {
		unknown := !slices.Contains(fourLetterWords(), w)
		if unknown {
			l.warn(l.where("4lw-commands-whitelist"), "4lw.commands.whitelist",
				"%q is no four-letter word and has no effect; want *, or some of %s",
				shorten(w), strings.Join(fourLetterWords(), ", "))
		}
		return unknown
	})
	if l.readOnly && !slices.Contains(s.ZooKeeper.Words, "isro") {
		s.ZooKeeper.Words = append(s.ZooKeeper.Words, "isro")
		slices.Sort(s.ZooKeeper.Words)
	}
}

func (l *loader) resolveBackup() {
	b := &l.s.Backup
	if b.Directory != "" && b.Command != "" {
		l.fail(l.where("backup-command"), "backup.command", "is set besides backup.directory",
			"set one of them: a command gets the backup instead of the directory")
	}
	if b.Timeout > b.Interval && l.given("backup-timeout") {
		l.fail(l.where("backup-timeout"), "backup.timeout", "is longer than backup.interval",
			"want at most the interval, "+b.Interval.String())
	}
	b.Timeout = min(b.Timeout, b.Interval)
}
