//go:build !zookeeper

package client_test

import (
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/zklitetest"
)

// Reads behind SyncWithin see what was acknowledged that long before it, at every server; a server that knows its
// state to be new enough does not ask the leader.
func TestSyncWithin(t *testing.T) {
	e := zklitetest.Start(t, zklitetest.WithServers(3))
	leader := e.Leader()
	writer, reader := connect(t, e.Addrs()[leader]), connect(t, e.Addrs()[(leader+1)%3])
	_, _, err := writer.Create(t.Context(), "/a", nil, client.Persistent)
	must(t, err)
	for i := range 50 {
		began := time.Now()
		_, err := writer.Set(t.Context(), "/a", []byte(strconv.Itoa(i)), client.AnyVersion)
		must(t, err)
		pending := reader.Async().SyncWithin(t.Context(), 0)
		data, _, err := reader.Get(t.Context(), "/a") // in the same segment
		must(t, err)
		if string(data) != strconv.Itoa(i) {
			t.Errorf("after SyncWithin(0) /a is %q, want %d", data, i)
		}
		if age, err := pending.Wait(t.Context()); err != nil || age <= 0 || age > time.Since(began) {
			t.Errorf("SyncWithin(0): %v, %v, want more than 0 and less than %v", age, err, time.Since(began))
		}
	}
	first, err := reader.SyncWithin(t.Context(), time.Hour)
	must(t, err)
	second, err := reader.SyncWithin(t.Context(), time.Hour)
	must(t, err)
	if second < first {
		t.Errorf("SyncWithin(1h) %v, then %v: the second has asked the leader", first, second)
	}
	if _, err := reader.SyncWithin(t.Context(), -1); !errors.Is(err, client.ErrBadArguments) {
		t.Errorf("SyncWithin(-1): %v, want %v", err, client.ErrBadArguments)
	}
}
