package inspect

import (
	"errors"
	"fmt"
	"io"

	"github.com/zk-lite/zk-lite/migration/datadir"
	"github.com/zk-lite/zk-lite/migration/replica"
	"github.com/zk-lite/zk-lite/znode"
)

// openNumber is the number of the ACL world:anyone:all, which no table has.
const openNumber = -1

// remedyFile is what to do about a damaged file of ZooKeeper's.
const remedyFile = "take an older snapshot with the logs that follow it, or the directory of another server"

// printSnapshot prints a snapshot of ZooKeeper's.
func printSnapshot(p *printer, path string) error {
	s, err := datadir.OpenSnapshot(path)
	if err != nil {
		return fmt.Errorf("%w; want a snapshot of ZooKeeper, plain or compressed; if it is one, %s", err, remedyFile)
	}
	defer func() { _ = s.Close() }() // it was only read
	head := &fileItem{Kind: "file", File: path, Format: "snapshot of ZooKeeper"}
	if s.Compression != "" {
		head.Format += ", " + s.Compression
	}
	if s.Zxid != 0 {
		head.Zxid = (*hex)(&s.Zxid)
	}
	if err := p.put(head); err != nil {
		return err
	}
	t := newTally()
	var digest znode.ZooKeeperDigest
	lists := map[int64][]znode.ACL{openNumber: znode.OpenACL}
	err = s.Walk(replica.Visitor{
		Session: func(id znode.SessionID, millis int32) error {
			t.session(id, int64(millis))
			return nil
		},
		ACL: func(number int64, list []znode.ACL) error {
			lists[number] = list
			return nil
		},
		Znode: func(r *znode.Record, number int64) error {
			r.ACL = lists[number]
			t.znode(r)
			digest.Add(r)
			return p.put(p.znode(r))
		},
	})
	var damage *datadir.DamageError
	if errors.As(err, &damage) {
		err = fmt.Errorf("%w; %s", err, remedyFile)
	}
	if err := errors.Join(err, t.put(p)); err != nil {
		return err
	}
	sessions := len(t.sessions)
	end := &endItem{Kind: "end", Znodes: &t.znodes, Sessions: &sessions}
	if end.Digest, end.Note, err = judge(s, &digest); err != nil {
		return fmt.Errorf("%s: %w; %s", path, err, remedyFile)
	}
	return p.put(end)
}

// judge compares the digest in a snapshot with that of its znodes. A snapshot may hold changes of transactions that
// came while it was written: its digest is then that of the last of them, once they have been repeated.
func judge(s *datadir.Snapshot, have *znode.ZooKeeperDigest) (text, note string, err error) {
	switch d := s.Digest; {
	case d == nil:
		return "", "the checksum fits; there is no digest", nil
	case have.Is(d.Value):
		return fmt.Sprintf("%016x", d.Value), "checksum and digest fit", nil
	case d.Zxid == s.Zxid && s.Last <= s.Zxid:
		return "", "", fmt.Errorf("the znodes have the digest %016x; want %016x, although nothing was changed "+
			"while the snapshot was written", have[0], d.Value)
	default:
		return fmt.Sprintf("%016x", d.Value), fmt.Sprintf("the checksum fits; the digest is that of zxid %v, after "+
			"the transactions that came while this was written", d.Zxid), nil
	}
}

// printLog prints a transaction log of ZooKeeper's. One that is written meanwhile may look damaged: what was read as
// its end has become an entry that others follow. It is read on until that brings nothing new.
func printLog(p *printer, path string) error {
	if err := p.put(&fileItem{Kind: "file", File: path, Format: "log of ZooKeeper"}); err != nil {
		return err
	}
	end := &endItem{Kind: "end", Txns: new(int), Note: "every transaction's checksum fits"}
	var seen int64 // offset of the last entry that was printed
	for again := false; ; again = true {
		from := seen
		torn, err := p.entries(path, from, func(offset int64) { *end.Txns, seen = *end.Txns+1, offset })
		var damage *datadir.DamageError
		switch {
		case errors.As(err, &damage) && (!again || seen > from):
			continue
		case err != nil:
			return err // which says what to do
		case torn != nil:
			end.Offset = torn.Offset
			end.Note += fmt.Sprintf("; at byte %d it ends inside one, which was acknowledged to no one: %s",
				torn.Offset, torn.Why)
		}
		return p.put(end)
	}
}

// entries prints the entries of a log after one at an offset, and returns where it is torn.
func (p *printer) entries(path string, after int64, printed func(offset int64)) (*datadir.Torn, error) {
	l, err := datadir.OpenLog(path)
	if err != nil {
		return nil, fmt.Errorf("%w; %s", err, remedyFile)
	}
	defer func() { _ = l.Close() }() // it was only read
	for {
		e, err := l.Next()
		switch {
		case errors.Is(err, io.EOF):
			return l.Torn(), nil
		case err != nil:
			return nil, err
		case e.Offset <= after:
			continue
		}
		item := &txnItem{
			Kind: "transaction", Offset: e.Offset, Time: timeText(e.Time), Session: hex(e.Session), Cxid: e.Cxid,
			Zxid: hex(e.Zxid), change: p.transaction(&e.Change),
		}
		if e.HasDigest {
			item.Digest = fmt.Sprintf("%016x", e.Txn.Digest)
		}
		if err := p.put(item); err != nil {
			return nil, err
		}
		printed(e.Offset)
	}
}
