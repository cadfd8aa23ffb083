package consensus

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/consensus/raftlog/faultfs"
	"github.com/zk-lite/zk-lite/internal/testkit/tier"
	"github.com/zk-lite/zk-lite/internal/testkit/wait"
)

func (x *testNode) alive(limit time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	return x.Alive(ctx)
}

func TestAlive_EveryRole_Answers(t *testing.T) {
	tier.Seconds(t)
	t.Parallel()
	e := newTestEnsemble(t, 3, nil)
	e.waitFormed()
	for i, x := range e.nodes {
		if err := x.alive(wait.Patience); err != nil {
			t.Errorf("server %d, %s: %v", i, x.Status().Role, err)
		}
	}
	e.stop(0)
	e.stop(1)
	wait.Until(t, "no leader", func() bool { return e.nodes[2].Status().Role == RoleNone })
	if err := e.nodes[2].alive(wait.Patience); err != nil {
		t.Errorf("without a majority: %v", err)
	}
}

// When entries are not applied, raft's main loop soon waits to hand over more.
func TestAlive_MainLoopHangs_DoesNotAnswer(t *testing.T) {
	tier.Seconds(t)
	t.Parallel()
	e := newTestEnsemble(t, 3, func(c *Config) {
		if c.ID != 0 { // none of those leads, or a pause might make a leader of the one that hangs
			c.ElectionTimeout = time.Minute
		}
	})
	e.waitFormed()
	leader := e.leader()
	x := e.nodes[(leader+1)%3]
	x.handler.mu.Lock()
	goOn := sync.OnceFunc(x.handler.mu.Unlock)
	defer goOn() // or it could not be stopped
	round := 0
	wait.Until(t, "a server that applies nothing not to answer", func() bool { // it may get entries late
		round++
		e.fill(leader, fmt.Sprintf("/n%d-", round), 100)
		return x.alive(200*time.Millisecond) != nil
	})
	goOn()
	if err := x.alive(wait.Patience); err != nil {
		t.Errorf("when it goes on: %v", err)
	}
}

func TestAlive_DiskHangs_CountsAsAlive(t *testing.T) {
	tier.Seconds(t)
	t.Parallel()
	e := withFaultyDisks(t, 3)
	e.waitFormed()
	leader := e.leader()
	x := e.nodes[(leader+1)%3]
	release := make(chan struct{})
	x.fs.SetFault(func(op faultfs.Op, name string) error {
		if op == faultfs.OpWrite && strings.HasPrefix(name, "log") {
			<-release
		}
		return nil
	})
	e.fill(leader, "/n", 3)
	wait.Until(t, "it waits for the disk", func() bool { return x.disk.Waiting() > 0 })
	if err := x.alive(wait.Patience); err != nil {
		t.Error(err)
	}
	close(release)
}
