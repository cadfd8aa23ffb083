package server

import (
	"sync"

	"github.com/zk-lite/zk-lite/consensus/forward"
	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/watch"
	"github.com/zk-lite/zk-lite/znode"
)

// viewShards is the number of readers that can enter without touching the same
// cache line. The writer takes all of them, 20 ns each. With two processors,
// BenchmarkConn_Read shows no difference to one shard (300 to 500 ns per read either
// way); the shards are for servers with more, which has not been measured.
const viewShards = 8

// viewLock is a readers-writer lock whose readers scale.
type viewLock struct {
	shards [viewShards]struct {
		sync.RWMutex
		_ [40]byte // to a cache line of 64 bytes
	}
}

func (l *viewLock) Lock() {
	for i := range l.shards {
		l.shards[i].Lock()
	}
}

func (l *viewLock) Unlock() {
	for i := range l.shards {
		l.shards[i].Unlock()
	}
}

// View is the state at one moment, given to an Op for the time of one call.
type View struct {
	machine *state.Machine
	watches *watch.Manager
	times   *forward.Times // of the entry that is applied; nil: none is
}

// Times say how long the entry took that is applied right now, for an Op's Done; nil: none is.
func (v *View) Times() *forward.Times { return v.times }

// Tree is the tree of znodes, for reading.
func (v *View) Tree() *znode.Tree { return v.machine.Tree() }

// Zxid is the last transaction that this server has applied.
func (v *View) Zxid() znode.Zxid { return v.machine.Zxid() }

// Machine is the whole replicated state, for reading.
func (v *View) Machine() *state.Machine { return v.machine }

// Watches is the table of watches of this server's connections.
func (v *View) Watches() *watch.Manager { return v.watches }
