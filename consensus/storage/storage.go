// Package storage keeps what must survive a server: its identity, raft's log, term and vote, and snapshots. Open
// verifies all of it, and names what is damaged with its remedy. The Monitor wraps raft's stores, and measures
// for how long raft waits for them.
//
// It starts no goroutine and has no locks: the Monitor's fields are atomic, and raft's main loop writes them.
package storage

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/hashicorp/raft"
	raftboltdb "github.com/hashicorp/raft-boltdb/v2"
	"go.etcd.io/bbolt"
	bbolterrors "go.etcd.io/bbolt/errors"

	"github.com/zk-lite/zk-lite/consensus/raftlog"
	"github.com/zk-lite/zk-lite/consensus/raftlogger"
	"github.com/zk-lite/zk-lite/consensus/selfcheck"
	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/internal/durable"
)

// Store is a server's durable state.
type Store struct {
	Identity  IdentityStore
	Log       raft.LogStore
	Stable    raft.StableStore
	Snapshots raft.SnapshotStore
	// Raftlog is Log where that is a raftlog, whose syncs can be overlapped; nil otherwise.
	Raftlog *raftlog.Store
	Close   func() error
	// History records the applied entries; nil: no record.
	History selfcheck.Store
	Dir     string // of the server's other files; empty: it has none

	kept []kept
}

// Identity is the server and the ensemble that a data directory belongs to.
// It is written once, when the ensemble is bootstrapped.
type Identity struct {
	Ensemble [16]byte
	Server   state.ServerID
	// Bootstrapping is set on the one server that bootstraps the ensemble, until all voters have confirmed.
	Bootstrapping bool
	// Seed is the digest of the imported data with which the ensemble is founded, until this server has its share of
	// that done; empty: none.
	Seed string
}

// IdentityStore keeps the Identity.
type IdentityStore interface {
	// Load returns nil when there is none yet.
	Load() (*Identity, error)
	// Save returns when it is durable.
	Save(Identity) error
}

// LogKind chooses the store of raft's log.
type LogKind string

// The kinds.
const (
	LogRaftlog LogKind = "raftlog" // segments, a checksum on every record
	LogBolt    LogKind = "boltdb"  // hashicorp/raft-boltdb
)

// Config configures where on disk a server keeps its files.
type Config struct {
	Dir    string // identity, term and vote, snapshots
	LogDir string // raft's log; empty: Dir
	Kind   LogKind
	// NoDirectLog keeps a raftlog from being written past the page cache.
	NoDirectLog bool
	Retain      int // snapshots kept, at least 2
	Logger      *slog.Logger
	OnFatal     func(error) // see raftlog.Options
}

// remedy is the advice for a damaged or missing file. Removing it is no remedy: a server
// without its term and vote may vote twice, and an older snapshot does not reach to the
// beginning of the log.
const remedy = "restore the file, or remove this server from the ensemble, empty its data " +
	"directories but for myid, and add it as a new one; a standalone server starts " +
	"empty, and is given a backup"

