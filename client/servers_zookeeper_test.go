//go:build zookeeper

package client_test

import (
	"testing"

	"github.com/zk-lite/zk-lite/internal/testkit/zookeeper"
)

// startServer starts Apache ZooKeeper as Debian packages it; the test fails where
// it is missing.
func startServer(tb testing.TB) (servers string) { return zookeeper.Start(tb, 1).ConnectString() }

// errPlainPort is nil: ZooKeeper closes such a connection without a word, so that the client learns something else.
var errPlainPort error
