package storage

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"time"

	"github.com/hashicorp/raft"
	raftboltdb "github.com/hashicorp/raft-boltdb/v2"
	"go.etcd.io/bbolt"
	bbolterrors "go.etcd.io/bbolt/errors"

	"github.com/zk-lite/zk-lite/consensus/raftlog"
)

// errDamaged reports that a bbolt file is not as bbolt wrote it.
var errDamaged = errors.New("it is damaged")

// checkBolt reads a bbolt file from beginning to end. bbolt panics at an invalid page, and the kernel kills a
// process that reads past the end of a truncated file: both are errDamaged here. A missing file is no error.
func checkBolt(path string) (err error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && info.Size() == 0 {
		return nil
	}
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if x := recover(); x != nil { // the database stays open: it may hold a lock
			err = fmt.Errorf("%w: %v", errDamaged, x)
		}
	}()
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{ReadOnly: true, Timeout: time.Second})
	var file *fs.PathError
	switch {
	case err == nil:
	case errors.Is(err, bbolterrors.ErrTimeout), errors.As(err, &file):
		return err
	default:
		return fmt.Errorf("%w: %w", errDamaged, err)
	}
	err = db.View(func(tx *bbolt.Tx) error {
		if tx.Size() > info.Size() {
			return fmt.Errorf("%w: it has %d bytes of %d", errDamaged, info.Size(), tx.Size())
		}
		return tx.ForEach(func(_ []byte, b *bbolt.Bucket) error {
			return b.ForEach(func(_, _ []byte) error { return nil })
		})
	})
	return errors.Join(err, db.Close())
}

// keyLog is the key of stable.db for the number of the log that it belongs to.
var keyLog = []byte("zk-lite.log")

// verifyLog checks that log, term and vote belong together: with the log of another server, or an older copy of
// either, a server would have forgotten what it has acknowledged. A server of release 1.0 has noted no log; the
// first one is accepted.
func (s *Store) verifyLog(c *Config) error {
	if s.Raftlog != nil {
		id, err := s.Stable.GetUint64(keyLog)
		if errors.Is(err, raftboltdb.ErrKeyNotFound) {
			id = s.Raftlog.ID()
			err = s.Stable.SetUint64(keyLog, id)
		}
		if err != nil {
			return fmt.Errorf("reading which log belongs to %s: %w", filepath.Join(c.Dir, stableName), err)
		}
		if id != s.Raftlog.ID() {
			return fmt.Errorf("the log in %s is not the one that this server has written, whose term and vote are in "+
				"%s: check dataLogDir; %s", c.LogDir, c.Dir, remedy)
		}
	}
	last, err := s.Log.LastIndex()
	if err != nil || last == 0 {
		return err
	}
	var l raft.Log
	if err := s.Log.GetLog(last, &l); err != nil {
		return fmt.Errorf("entry %d of raft's log: %w", last, err)
	}
	term, err := Term(s.Stable)
	if err != nil {
		return err
	}
	if l.Term > term { // which is written before any entry of it is (termStore)
		return fmt.Errorf("%s has term %d, and the log in %s an entry of term %d: the file is damaged, or an older "+
			"copy; %s", filepath.Join(c.Dir, stableName), term, c.LogDir, l.Term, remedy)
	}
	return nil
}

// verifyReach checks that snapshots and log belong together: entries that the log no longer has must be in a
// snapshot, and a data directory without an identity has no log, except for the entry with which an ensemble
// begins.
func (s *Store) verifyReach(c *Config, hasIdentity bool) error {
	first, err := s.Log.FirstIndex()
	if err != nil {
		return fmt.Errorf("reading raft's log in %s: %w", c.LogDir, err)
	}
	last, err := s.Log.LastIndex()
	if err != nil {
		return fmt.Errorf("reading raft's log in %s: %w", c.LogDir, err)
	}
	if !hasIdentity && last > 1 {
		return fmt.Errorf("%s has a log, with entries %d to %d, and %s does not say of which server: is its disk "+
			"mounted? Restore it, or empty both but for myid if this server is to begin anew",
			c.LogDir, first, last, c.Dir)
	}
	var newest uint64
	list, err := s.Snapshots.List()
	if err != nil {
		return fmt.Errorf("listing snapshots in %s: %w", c.Dir, err)
	}
	for _, x := range list {
		newest = max(newest, x.Index)
	}
	if first > newest+1 {
		return fmt.Errorf("the log in %s begins with entry %d, and the snapshots in %s end at entry %d: those between "+
			"are missing; %s", c.LogDir, first, c.Dir, newest, remedy)
	}
	return nil
}

