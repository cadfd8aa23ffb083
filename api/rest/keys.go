package rest

import (
	"sync"
	"time"

	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/server"
)

// KeyLife is for how long a key is known at least, however many others come. The state forgets the oldest when there is
// no room; this server takes no new ones for which it would forget a younger one than that.
const KeyLife = time.Minute

const (
	// A sixteenth of the state's room for keys is for those that other servers take meanwhile; addresses that have
	// taken more than keyShare of it within KeyLife leave a quarter to others.
	keyMargin, othersMargin = 16, 4
	keyShare                = 8
	// keyCost is what a key takes of the bytes at least, as there is a bound for their number, too.
	keyCost = state.MaxKeyBytes / state.MaxKeys
)

// keyUse is which keys this server has taken.
type keyUse struct {
	mu          sync.Mutex // protects the fields below
	keys, bytes int        // of commands in progress
	since       time.Time  // when byAddress began
	byAddress   map[string]int
}

// enter counts a key whose answer takes n bytes. It returns what is in progress with it, and whether its address has
// taken more than its share.
func (u *keyUse) enter(address string, n int, now time.Time) (keys, bytes int, much bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.byAddress == nil || now.Sub(u.since) >= KeyLife {
		u.since, u.byAddress = now, map[string]int{}
	}
	u.byAddress[address] += max(n, keyCost)
	u.keys++
	u.bytes += n
	return u.keys, u.bytes, u.byAddress[address] > state.MaxKeyBytes/keyShare
}

func (u *keyUse) leave(n int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.keys--
	u.bytes -= n
}

// enterKey takes a place for a command with a key, which must be new. While there is no room for more without
// forgetting young ones, that is refused; while there is little, to addresses that have taken much.
func (q *Request) enterKey(c *state.Command) (release func(), err error) {
	n, now := state.KeyBytes(c), time.Now()
	keys, bytes, much := q.Core.keys.enter(q.Address, n, now)
	margin := keyMargin
	if much {
		margin = othersMargin
	}
	var life time.Duration
	q.Core.Server.View(func(v *server.View) {
		life = v.Machine().KeysKnownFor(keys+state.MaxKeys/margin, bytes+state.MaxKeyBytes/margin, now.UnixMilli())
	})
	if life < KeyLife {
		q.Core.keys.leave(n)
		return nil, TooMany(1, "for this %s the ensemble would forget one that is younger than %v", HeaderKey, KeyLife)
	}
	return func() { q.Core.keys.leave(n) }, nil
}
