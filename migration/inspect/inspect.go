// Package inspect prints what files hold: ZooKeeper's snapshots and transaction logs, and our backups, snapshots and
// logs, as ZooKeeper's SnapshotFormatter and TxnLogToolkit do with theirs. It finds the kind of a file by its content,
// holds no more than one znode, one entry or one segment of it in memory (and the sessions), verifies every checksum
// and digest on the way, and changes nothing: a server may have the file open.
//
// It has no goroutine and no lock.
package inspect

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/zk-lite/zk-lite/consensus/raftlog"
)

// Options are what to print, and how.
type Options struct {
	JSON bool // an object a line
	// Data is whether to print data and the hashes of digest identities. Passwords and tokens are never printed.
	Data bool
}

// ErrUnknown reports a file of none of the kinds.
var ErrUnknown = errors.New("unknown format")

// kinds of files, by what they begin with.
var kinds = []struct {
	magic string
	print func(*printer, string) error
}{
	{"zkls\x00", printState},
	{raftlog.SegmentMagic, func(p *printer, path string) error { return printRaftLog(p, path, false) }},
	{"ZKLG", printLog},
	{"ZKSN", printSnapshot},
	{"\x1f\x8b", printSnapshot},
	{"\x82SNAPPY\x00", printSnapshot},
}

// File prints what the file, or our log's or snapshot's directory, at path holds. What comes before a damage is
// printed.
//
// Errors: ErrUnknown; damage, with file, offset and what to do; of the file system, of w, and of ctx when it ends.
func File(ctx context.Context, w io.Writer, path string, o Options) error {
	p := newPrinter(ctx, w, o)
	err := p.file(path)
	return errors.Join(err, p.w.Flush())
}

func (p *printer) file(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if info.IsDir() {
		return p.directory(path)
	}
	head, err := headOf(path)
	if err != nil {
		return err
	}
	for _, k := range kinds {
		if bytes.HasPrefix(head, []byte(k.magic)) {
			return k.print(p, path)
		}
	}
	const bolt = "\xed\xda\x0c\xed" // bbolt's magic, on little-endian machines
	switch {
	case len(head) == 0:
		return fmt.Errorf("%s: %w: the file is empty", path, ErrUnknown)
	case len(head) >= 20 && string(head[16:20]) == bolt:
		return fmt.Errorf("%s: %w: it is a database of bbolt; logs of servers with log.store=boltdb are not read",
			path, ErrUnknown)
	}
	return fmt.Errorf("%s: %w: it begins with %q; known are ZooKeeper's snapshot.* and log.*, and of zk-lite a "+
		"backup, a snapshot's state.bin and the segments in dataDir/raftlog", path, ErrUnknown,
		head[:min(len(head), 8)])
}

// headOf returns up to 20 bytes of a file's beginning.
func headOf(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b := make([]byte, 20)
	n, err := io.ReadFull(f, b)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, err
	}
	return b[:n], nil
}

// directory prints our log, or a snapshot of ours.
func (p *printer) directory(path string) error {
	for name, print := range map[string]func(string) error{
		"manifest":  func(string) error { return printRaftLog(p, path, true) },
		"state.bin": func(file string) error { return printState(p, file) },
	} {
		file := filepath.Join(path, name)
		if _, err := os.Stat(file); err == nil {
			return print(file)
		} else if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return fmt.Errorf("%s: %w: a directory that is neither dataDir/raftlog nor dataDir/snapshots/ID; name the files "+
		"in it: ZooKeeper's are in version-2", path, ErrUnknown)
}
