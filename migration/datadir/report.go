package datadir

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/zk-lite/zk-lite/migration/replica"
	"github.com/zk-lite/zk-lite/znode"
)

// Report is what Load found. Sizes are in bytes; zxids and session ids are text, 0x and hexadecimal digits.
type Report struct {
	DataDir string `json:"dataDir"` // that holds the snapshots
	LogDir  string `json:"logDir"`  // that holds the logs

	Snapshot *SnapshotReport `json:"snapshot"` // nil: there is none, and the logs begin with the first transaction
	Skipped  []SkippedFile   `json:"skipped"`  // newer snapshots that are damaged
	Ignored  []string        `json:"ignored"`  // files that are neither snapshots nor logs by their names
	Logs     []LogReport     `json:"logs"`
	Torn     []Torn          `json:"torn"` // logs that end inside an entry

	Transactions  int       `json:"transactions"`  // replayed after the snapshot
	Repeated      int       `json:"repeated"`      // that were in two logs, and replayed once
	Zxid          string    `json:"zxid"`          // of the last one
	Time          time.Time `json:"time,omitzero"` // of the last one; zero if none was replayed
	AcceptedEpoch *int64    `json:"acceptedEpoch"`
	CurrentEpoch  *int64    `json:"currentEpoch"`

	Znodes     int      `json:"znodes"`
	Bytes      int64    `json:"bytes"` // paths and data
	Sessions   int      `json:"sessions"`
	Ephemerals int      `json:"ephemerals"`
	Ownerless  []string `json:"ownerless"` // ephemerals of sessions that do not exist, deleted as a server deletes them
	Containers int      `json:"containers"`
	TTLs       int      `json:"ttls"`
	Quotas     int      `json:"quotas"`

	Digests  DigestReport `json:"digests"`
	Warnings []string     `json:"warnings"`
}

// SnapshotReport describes the snapshot that was read.
type SnapshotReport struct {
	File        string `json:"file"`
	Zxid        string `json:"zxid"`
	Bytes       int64  `json:"bytes"`
	Compression string `json:"compression"` // "", "gzip", "snappy"
	DigestZxid  string `json:"digestZxid"`  // "" if there is no digest
}

// LogReport describes a log, and what was replayed of it.
type LogReport struct {
	File         string `json:"file"`
	Transactions int    `json:"transactions"`
	First        string `json:"first"` // zxids, "" if nothing was replayed
	Last         string `json:"last"`
}

// SkippedFile is a file that was not used.
type SkippedFile struct {
	File string `json:"file"`
	Why  string `json:"why"`
}

// DigestReport counts the comparisons with the digests that ZooKeeper 3.6 puts into transactions and snapshots.
type DigestReport struct {
	Equal  int `json:"equal"`
	Spoilt int `json:"spoilt"` // differed for a while, because the origin's own were wrong
	None   int `json:"none"`   // transactions without one, or in the fuzzy part of a snapshot
}

// newReport returns a Report whose lists are empty in JSON, not null.
func newReport() *Report {
	return &Report{
		Skipped: []SkippedFile{}, Ignored: []string{}, Logs: []LogReport{}, Torn: []Torn{}, Ownerless: []string{},
		Warnings: []string{},
	}
}

// Epoch is the latest epoch that the directories know of.
func (p *Report) Epoch() (latest uint64) {
	for _, e := range []*int64{p.AcceptedEpoch, p.CurrentEpoch} {
		if e != nil && *e > 0 {
			latest = max(latest, uint64(*e))
		}
	}
	return latest
}

func (p *Report) remark(format string, args ...any) {
	p.Warnings = append(p.Warnings, fmt.Sprintf(format, args...))
}

// count fills in what the state holds.
func (p *Report) count(r *replica.Replica) {
	p.Sessions = r.Sessions.Len()
	size := r.Tree.Size()
	p.Znodes, p.Bytes = size.Znodes, size.Bytes
	p.Ephemerals = size.Ephemerals
	snap := r.Tree.Snapshot()
	defer snap.Release()
	unknown := map[string]int{}
	_ = snap.Walk(func(rec *znode.Record) error {
		if strings.HasPrefix(rec.Path, znode.QuotaPath+"/") && znode.Base(rec.Path) == "zookeeper_limits" {
			p.Quotas++
		}
		switch owner := rec.Stat.EphemeralOwner; {
		case owner == math.MinInt64:
			p.Containers++
		case uint64(owner)>>56 == 0xff:
			p.TTLs++
		}
		for i := range rec.ACL {
			if id := rec.ACL[i].ID; !znode.ValidID(id) {
				unknown[id.Scheme]++
			}
		}
		return nil
	})
	schemes := make([]string, 0, len(unknown))
	for scheme := range unknown {
		schemes = append(schemes, scheme)
	}
	slices.Sort(schemes)
	for _, scheme := range schemes {
		p.remark("%d entries of ACLs have an identity of the scheme %q that no client has here: they are kept",
			unknown[scheme], scheme)
	}
}
