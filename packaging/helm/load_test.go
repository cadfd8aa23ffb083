package helm

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/internal/testkit/wait"
)

// pace is the time between two writes of a load.
const pace = 20 * time.Millisecond

// load is a client with a session and an ephemeral that writes all the time, and knows what it has written. It has one
// goroutine, until end.
type load struct {
	t       *testing.T
	zk      *client.Client
	session client.SessionID
	dir     string
	stop    context.CancelFunc
	done    chan struct{}
	answers chan struct{} // one for each answer, while there is a receiver

	acked  []string
	failed []error       // writes that have not happened
	unsure int           // writes of which it is not known whether they have happened
	gap    time.Duration // the longest wait for an answer
}

// newLoad opens a session through the service.
func (c *kube) newLoad() *load {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), wait.Patience)
	defer cancel()
	zk, err := client.Connect(ctx, c.release().Service.Name+"."+Namespace+".svc.cluster.local:2181",
		client.WithResolver(c.names.lookup), client.WithSessionTimeout(30*time.Second))
	if err != nil {
		c.t.Fatal(err)
	}
	l := &load{
		t: c.t, zk: zk, session: zk.SessionID(), dir: fmt.Sprintf("/load-%x", zk.SessionID()), done: make(chan struct{}),
		answers: make(chan struct{}),
	}
	for path, mode := range map[string]client.Mode{l.dir: client.Persistent, l.dir + "-here": client.Ephemeral} {
		if _, _, err := zk.Create(ctx, path, nil, mode); err != nil {
			c.t.Fatal(err)
		}
	}
	ctx, l.stop = context.WithCancel(context.Background())
	go l.run(ctx)
	return l
}

func (l *load) run(ctx context.Context) {
	defer close(l.done)
	tick := time.NewTicker(pace)
	defer tick.Stop()
	for i := 0; ; i++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		name, began := fmt.Sprint(i), time.Now()
		patient, cancel := context.WithTimeout(context.Background(), wait.Patience)
		_, _, err := l.zk.Create(patient, l.dir+"/"+name, nil, client.Persistent)
		cancel()
		switch {
		case err == nil:
			l.acked, l.gap = append(l.acked, name), max(l.gap, time.Since(began))
			select {
			case l.answers <- struct{}{}:
			default:
			}
		case errors.Is(err, client.ErrOutcomeUnknown):
			l.unsure++
		default:
			l.failed = append(l.failed, err)
		}
	}
}

// end stops the load after one more answer, and looks whether everything that was acknowledged is there. It says what
// the client has seen.
func (l *load) end() string {
	l.t.Helper()
	select {
	case <-l.answers:
	case <-time.After(wait.Patience):
		l.t.Fatal("the client gets no answer any more")
	}
	l.stop()
	<-l.done
	defer l.zk.Close()
	ctx, cancel := context.WithTimeout(l.t.Context(), wait.Patience)
	defer cancel()
	err := l.zk.Sync(ctx, l.dir)
	var names []string
	if err == nil {
		names, _, err = l.zk.Children(ctx, l.dir)
	}
	here, _, err2 := l.zk.Exists(ctx, l.dir+"-here")
	if err = errors.Join(err, err2); err != nil {
		l.t.Fatal(err)
	}
	there := map[string]bool{}
	for _, name := range names {
		there[name] = true
	}
	for _, name := range l.acked {
		if !there[name] {
			l.t.Errorf("write %s was acknowledged and is lost", name)
		}
	}
	kept := l.zk.SessionID() == l.session
	if kept != here {
		l.t.Errorf("the session is kept: %v; its ephemeral is there: %v", kept, here)
	}
	for _, err := range l.failed[:min(3, len(l.failed))] {
		l.t.Logf("a write failed: %v", err)
	}
	return fmt.Sprintf("longest wait %.2f s, %d acknowledged, %d failed, %d unknown, session kept %v", l.gap.Seconds(),
		len(l.acked), len(l.failed), l.unsure, kept)
}
