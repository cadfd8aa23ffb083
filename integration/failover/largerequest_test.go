package failover_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/integration/cluster"
	"github.com/zk-lite/zk-lite/internal/testkit/wait"
	"github.com/zk-lite/zk-lite/znode"
)

// With a jute.maxbuffer above 16 MiB one request of 20 MB at a follower stopped all of that server's clients for good,
// without a line in the log: the leader did not take what the follower had accepted, which sent it again and again. A
// request beyond what the log keeps (64 MiB) did the same at the leader.
func TestRegression_LargeRequest_StopsNoOneElse(t *testing.T) {
	const maxBuffer = 200 << 20
	e := start(t, 3, cluster.Options{Config: map[string]string{
		"jute.maxbuffer": fmt.Sprint(maxBuffer), "largeRequestMaxBytes": "1GiB",
	}})
	ctx, cancel := context.WithTimeout(t.Context(), wait.Patience)
	defer cancel()
	for _, x := range []struct {
		at      *cluster.Server
		mb      int
		refused bool
	}{
		{e.Followers()[0], 20, false}, {e.Followers()[0], 59, false}, {e.Followers()[0], 61, true},
		{e.Followers()[0], 190, true}, {e.Leader(), 70, true},
	} {
		large := connectFor(t, x.at, client.WithMaxRequest(maxBuffer))
		path := fmt.Sprintf("/large-%d", x.mb)
		_, _, err := large.Create(ctx, path, make([]byte, x.mb<<20), client.Persistent)
		if x.refused != errors.Is(err, znode.ErrBadArguments) || !x.refused && err != nil {
			t.Errorf("%d MiB: %v", x.mb, err)
		}
		other := connectFor(t, x.at)
		if _, _, err := other.Create(ctx, path+"-other", nil, client.Persistent); err != nil {
			t.Fatalf("another client after %d MiB: %v", x.mb, err)
		}
	}
	e.CheckReplicas()
}

func connectFor(t *testing.T, s *cluster.Server, opts ...client.Option) *client.Client {
	t.Helper()
	c, err := client.Connect(t.Context(), s.Addr(), append(opts, client.WithSessionTimeout(30*time.Second))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}
