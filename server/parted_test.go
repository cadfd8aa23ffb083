package server

import (
	"testing"
	"testing/synctest"
	"time"
)

// What a client had sent between the last report to the leader and the end of
// its connection was forgotten with the connection, and its session expired up to
// a third of its timeout early: found by the lab's scenario, in which the client
// of the killed leader still held its lock when the next one got it.
func TestRegression_HeardAndParted_GetsItsFullTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := started(t, nil)
		c := k.connect()
		s := c.open(4 * time.Second)
		k.until(2 * time.Second)
		c.Touch()
		c.Close("")
		k.until(4 * time.Second)
		if k.log.machine.Sessions().Get(s.ID) == nil {
			t.Error("the session expired before its timeout")
		}
		k.until(2 * time.Second)
		if k.log.machine.Sessions().Get(s.ID) != nil {
			t.Error("the session has not expired")
		}
	})
}
