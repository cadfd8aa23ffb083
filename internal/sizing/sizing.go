// Package sizing computes how much memory, disk and network a server needs for a load. It is arithmetic with
// measured figures (docs/sizing.md explains how they were measured; a test of integration/sizing measures some of
// them again). It looks at no machine and starts no goroutine.
package sizing

import (
	"fmt"
	"strconv"
	"time"

	"github.com/zk-lite/zk-lite/znode"
)

// Load is the load that an ensemble has to bear.
type Load struct {
	Servers  int     `json:"servers"`           // voters
	Znodes   int64   `json:"znodes"`            //
	Bytes    int64   `json:"bytes"`             // of data in a znode
	Sessions int64   `json:"sessions"`          // each with a connection
	Watches  int64   `json:"watches"`           //
	Writes   float64 `json:"writes_per_second"` //
	Reads    float64 `json:"reads_per_second"`  //
}

// Estimate is what one server needs while another one is down. Sizes are in bytes, rates in bytes per
// second.
type Estimate struct {
	Tree     int64 `json:"tree_memory_bytes"` // by the server's own count
	Live     int64 `json:"live_bytes"`        // memory in use
	Resident int64 `json:"resident_bytes"`    // at most, before the collector finds memory that is no longer in use
	Memory   int64 `json:"memory_bytes"`      // recommended for the machine

	Snapshot  int64   `json:"snapshot_bytes"` // at most: of data that cannot be compressed
	Log       int64   `json:"log_bytes"`      // at most
	Disk      int64   `json:"disk_bytes"`     // recommended: log, snapshots, and the room below which alerts fire
	DiskRate  float64 `json:"disk_bytes_per_second"`
	LogPerSet int64   `json:"log_bytes_per_write"`

	LeaderOut float64 `json:"leader_sends_bytes_per_second"`
	LeaderIn  float64 `json:"leader_receives_bytes_per_second"`

	Start   time.Duration `json:"start_ns"`    // until a server with this tree serves
	CatchUp time.Duration `json:"catch_up_ns"` // of a server that needs the whole tree, under load
}

// Path is the length in bytes of the paths that are reckoned with.
const Path = 32

// Program is the memory of a server without a tree, clients and watches, in bytes.
const Program = 28 * mib

// Measured; docs/sizing.md.
const (
	mib     = 1 << 20
	changes = 16 * mib // the latest, from which feeds continue: limits.changesBytes

	perZnode       = 110  // without its path and data
	perByte        = 1.05 // of path and data
	perSession     = 150
	perConnection  = 3000
	perWatch       = 80  // without its path
	sessionCounted = 512 // by the server, which rather counts too much

	snapshotPerZnode   = 20
	snapshotPerSession = 16
	logPerWrite        = 60   // without path and data
	block              = 4096 // minimum size of a write that is synced
	mostSyncs          = 2000 // a second; with more writes, each sync has several
	requestPerWrite    = 40   // of a frame, without path and data
	replyPerWrite      = 92
	requestPerRead     = 17
	replyPerRead       = 88

	startBase     = 400 * time.Millisecond
	startPerZnode = 3400 * time.Nanosecond
	startPerByte  = 4.6 // nanoseconds
	catchUpFactor = 3.5
)

// The server's defaults: app/config, consensus and raftlog have them.
const (
	snapCount, snapshots   = 100_000, 3
	logSnapshot, logBehind = 32 * mib, 64 * mib // the least log before a snapshot, and the log after it
	snapshotMemory         = 64 * mib           // of the state, that is worth as many writes again before a snapshot
	snapshotShare          = 4                  // of the state, that is as much log before a snapshot
	segments               = 2 * 64 * mib       // the one in use, and the next
	wantedFree             = 1 << 30            // by ZkLiteDiskNearlyFull, and two snapshots
)

// Check returns which part of a load is impossible, and what would be possible.
func (l *Load) Check() error {
	for _, x := range []struct {
		name              string
		have, least, most float64
	}{
		{"servers", float64(l.Servers), 1, 9}, {"znodes", float64(l.Znodes), 0, 1e10},
		{"bytes", float64(l.Bytes), 0, 1 << 30}, {"sessions", float64(l.Sessions), 0, 1e8},
		{"watches", float64(l.Watches), 0, 1e11}, {"writes", l.Writes, 0, 1e7}, {"reads", l.Reads, 0, 1e8},
	} {
		if !(x.have >= x.least && x.have <= x.most) {
			have := strconv.FormatFloat(x.have, 'f', -1, 64)
			return fmt.Errorf("--%s %s: want %g to %.0f", x.name, have, x.least, x.most)
		}
	}
	return nil
}

// Estimate computes what the load needs; Check must have returned nil.
func (l *Load) Estimate() (e Estimate) {
	one := float64(max(l.Servers-1, 1)) // that share the clients while one is down
	content := float64(Path + l.Bytes)
	znodes, sessions := float64(l.Znodes), float64(l.Sessions)

	e.Tree = l.Znodes*(znode.CreateMemory("", Path+int(l.Bytes))) + l.Sessions*sessionCounted
	live := znodes*(perZnode+perByte*content) + sessions*perSession +
		sessions/one*perConnection + float64(l.Watches)/one*(perWatch+Path)
	e.Live = Program + changes + int64(live)
	e.Resident = Program + changes + 2*int64(live) + roomOfCollector
	// The tree may take two fifths of the memory without 32 MiB (app, treeLimit); the alert fires at 80 % of that.
	e.Memory = max(int64(float64(e.Tree)/0.8*5/2)+32*mib, e.Resident/9*10)

	e.Snapshot = l.Znodes*(snapshotPerZnode+Path+l.Bytes) + l.Sessions*snapshotPerSession
	e.LogPerSet = logPerWrite + Path + l.Bytes
	snapshotAfter := min(snapCount*(1+e.Tree/snapshotMemory)*e.LogPerSet,
		max(logSnapshot, e.Tree/snapshotShare, e.Snapshot))
	e.Log = snapshotAfter + logBehind + segments
	e.Disk = e.Log + (snapshots+1)*e.Snapshot + wantedFree + 2*e.Tree
	logRate := l.Writes * float64(e.LogPerSet)
	e.DiskRate = 2*logRate + logRate*float64(e.Snapshot)/float64(snapshotAfter) + min(l.Writes, mostSyncs)*block

	others := float64(l.Servers - 1)
	e.LeaderOut = others*l.Writes*float64(e.LogPerSet) + l.Writes/one*replyPerWrite +
		l.Reads/one*(replyPerRead+float64(l.Bytes))
	e.LeaderIn = l.Writes*(requestPerWrite+content) + l.Reads/one*(requestPerRead+Path)

	e.Start = startBase + time.Duration(znodes*(float64(startPerZnode)+startPerByte*content))
	e.CatchUp = time.Duration(catchUpFactor * float64(e.Start))
	return e
}

// roomOfCollector is how much a small heap may grow before it is collected (internal/process);
// for a large one it is negligible.
const roomOfCollector = 128 * mib
