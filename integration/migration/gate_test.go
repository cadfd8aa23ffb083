//go:build interop && !soak

package migration_test

import "github.com/zk-lite/zk-lite/internal/testkit/zookeeper"

// origins are those of the gate: the oldest and the newest.
func origins() []origin {
	return []origin{
		{name: zookeeper.V34, version: zookeeper.V34, servers: 1, requests: 6000},
		{name: zookeeper.V39 + " killed", version: zookeeper.V39, servers: 1, requests: 6000, killed: true,
			strict: true,
			wrap:   true, config: []string{"snapshot.compression.method=gz"}},
		{name: zookeeper.V39, version: zookeeper.V39, servers: 1, requests: 6000},
	}
}

// homes are the versions that take the data back.
func homes() []string { return []string{zookeeper.V39} }

// timed are the versions whose cut-over is measured.
func timed() []string { return []string{zookeeper.V39} }

// killings are some of the servers that are killed during cut-overs, with clients of Go alone.
func killings() []killing {
	return []killing{{phaseServing, true, true}, {phaseHalfway, false, true}, {phaseGoing, true, true}}
}

const everyClient = false