// Open opens, or creates, a server's storage. It verifies the log and the newest snapshot: an
// error names the damaged file and the remedy. The data of an Apache ZooKeeper is an error too,
// before anything is created (RefuseZooKeeper).
func Open(c Config) (Store, error) {
	if c.LogDir == "" {
		c.LogDir = c.Dir
	}
	if err := c.RefuseZooKeeper(); err != nil {
		return Store{}, err
	}
	for _, x := range []struct{ setting, dir string }{{"dataDir", c.Dir}, {"dataLogDir", c.LogDir}} {
		if err := os.MkdirAll(x.dir, 0o700); err != nil {
			return Store{}, fmt.Errorf("making the directory %s, given by the setting %s: %w",
				x.dir, x.setting, err)
		}
	}
	if err := closeToOthers(filepath.Join(c.Dir, "snapshots"), c.Logger); err != nil {
		return Store{}, err
	}
	s := Store{
		Identity: identityFile(filepath.Join(c.Dir, identityName)),
		History:  historyFile(filepath.Join(c.Dir, historyName)),
		Dir:      c.Dir,
	}
	id, err := s.Identity.Load()
	if err != nil {
		return Store{}, err
	}
	stable, err := openStable(c.Dir, id != nil)
	if err != nil {
		return Store{}, err
	}
	s.Stable, s.Close = stable, stable.Close
	if err := s.openLog(&c, id != nil, stable.Close); err != nil {
		return Store{}, errors.Join(err, stable.Close())
	}
	if err := verifySnapshots(c.Dir); err != nil {
		return Store{}, errors.Join(err, s.Close())
	}
	s.Snapshots, err = raft.NewFileSnapshotStoreWithLogger(c.Dir, max(2, c.Retain),
		raftlogger.New(context.Background(), c.Logger, "snapshot"))
	if err != nil {
		return Store{}, errors.Join(fmt.Errorf("opening snapshots in %s: %w", c.Dir, err), s.Close())
	}
	if err := errors.Join(s.verifyReach(&c, id != nil), s.verifyLog(&c), s.keep(&c)); err != nil {
		return Store{}, errors.Join(err, s.Close())
	}
	return s, nil
}

// openStable opens the store of term and vote. A server that has an identity must have one
// already: the identity is written after it (membership, bootstrap.go).
func openStable(dir string, hasIdentity bool) (*raftboltdb.BoltStore, error) {
	path := filepath.Join(dir, stableName)
	if info, err := os.Stat(path); hasIdentity &&
		(errors.Is(err, fs.ErrNotExist) || err == nil && info.Size() == 0) { // bbolt takes an empty file for a new one
		return nil, fmt.Errorf("%s, with the term and the vote of this server, is missing; %s", path, remedy)
	}
	err := checkBolt(path)
	var stable *raftboltdb.BoltStore
	if err == nil {
		stable, err = raftboltdb.New(raftboltdb.Options{Path: path, BoltOptions: boltOptions()})
	}
	switch {
	case errors.Is(err, bbolterrors.ErrTimeout):
		return nil, fmt.Errorf("data directory %s is in use by another process", dir)
	case errors.Is(err, errDamaged):
		return nil, fmt.Errorf("%s, with the term and the vote of this server: %w; %s", path, err, remedy)
	case err != nil:
		return nil, fmt.Errorf("opening %s: %w", path, err)
	}
	return stable, nil
}

func boltOptions() *bbolt.Options {
	return &bbolt.Options{
		Timeout: time.Second, NoFreelistSync: true, FreelistType: bbolt.FreelistMapType,
	}
}

func (s *Store) openLog(c *Config, hasIdentity bool, closeStable func() error) error {
	switch c.Kind {
	case LogRaftlog, "":
		dir := filepath.Join(c.LogDir, "raftlog")
		log, err := raftlog.Open(dir, raftlog.Options{
			Logger: c.Logger, OnFatal: c.OnFatal, MustExist: hasIdentity, NoDirect: c.NoDirectLog,
		})
		if err != nil {
			return fmt.Errorf("opening raft's log in %s: %w", dir, err)
		}
		s.Log, s.Raftlog = log, log
		s.Close = func() error { return errors.Join(log.Close(), closeStable()) }
	case LogBolt:
		path := filepath.Join(c.LogDir, "raftlog.db")
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) && hasIdentity {
			return fmt.Errorf("opening raft's log: %s is missing, but this server belongs to an ensemble; %s",
				path, remedy)
		}
		if err := checkBolt(path); err != nil {
			return fmt.Errorf("opening raft's log %s: %w; %s", path, err, remedy)
		}
		log, err := raftboltdb.New(raftboltdb.Options{Path: path, BoltOptions: boltOptions()})
		if err != nil {
			return fmt.Errorf("opening raft's log %s: %w", path, err)
		}
		cache, err := raft.NewLogCache(4096, log)
		if err != nil {
			return errors.Join(err, log.Close())
		}
		s.Log = cache
		s.Close = func() error { return errors.Join(log.Close(), closeStable()) }
	default:
		return fmt.Errorf("unknown log store %q; there are %q and %q", c.Kind, LogRaftlog, LogBolt)
	}
	return nil
}

