package disk

import (
	"math/rand/v2"
	"sync"
	"syscall"
	"time"

	"github.com/zk-lite/zk-lite/internal/testkit/slowdisk"
)

// Slow is a Fault that lets every sync take longer. The seed draws those that take longest.
func Slow(p slowdisk.Profile, seed uint64) Fault {
	var mu sync.Mutex // protects rng
	rng := rand.New(rand.NewPCG(seed, 4))
	return func(op Op, _ string) syscall.Errno {
		if op != OpSync && op != OpSyncDir {
			return 0
		}
		mu.Lock()
		delay := p.Draw(rng)
		mu.Unlock()
		<-time.After(delay)
		return 0
	}
}
