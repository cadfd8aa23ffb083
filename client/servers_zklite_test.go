//go:build !zookeeper

package client_test

import (
	"testing"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/zklitetest"
)

// startServer starts a zk-lite server in this process.
func startServer(tb testing.TB) (servers string) {
	tb.Helper()
	return zklitetest.Start(tb).ConnectString()
}

// errPlainPort is what a client with TLS learns from a port without it.
var errPlainPort = client.ErrPortSpeaksPlain