// zookeeperDir is where every release of Apache ZooKeeper keeps its snapshots, under dataDir,
// and its log, under dataLogDir.
const zookeeperDir = "version-2"

// ownNames are in a directory that a server of zk-lite has used. The directory snapshots is not
// among them: an operator of ZooKeeper may have one.
var ownNames = []string{identityName, stableName, "raftlog", "raftlog.db"}

// RefuseZooKeeper finds ZooKeeper's data in directories that no server of zk-lite has used yet.
// A server that started there would serve an empty tree, as if all data were lost, and clients
// would create their znodes again. Next to data of our own it is only logged: that server has
// started before, and must start again. Nothing is created or opened.
func (c *Config) RefuseZooKeeper() error {
	logDir := c.LogDir
	if logDir == "" {
		logDir = c.Dir
	}
	for _, x := range []struct{ setting, dir string }{{"dataDir", c.Dir}, {"dataLogDir", logDir}} {
		found := filepath.Join(x.dir, zookeeperDir)
		if info, err := os.Stat(found); err != nil || !info.IsDir() {
			continue
		}
		if !hasOwn(c.Dir) && !hasOwn(logDir) {
			return fmt.Errorf("%s, in the directory of the setting %s, is the data of an Apache ZooKeeper, "+
				"beside which zk-lite does not start; set %s to another directory, and to take the data over run "+
				"zk-lite import-zookeeper --data-dir %s (docs/operations.md, \"Coming from ZooKeeper\")",
				found, x.setting, x.setting, x.dir)
		}
		c.Logger.Warn("the data of an Apache ZooKeeper is not read: this server has data of its own beside it; "+
			"remove the directory when you need it no more", "dir", found)
		return nil
	}
	return nil
}

func hasOwn(dir string) bool {
	for _, name := range ownNames {
		if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
			return true
		}
	}
	return false
}

// Inspect reads the newest snapshot and the log of a server that may run: it changes nothing, and misses concurrent
// writes. Missing files are left out. The log of a server with log.store=boltdb cannot be read while it runs.
func (c *Config) Inspect(snapshot func(io.Reader) error, entry func(*raft.Log) error) error {
	newest, err := newestSnapshotDir(c.Dir)
	if err != nil {
		return err
	}
	if newest != "" {
		f, err := os.Open(filepath.Join(c.Dir, "snapshots", newest, "state.bin"))
		if err != nil {
			return err
		}
		if err := errors.Join(snapshot(f), f.Close()); err != nil {
			return fmt.Errorf("%s: %w", f.Name(), err)
		}
	}
	dir := c.LogDir
	if dir == "" {
		dir = c.Dir
	}
	if c.Kind == LogBolt {
		return inspectBolt(filepath.Join(dir, "raftlog.db"), entry)
	}
	dir = filepath.Join(dir, "raftlog")
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return raftlog.Visit(dir, raftlog.Options{Logger: c.Logger}, entry)
}

func inspectBolt(path string, entry func(*raft.Log) error) (err error) {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	options := boltOptions()
	options.ReadOnly = true
	log, err := raftboltdb.New(raftboltdb.Options{Path: path, BoltOptions: options})
	if err != nil {
		return fmt.Errorf("opening raft's log %s: %w", path, err)
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	first, err := log.FirstIndex()
	last, lastErr := log.LastIndex()
	if err := errors.Join(err, lastErr); err != nil || last == 0 {
		return err
	}
	for i := first; i <= last; i++ {
		var l raft.Log
		if err := log.GetLog(i, &l); err != nil {
			return fmt.Errorf("entry %d of %s: %w", i, path, err)
		}
		if err := entry(&l); err != nil {
			return err
		}
	}
	return nil
}
