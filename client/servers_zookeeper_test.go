//go:build zookeeper

package client_test

import (
	"testing"

	"github.com/zk-lite/zk-lite/internal/testkit/zookeeper"
)

// startServer starts Apache ZooKeeper as Debian packages it; the test fails where
// it is missing.
func startServer(tb testing.TB) (servers string) { return zookeeper.Start(tb, 1).ConnectString() }
