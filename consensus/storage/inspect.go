package storage

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/hashicorp/raft"
	raftboltdb "github.com/hashicorp/raft-boltdb/v2"

	"github.com/zk-lite/zk-lite/consensus/raftlog"
)

// Inspect reads the newest snapshot and the log, of a server that may run: it changes nothing, and misses what is
// written meanwhile. What is not there is left out. The log of a server with log.store=boltdb cannot be read while it
// runs.
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
