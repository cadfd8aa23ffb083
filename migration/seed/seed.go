// Package seed is the state of a ZooKeeper ensemble as ours goes on from it, and the file in a data directory that
// holds it until an ensemble is founded (founding). The file has the format of a snapshot. Check compares the state
// with what a server's settings allow.
//
// It does not read ZooKeeper's files (datadir does), and founds nothing. It has no goroutine and no lock.
package seed

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/internal/durable"
	"github.com/zk-lite/zk-lite/migration/replica"
)

// Name is the file's, in a data directory.
const Name = "zookeeper.seed"

// Seed is the state with which an ensemble is founded.
type Seed struct {
	path    string // empty: it has no file yet
	machine *state.Machine
	digest  string
}

// ErrExists reports a data directory that has a seed.
var ErrExists = errors.New("data were imported already, and wait for the first start")

// New makes the seed of a ZooKeeper server's state, which it keeps. Zxids go on above all that a client of any server
// of that ensemble can have seen; epoch is the latest one that is known of it.
//
// Errors: ACLs that are not known; an epoch too high to go on from.
func New(r *replica.Replica, epoch uint64) (*Seed, error) {
	if paths := r.Unresolved(); len(paths) > 0 {
		return nil, fmt.Errorf("the ACLs of %d znodes, such as %q, are not in the snapshot, and no transaction after "+
			"it brings them: give the logs that belong to the snapshot too", len(paths), paths[0])
	}
	epoch = max(epoch, uint64(r.Zxid)>>32)
	if epoch+state.TermJump >= state.TermLimit {
		return nil, fmt.Errorf("ZooKeeper's epoch is %d, and cannot be raised by %d, above all that clients may have "+
			"seen: it has to stay below %d; copy the tree with zk-lite export and zk-lite import", epoch,
			state.TermJump, state.TermLimit)
	}
	m, err := state.NewFrom(r.Tree, r.Sessions, r.Zxid, epoch+state.TermJump)
	if err != nil {
		return nil, err
	}
	return newSeed("", m), nil
}

func newSeed(path string, m *state.Machine) *Seed {
	return &Seed{path: path, machine: m, digest: fmt.Sprintf("%016x", m.Digest())}
}

// Load reads and checks the seed in a data directory; nil: there is none. An error names the file.
func Load(dir string) (*Seed, error) {
	if dir == "" {
		return nil, nil
	}
	path := filepath.Join(dir, Name)
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the data imported from ZooKeeper: %w", err)
	}
	m, err := state.ReadSnapshot(bufio.NewReader(f))
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, fmt.Errorf("%s, the data imported from ZooKeeper: %w; delete the file, and run zk-lite "+
			"import-zookeeper again, or start without them", path, err)
	}
	return newSeed(path, m), nil
}

// CheckNone returns ErrExists if a data directory has a seed.
func CheckNone(dir string) error {
	path := filepath.Join(dir, Name)
	if _, err := os.Lstat(path); err == nil {
		return fmt.Errorf("%w: %s; to import others, delete that file first", ErrExists, path)
	}
	return nil
}

// Save writes the seed into a data directory, and returns when it is durable. Errors: ErrExists.
func (s *Seed) Save(dir string) error {
	path := filepath.Join(dir, Name)
	if err := CheckNone(dir); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("making the data directory: %w", err)
	}
	tmp := path + ".tmp"
	if err := s.write(tmp); err != nil {
		return errors.Join(fmt.Errorf("writing %s: %w", tmp, err), os.Remove(tmp))
	}
	if err := durable.Rename(tmp, path); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	s.path = path
	return nil
}

func (s *Seed) write(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	snapshot := s.machine.Snapshot()
	defer snapshot.Release()
	return errors.Join(snapshot.Write(f), f.Sync(), f.Close())
}

// Path is the file's; empty: there is none.
func (s *Seed) Path() string { return s.path }

// Digest is a text that equal seeds have in common, and others do not.
func (s *Seed) Digest() string { return s.digest }

// Machine is the state, after entry 1 of raft's log, of an ensemble that has no servers yet.
func (s *Seed) Machine() *state.Machine { return s.machine }

// Remove removes the file, whose state is of no use afterwards.
func (s *Seed) Remove() error {
	s.machine = nil
	if err := os.Remove(s.path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
