package membership

import (
	"sync/atomic"

	"github.com/zk-lite/zk-lite/consensus/state"
)

// Applied is what one server has applied of the log, for others than the goroutine that applies. The zero value is
// that of a server that has applied nothing since its start.
type Applied struct {
	index         atomic.Uint64
	level         atomic.Uint32
	members       atomic.Pointer[map[state.ServerID]state.Member]
	configuration atomic.Pointer[map[state.ServerID]bool]
}

// Index returns the index of the last entry.
func (a *Applied) Index() uint64 { return a.index.Load() }

// SetIndex notes the index of the last entry.
func (a *Applied) SetIndex(index uint64) { a.index.Store(index) }

// Level returns the ensemble's feature level; 0: it has none yet.
func (a *Applied) Level() state.Level { return state.Level(a.level.Load()) }

// SetLevel notes the ensemble's feature level, also that of before the start.
func (a *Applied) SetLevel(level state.Level) { a.level.Store(uint32(level)) }

// Members returns what the servers have published, and Configuration the servers of the newest configuration and
// whether they vote. Neither may be changed.
func (a *Applied) Members() map[state.ServerID]state.Member { return value(&a.members) }

// Configuration is as Members says.
func (a *Applied) Configuration() map[state.ServerID]bool { return value(&a.configuration) }

// SetMembers notes both, which must not change any more.
func (a *Applied) SetMembers(members map[state.ServerID]state.Member, configuration map[state.ServerID]bool) {
	a.members.Store(&members)
	a.configuration.Store(&configuration)
}

// value is what p points to, or the zero value.
func value[T any](p *atomic.Pointer[T]) (v T) {
	if x := p.Load(); x != nil {
		v = *x
	}
	return v
}
