package datadir

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/zk-lite/zk-lite/migration/replica"
	"github.com/zk-lite/zk-lite/session"
	"github.com/zk-lite/zk-lite/znode"
)

// maxSnapshots bounds how many damaged snapshots are tried (FileSnap.deserialize).
const maxSnapshots = 100

// loader restores a state.
type loader struct {
	*directory
	report  *Report
	replica *replica.Replica
	checker *checker
	last    znode.Zxid // replayed, or of the snapshot
	torn    *Torn      // of the log before
	past    *Past      // nil, or what is noted on the way
	x       znode.Txn
}

// Load restores the state with which a server would start that has these directories, as zoo.cfg names them; an empty
// logDir is dataDir. The server must have stopped. The report is there with an error, too, as far as it goes.
//
// Errors: ErrEmpty; of the file system; a DamageError; and what else a server would not start with, or would lose: a
// missing transaction, a digest that does not fit, sessions with impossible ids, ACLs that are nowhere.
func Load(dataDir, logDir string) (*replica.Replica, *Report, error) {
	l := &loader{report: newReport()}
	var err error
	if l.directory, err = find(dataDir, logDir); err != nil {
		return nil, l.report, err
	}
	l.report.DataDir, l.report.LogDir = l.data, l.logs
	l.report.Ignored = append(l.report.Ignored, l.ignored...)
	if err := l.load(); err != nil {
		return nil, l.report, err
	}
	return l.replica, l.report, nil
}

func (l *loader) load() (err error) {
	if l.report.AcceptedEpoch, err = l.epoch("acceptedEpoch"); err != nil {
		return err
	}
	if l.report.CurrentEpoch, err = l.epoch("currentEpoch"); err != nil {
		return err
	}
	if err := l.readSnapshot(); err != nil {
		return err
	}
	logs := l.after(l.last)
	for i, f := range logs {
		if err := l.replay(f, i == len(logs)-1); err != nil {
			return err
		}
	}
	l.past.end(l)
	l.report.Zxid = l.last.String()
	if err := l.checker.end(l.replica, l.report); err != nil {
		return err
	}
	l.report.Zxid = l.replica.Zxid.String()
	return l.finish()
}

// readSnapshot reads the newest snapshot that is not damaged. Without one the state is empty.
func (l *loader) readSnapshot() error {
	for i, f := range l.snapshots {
		if i == maxSnapshots {
			break
		}
		s, r, err := readSnapshot(f.path)
		var damage *DamageError
		switch {
		case err == nil:
			l.replica, l.last = r, s.Zxid
			l.report.Snapshot = &SnapshotReport{
				File: s.Path, Zxid: s.Zxid.String(), Bytes: s.Size, Compression: s.Compression,
			}
			if s.Digest != nil {
				l.report.Snapshot.DigestZxid = s.Digest.Zxid.String()
			}
			l.checker = newChecker(r, s.Zxid, s.Digest, &l.report.Digests)
			return nil
		case !errors.As(err, &damage):
			return err
		}
		l.report.Skipped = append(l.report.Skipped, SkippedFile{f.path, damage.Error()})
	}
	if n := len(l.report.Skipped); n > 0 {
		return fmt.Errorf("none of the %d snapshots in %s can be used; of the newest: %s", n, l.data,
			l.report.Skipped[0].Why)
	}
	if first := l.entries[0]; counter(first.zxid) != 1 || epoch(first.zxid) > 1 {
		return fmt.Errorf("%s has no snapshot, and the logs in %s begin with transaction %v: older znodes are in no "+
			"file. ZooKeeper 3.5 and newer refuse this, too, unless zookeeper.snapshot.trust.empty=true; start one "+
			"server with it if you know that the logs are complete, and it writes a snapshot",
			l.data, l.logs, first.zxid)
	}
	l.replica = replica.New(znode.NewTree(), session.NewTable(), 0)
	l.checker = &checker{report: &l.report.Digests}
	return nil
}

func readSnapshot(path string) (*Snapshot, *replica.Replica, error) {
	s, err := OpenSnapshot(path)
	if err != nil {
		return nil, nil, err
	}
	r, err := s.Read()
	if closing := s.Close(); err == nil {
		err = closing
	}
	var damage *DamageError
	if err != nil && !errors.As(err, &damage) {
		// What no server writes may be damage: the seals tell.
		if again := verify(path); errors.As(again, &damage) {
			err = again
		}
	}
	return s, r, err
}

