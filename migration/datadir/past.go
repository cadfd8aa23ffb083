package datadir

import (
	"errors"
	"fmt"
	"slices"

	"github.com/zk-lite/zk-lite/znode"
)

// Past is how a server's files stand to a state that others had, and what follows it in them.
type Past struct {
	Report  *Report
	Zxid    znode.Zxid // of the last transaction
	Digest  uint64     // of the znodes after it, by ZooKeeper's rules
	Reached bool       // the server got as far as the state
	Equal   bool       // its znodes were the same then
	Tail    [][]byte   // the transactions that follow the state, as replica.ParseTxn reads them

	at      znode.Zxid
	digest  uint64
	maxTail int
	bytes   int // of Tail
}

// ErrNewer reports that a state is too old for a comparison.
var ErrNewer = errors.New("the state is too old")

// Since restores the state as Load does, and on the way compares it with the state after transaction at, whose digest
// is given. The transactions after that have at most maxTail bytes.
//
// A snapshot holds changes of later transactions, so the state is only met exactly if its snapshot was complete by
// then: as long as the digests are not equal an older snapshot is tried.
//
// Errors: those of Load; ErrNewer if there is no snapshot that is as old as the state, or more than maxTail bytes
// follow it. The report is there with an error, too.
func Since(dataDir, logDir string, at znode.Zxid, digest uint64, maxTail int) (*Past, error) {
	d, err := find(dataDir, logDir)
	if err != nil {
		return &Past{Report: newReport()}, err
	}
	newer := len(d.snapshots)
	d.snapshots = slices.DeleteFunc(d.snapshots, func(f file) bool { return f.zxid > at })
	if newer -= len(d.snapshots); newer > 0 && len(d.snapshots) == 0 {
		return &Past{Report: newReport()}, fmt.Errorf("%w: all %d snapshots in %s are newer than transaction %v",
			ErrNewer, newer, d.data, at)
	}
	var first *Past
	for {
		p := &Past{Report: newReport(), at: at, digest: digest, maxTail: maxTail}
		l := &loader{directory: d, report: p.Report, past: p}
		l.report.DataDir, l.report.LogDir = d.data, d.logs
		err := l.load()
		switch {
		case err == nil && p.Equal:
			return p, nil
		case first == nil && err != nil:
			return p, err
		case first == nil:
			first = p
		}
		if err != nil || len(d.snapshots) < 2 || !first.Reached {
			return first, nil
		}
		d.snapshots = d.snapshots[1:]
	}
}

// before notes a transaction that is about to be applied.
func (p *Past) before(l *loader, e *Entry) error {
	if p == nil || e.Zxid <= p.at {
		return nil
	}
	if !p.Reached {
		p.Reached, p.Equal = true, l.replica.DigestIs(p.digest)
	}
	if p.bytes += len(e.Raw); p.bytes > p.maxTail {
		return fmt.Errorf("%w: more than %d bytes of transactions follow %v", ErrNewer, p.maxTail, p.at)
	}
	p.Tail = append(p.Tail, e.Raw)
	return nil
}

// end notes the state after the last transaction.
func (p *Past) end(l *loader) {
	if p == nil {
		return
	}
	p.Zxid, p.Digest = l.last, l.replica.Digest()
	if !p.Reached {
		p.Equal = l.replica.DigestIs(p.digest)
		p.Reached = p.Equal || l.last >= p.at
	}
}