// verifySnapshots reads the newest snapshot from beginning to end. raft would fall back to an
// older one silently.
func verifySnapshots(dir string) error {
	store, err := raft.NewFileSnapshotStore(dir, 2, io.Discard)
	if err != nil {
		return fmt.Errorf("opening snapshots in %s: %w", dir, err)
	}
	list, err := store.List()
	if err != nil {
		return fmt.Errorf("listing snapshots in %s: %w", dir, err)
	}
	newest, err := newestSnapshotDir(dir)
	if err != nil {
		return err
	}
	if newest == "" {
		return nil
	}
	path := filepath.Join(dir, "snapshots", newest)
	if len(list) == 0 || list[0].ID != newest {
		return fmt.Errorf("snapshot %s is damaged: its meta.json cannot be read; %s", path, remedy)
	}
	_, in, err := store.Open(newest) // verifies raft's checksum
	if err != nil {
		return fmt.Errorf("snapshot %s is damaged: %w; %s", filepath.Join(path, "state.bin"), err, remedy)
	}
	return in.Close()
}

// identityFile is the IdentityStore of a data directory.
type identityFile string

// formatVersion is that of the whole data directory: it covers identity.json, and that the other files have
// versions. A directory in which an ensemble is being founded with imported data has seedVersion: release 1.0 would go
// on without the data.
const (
	formatVersion = 1
	seedVersion   = 2
)

type identityJSON struct {
	Version       int    `json:"version"`
	Ensemble      string `json:"ensemble"`
	Server        uint64 `json:"server"`
	Bootstrapping bool   `json:"forming,omitempty"`
	Seed          string `json:"seed,omitempty"`
}

func (f identityFile) Load() (*Identity, error) {
	b, err := os.ReadFile(string(f))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading identity: %w", err)
	}
	var j identityJSON
	if err := json.Unmarshal(b, &j); err != nil {
		return nil, fmt.Errorf("identity %s is damaged: %w; %s", string(f), err, remedy)
	}
	switch {
	case j.Version == 0:
		return nil, fmt.Errorf("the data directory of %s was written by a build before v0.9, which this release "+
			"cannot "+
			"read: start that build again, save the tree with zk-lite export, and import it into servers with "+
			"empty data "+
			"directories (docs/operations.md, \"Upgrade\")", string(f))
	case j.Version > seedVersion:
		return nil, fmt.Errorf("the data directory of %s has format version %d, of a newer release; this one reads "+
			"versions up to %d: start the newer release", string(f), j.Version, seedVersion)
	}
	id := &Identity{Server: state.ServerID(j.Server), Bootstrapping: j.Bootstrapping, Seed: j.Seed}
	if id.Ensemble, err = ParseEnsemble(j.Ensemble); err != nil {
		return nil, fmt.Errorf("identity %s is damaged: %w; %s", string(f), err, remedy)
	}
	return id, nil
}

func (f identityFile) Save(id Identity) error {
	j := identityJSON{
		Version:  formatVersion,
		Ensemble: fmt.Sprintf("%x", id.Ensemble), Server: uint64(id.Server), Bootstrapping: id.Bootstrapping,
		Seed: id.Seed,
	}
	if j.Seed != "" {
		j.Version = seedVersion
	}
	b, err := json.Marshal(j)
	if err != nil {
		return fmt.Errorf("writing identity: %w", err)
	}
	if err := durable.WriteFile(string(f), append(b, '\n')); err != nil {
		return fmt.Errorf("writing identity: %w", err)
	}
	return nil
}
