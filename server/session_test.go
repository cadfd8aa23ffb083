package server

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/zk-lite/zk-lite/session"
)

func TestServer_SessionWithoutConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := started(t, nil)
		open := k.srv.NewSession(4 * time.Second)
		if err := k.srv.Propose(open, nobody{}); err != nil {
			t.Fatal(err)
		}
		k.log.drain()
		id := open.Session
		if d, ok := k.srv.CheckSession(id, open.Password); !ok || d != 4*time.Second {
			t.Errorf("%v, %v", d, ok)
		}
		if _, ok := k.srv.CheckSession(id, session.Password{}); ok {
			t.Error("a wrong password passes")
		}
		ended, cancel := k.srv.SessionEnd(id)
		defer cancel()
		for range 10 {
			k.srv.Touch(id)
			k.until(3 * time.Second)
		}
		select {
		case <-ended:
			t.Fatal("ended although it was heard every three seconds")
		default:
		}
		k.until(6 * time.Second)
		<-ended
		again, cancel := k.srv.SessionEnd(id)
		defer cancel()
		<-again
		if len(k.srv.ends.waiting) != 0 {
			t.Error("something is left of the session")
		}
	})
}
