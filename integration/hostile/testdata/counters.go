package app

import (
	"bytes"
	"encoding/binary"
	"net"
	"os"
	"runtime"
	"runtime/coverage"
)

// Added to a server whose work is counted: a client that connects to the socket gets the bytes allocated since the
// start (8 bytes, big-endian) and the counters, which then begin at zero.
func init() {
	if path := os.Getenv("ZK_LITE_TEST_COUNTERS"); path != "" {
		go serveCounters(path)
	}
}

func serveCounters(path string) {
	l, err := net.Listen("unix", path)
	if err != nil {
		panic(err)
	}
	for {
		c, err := l.Accept()
		if err != nil {
			panic(err)
		}
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		var b bytes.Buffer
		if err := coverage.WriteCounters(&b); err != nil {
			panic(err)
		}
		if err := coverage.ClearCounters(); err != nil {
			panic(err)
		}
		_, _ = c.Write(binary.BigEndian.AppendUint64(nil, m.TotalAlloc))
		_, _ = c.Write(b.Bytes())
		c.Close()
	}
}
