package cluster

import (
	"fmt"
	"math/rand/v2"
	"net"
	"testing"
)

// Ports are taken from below the range that systems use for outgoing
// connections, so that nobody else gets the port of a server that is down.
const (
	firstPort = 11000
	lastPort  = 31999
)

// freePorts returns n ports of 127.0.0.1 that nobody listens on.
func freePorts(t testing.TB, n int) []int {
	t.Helper()
	var ports []int
	for tries := 0; len(ports) < n; tries++ {
		if tries > 1000 {
			t.Fatal("no free ports on 127.0.0.1")
		}
		port := firstPort + rand.IntN(lastPort-firstPort+1)
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			continue
		}
		// Held until all are found, so that none is found twice.
		defer l.Close()
		ports = append(ports, port)
	}
	return ports
}
