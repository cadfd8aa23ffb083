//go:build interop && soak

package migration_test

import "github.com/zk-lite/zk-lite/internal/testkit/zookeeper"

// origins are every version at rest and killed, and servers with the settings that change what is in their files.
func origins() (all []origin) {
	for _, v := range zookeeper.Versions() {
		all = append(all,
			origin{name: v + " three", version: v, servers: 3, requests: 20_000},
			origin{name: v + " three killed", version: v, servers: 3, requests: 20_000, killed: true, wrap: true,
				strict: true},
			// 3.7 and newer may not start again after ACLs that are lost.
			origin{name: v + " one killed", version: v, servers: 1, requests: 8_000, killed: true, root: true,
				strict: v >= zookeeper.V37})
	}
	for _, method := range []string{"gz", "snappy"} {
		for _, v := range []string{zookeeper.V36, zookeeper.V39} {
			all = append(all, origin{name: v + " " + method, version: v, servers: 1, requests: 8_000, killed: true,
				strict: true,
				config: []string{"snapshot.compression.method=" + method}})
		}
	}
	return append(all,
		origin{name: "no digests", version: zookeeper.V38, servers: 1, requests: 8_000,
			config: []string{"digest.enabled=false"}},
		origin{name: "no closeSession", version: zookeeper.V39, servers: 1, requests: 8_000,
			config: []string{"closeSessionTxn.enabled=false"}},
		origin{name: "log directory", version: zookeeper.V39, servers: 1, requests: 8_000, killed: true,
			strict: true, config: []string{"dataLogDir=$DIR/logs"}},
		origin{name: "64 MB logs", version: zookeeper.V38, servers: 1, requests: 8_000, killed: true, strict: true,
			config: []string{"preAllocSize=65536"}})
}

// homes are the versions that take the data back.
func homes() []string { return []string{zookeeper.V38, zookeeper.V39} }

// timed are the versions whose cut-over is measured; "" is Debian's.
func timed() []string { return []string{"", zookeeper.V38, zookeeper.V39} }

// killings are the servers that are killed during cut-overs, and everyClient is whether clients of all kinds are there.
func killings() []killing { return everyKilling() }

const everyClient = true
