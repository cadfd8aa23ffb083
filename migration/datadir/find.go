package datadir

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/zk-lite/zk-lite/znode"
)

// versionDir is the directory in dataDir and dataLogDir that holds the files.
const versionDir = "version-2"

// ErrEmpty reports that a directory holds no data of a ZooKeeper server.
var ErrEmpty = errors.New("no ZooKeeper data")

// file is a snapshot or a log in a directory.
type file struct {
	path string
	zxid znode.Zxid
}

// directory is what a data directory and a log directory hold.
type directory struct {
	data, logs string // that hold the files
	snapshots  []file // newest first
	entries    []file // logs, oldest first
	ignored    []string
}

// find lists the files of a server. Both directories can be given as in zoo.cfg, or with version-2 at their end.
func find(dataDir, logDir string) (*directory, error) {
	d := new(directory)
	var err error
	if d.data, err = holder(dataDir); err != nil {
		return nil, err
	}
	if d.logs = d.data; logDir != "" {
		if d.logs, err = holder(logDir); err != nil {
			return nil, err
		}
		if sameDir(d.data, d.logs) {
			d.logs = d.data
		}
	}
	if err := d.list(d.data, KindSnapshot); err != nil {
		return nil, err
	}
	if d.logs != d.data {
		if err := d.list(d.logs, KindLog); err != nil {
			return nil, err
		}
	}
	order := func(a, b file) int { return cmp.Or(cmp.Compare(a.zxid, b.zxid), strings.Compare(a.path, b.path)) }
	slices.SortFunc(d.snapshots, func(a, b file) int { return order(b, a) })
	slices.SortFunc(d.entries, order)
	if len(d.snapshots)+len(d.entries) == 0 {
		return nil, fmt.Errorf("%w in %s: it has no snapshot.* and no log.* file; zoo.cfg names it as dataDir",
			ErrEmpty, d.data)
	}
	return d, nil
}

// holder returns the directory that holds the files: dir or its version-2.
func holder(dir string) (string, error) {
	info, err := os.Stat(dir)
	switch {
	case err != nil:
		return "", err
	case !info.IsDir():
		return "", fmt.Errorf("%s is no directory; want the one that zoo.cfg names as dataDir or dataLogDir", dir)
	}
	inner := filepath.Join(dir, versionDir)
	if info, err := os.Stat(inner); err == nil && info.IsDir() {
		return filepath.Clean(inner), nil
	}
	return filepath.Clean(dir), nil
}

// sameDir reports whether two names, perhaps by way of a link, are of one directory.
func sameDir(a, b string) bool {
	x, errX := os.Stat(a)
	y, errY := os.Stat(b)
	return errX == nil && errY == nil && os.SameFile(x, y)
}

// list lists a directory. Like a server, it refuses a second kind of file where two directories are configured
// (FileTxnSnapLog.checkLogDir): these would be left out.
func (d *directory) list(dir string, only Kind) error {
	names, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		path := filepath.Join(dir, name.Name())
		kind, zxid, _ := parseName(path)
		switch {
		case kind == KindOther || !name.Type().IsRegular() && name.Type()&os.ModeSymlink == 0:
			if looksLikeData(name.Name()) {
				d.ignored = append(d.ignored, path)
			}
		case kind != only && d.data != d.logs:
			return fmt.Errorf("%s is a %s in the directory for each %s: give both directories as zoo.cfg has them",
				path, kind, only)
		case kind == KindSnapshot:
			d.snapshots = append(d.snapshots, file{path, zxid})
		case kind == KindLog:
			d.entries = append(d.entries, file{path, zxid})
		}
	}
	return nil
}

// looksLikeData reports whether someone may take a file that is ignored for a snapshot or a log.
func looksLikeData(name string) bool {
	return strings.HasPrefix(name, string(KindSnapshot)+".") || strings.HasPrefix(name, string(KindLog)+".")
}

// after returns the logs that may hold transactions after a zxid: from the last one that begins at it or before
// (FileTxnLog.getLogFiles).
func (d *directory) after(zxid znode.Zxid) []file {
	first := 0
	for i := range d.entries {
		if d.entries[i].zxid <= zxid {
			first = i
		}
	}
	return d.entries[first:]
}

// epoch reads acceptedEpoch or currentEpoch; nil if there is none (a standalone server).
func (d *directory) epoch(name string) (*int64, error) {
	path := filepath.Join(d.data, name)
	b, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(b[:min(len(b), 64)])), 10, 64)
	if err != nil {
		return nil, &DamageError{path, 0, fmt.Errorf("%w; want a decimal number", err)}
	}
	return &n, nil
}
