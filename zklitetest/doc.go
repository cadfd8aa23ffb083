// Package zklitetest starts real zk-lite servers for the tests of Go programs: one
// server, or an ensemble of several, in the process of the test.
//
//	func TestStore(t *testing.T) {
//		e := zklitetest.Start(t, zklitetest.WithServers(3))
//		c, err := client.Connect(t.Context(), e.ConnectString())
//		...
//		e.Stop(e.Leader()) // the clients continue at the other servers
//	}
//
// The servers listen on free ports of 127.0.0.1, with the ZooKeeper protocol and the
// HTTP API. Their data is in a temporary directory of the test. When the test ends they
// are stopped and the directory is removed. An ensemble serves after about a second.
//
// A server is stopped in good order only. For kill -9, paused processes and broken
// networks, run the program zk-lite.
//
// The goroutines are those of the servers; each ends when its server stops.
package zklitetest
