package workload

import (
	"context"
	"time"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/integration/check"
	"github.com/zk-lite/zk-lite/recipes"
)

// lockTimeout is the session timeout of those who take the lock.
const lockTimeout = 4 * time.Second

// lockWorker takes a lock with this project's client and recipes.
type lockWorker struct {
	w  *Window
	id int
}

func (k *lockWorker) run() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		<-k.w.stop
		cancel()
	}()
	c, err := client.Connect(ctx, k.w.e.ConnectString(), client.WithSessionTimeout(lockTimeout))
	if err != nil {
		return // the window has ended before there was a server
	}
	defer c.Close()
	m := recipes.NewMutex(c, k.w.root+"/lock")
	for ctx.Err() == nil {
		k.take(ctx, m)
		k.w.Pause(workerPause)
	}
}

func (k *lockWorker) take(ctx context.Context, m *recipes.Mutex) {
	h := check.Hold{Lock: "lock", Client: k.id, Asked: k.w.rec.since(time.Now())}
	g, err := m.Lock(ctx)
	if err != nil {
		return
	}
	h.Token, h.From = uint64(g.FencingToken()), k.w.rec.since(time.Now())
	select {
	case <-g.Done():
	case <-time.After(workerPause):
	}
	h.To = k.w.rec.since(time.Now())
	// A process that gets no processor for longer than its session lives learns too
	// late that it has lost the lock; then only the tokens tell.
	h.SessionEnded = g.Err() != nil || h.To-h.From > lockTimeout/4
	release, cancel := context.WithTimeout(context.Background(), lockTimeout)
	defer cancel()
	_ = g.Release(release) // an error means that it goes with the session
	k.w.rec.hold(h)
}
