package server

import (
	"errors"
	"testing"
)

func TestServer_Drain_SendsClientsAway(t *testing.T) {
	k := newKit(t, nil)
	c := k.connect()
	k.log.spare = ErrTooFew
	if err := k.srv.Drain(t.Context()); !errors.Is(err, ErrTooFew) || k.srv.Draining() {
		t.Errorf("a server that is needed: %v", err)
	}
	c.expectKicks()
	k.log.spare = nil
	k.log.setRole(RoleLeader)
	if err := k.srv.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.expectKicks(ReasonStopping)
	if k.srv.Serving() || k.srv.Status().Role == RoleLeader {
		t.Errorf("serving %v, %+v", k.srv.Serving(), k.srv.Status())
	}
	k.srv.Undrain()
	if !k.srv.Serving() {
		t.Error("does not serve again")
	}
}