// verify reads a snapshot for its seals only.
func verify(path string) error {
	s, err := OpenSnapshot(path)
	if err != nil {
		return err
	}
	return errors.Join(s.Walk(replica.Visitor{}), s.Close())
}

// replay applies the transactions of a log that are not in the state yet.
func (l *loader) replay(f file, newest bool) error {
	log, err := OpenLog(f.path)
	if err != nil {
		return err
	}
	return errors.Join(l.replayLog(f, log, newest), log.Close())
}

func (l *loader) replayLog(f file, log *Log, newest bool) error {
	if log.Size == 0 && !newest {
		return &DamageError{f.path, 0, errors.New("the log is empty, and a newer one follows")}
	}
	p := LogReport{File: f.path}
	for {
		e, err := log.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if e.Zxid <= l.last {
			if p.Transactions > 0 || l.report.Transactions > 0 {
				l.report.Repeated++
			}
			continue
		}
		if err := l.apply(&e); err != nil {
			return fmt.Errorf("%s, entry at byte %d: %w", f.path, e.Offset, err)
		}
		if p.Last = e.Zxid.String(); p.First == "" {
			p.First = p.Last
		}
		p.Transactions++
	}
	l.report.Logs = append(l.report.Logs, p)
	if l.torn = log.Torn(); l.torn != nil && log.Size > 0 {
		l.report.Torn = append(l.report.Torn, *l.torn)
	}
	return nil
}

func (l *loader) apply(e *Entry) error {
	if err := l.follows(e.Zxid); err != nil {
		return err
	}
	if err := l.past.before(l, e); err != nil {
		return err
	}
	if err := l.replica.Apply(&l.x, e.Txn, l.checker.fuzzy); err != nil {
		return err
	}
	l.last = e.Zxid
	l.report.Transactions++
	l.report.Time = time.UnixMilli(e.Time).UTC()
	return l.checker.after(l.replica, e.Txn)
}

// follows refuses a gap: every request that changes something has a zxid, also if it fails.
func (l *loader) follows(zxid znode.Zxid) error {
	want := l.last + 1
	if epoch(zxid) > epoch(l.last) {
		want = znode.Zxid(epoch(zxid))<<32 | 1
	}
	if zxid == want {
		return nil
	}
	why := ""
	if l.torn != nil {
		why = fmt.Sprintf(" %s ends inside an entry at byte %d (%s).", l.torn.File, l.torn.Offset, l.torn.Why)
	}
	return fmt.Errorf("transaction %v comes after %v: those from %v to %v are missing.%s Take the directory of "+
		"another server, or restore the logs that were deleted", zxid, l.last, want, zxid-1, why)
}

// finish completes the state, and counts it.
func (l *loader) finish() error {
	r, p := l.replica, l.report
	if paths := r.Unresolved(); len(paths) > 0 {
		return fmt.Errorf("the ACLs of %d znodes are in neither the snapshot's table nor the logs: %q. Let their "+
			"owner set them, and ZooKeeper write another snapshot", len(paths), paths[:min(len(paths), 5)])
	}
	if err := refuseOldTTLs(r); err != nil {
		return err
	}
	p.Ownerless = append(p.Ownerless, r.Finish()...)
	if len(p.Ownerless) > 0 {
		p.remark("%d ephemerals belong to sessions that do not exist: they are deleted, as at a server's start",
			len(p.Ownerless))
	}
	p.count(r)
	if p.Repeated > 0 {
		p.remark("%d transactions are in the logs twice: they count once", p.Repeated)
	}
	p.remark("%s is left out: each server writes its own", znode.ConfigPath)
	return nil
}

// refuseOldTTLs refuses the znodes with a TTL of ZooKeeper 3.5.3 (EphemeralTypeEmulate353): every later server takes
// them for ephemerals of a session that does not exist, and deletes them, unless zookeeper.emulate353TTLNodes is set.
func refuseOldTTLs(r *replica.Replica) error {
	const mark, high = 0x80, 0x00ffff << 40
	var paths []string
	r.Tree.EphemeralOwners(func(id znode.SessionID, _ int) {
		if uint64(id)>>56 == mark && uint64(id)&high == 0 && r.Sessions.Get(id) == nil {
			paths = append(paths, r.Tree.Ephemerals(id, "")...)
		}
	})
	if len(paths) == 0 {
		return nil
	}
	slices.Sort(paths)
	return fmt.Errorf("%d znodes, such as %q, have a TTL in the form of ZooKeeper 3.5.3 "+
		"(zookeeper.emulate353TTLNodes), which is not supported: create them again with a server from 3.5.4 on",
		len(paths), paths[0])
}
