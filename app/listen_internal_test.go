package app

import (
	"net"
	"testing"

	"github.com/zk-lite/zk-lite/app/config"
)

// Connections that are accepted and that are made are package net's own where net.rawSystemCalls is off.
func TestListen_RawSystemCallsOff_ConnectionsArePlain(t *testing.T) {
	s := &config.Settings{}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	out, err := dialPeer(s)(t.Context(), l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	in, err := accelerate(s, l).Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	for _, c := range []net.Conn{out, in} {
		if _, plain := c.(*net.TCPConn); !plain {
			t.Errorf("a connection is a %T", c)
		}
	}
}
