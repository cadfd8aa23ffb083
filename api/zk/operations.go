package zk

import (
	"slices"

	"github.com/zk-lite/zk-lite/api/metrics"
	"github.com/zk-lite/zk-lite/internal/histogram"
	"github.com/zk-lite/zk-lite/internal/wire"
)

// operationNames are ZooKeeper 3.10's names for what its counters count together.
var operationNames = map[wire.OpCode]string{
	wire.OpCreate: "create", wire.OpCreate2: "create", wire.OpCreateTTL: "create", wire.OpCreateContainer: "create",
	wire.OpDelete: "delete", wire.OpDeleteContainer: "delete", wire.OpSetData: "set_data", wire.OpSetACL: "set_acl",
	wire.OpCheck: "check", wire.OpMulti: "multi", wire.OpMultiRead: "multi_read", wire.OpSync: "sync",
	wire.OpReconfig: "reconfig", wire.OpPing: "ping", wire.OpCreateSession: "create_session",
	wire.OpCloseSession: "close_session", wire.OpExists: "exists", wire.OpGetData: "get_data", wire.OpGetACL: "get_acl",
	wire.OpGetChildren: "get_children", wire.OpGetChildren2: "get_children", wire.OpGetEphemerals: "get_ephemerals",
	wire.OpGetAllChildrenNumber: "get_all_children_number", wire.OpSetWatches: "set_watches",
	wire.OpSetWatches2: "set_watches", wire.OpAddWatch: "add_watch", wire.OpCheckWatches: "check_watches",
	wire.OpRemoveWatches: "remove_watches", wire.OpWhoAmI: "who_am_i",
}

// firstOp is the lowest of them, and maxOperations is more than there are names.
const firstOp, maxOperations = wire.OpCloseSession, 32

// operationOf has, for each operation, the number of its name, counted from 1.
var operationOf = func() (of [128]uint8) {
	for op, name := range operationNames {
		of[op-firstOp] = uint8(slices.Index(metrics.Operations(), name) + 1)
	}
	return of
}()

// operationTimes are how long requests took, by their operations; the first is for those without a name.
type operationTimes [maxOperations]histogram.Histogram

func (t *operationTimes) of(op wire.OpCode) *histogram.Histogram {
	if i := op - firstOp; i >= 0 && int(i) < len(operationOf) {
		return &t[operationOf[i]]
	}
	return &t[0] // whatever a client has sent
}

// operationMetrics are the counts of all requests and of each operation, and how long those took that there were.
func (ln *Listener) operationMetrics(emit func(name string, value any)) {
	total, times := int64(0), []metrics.Labelled{}
	for i, name := range append([]string{""}, metrics.Operations()...) {
		var counts histogram.Counts
		for shard := range ln.times {
			counts.Add(ln.times[shard].operations[i].Counts())
		}
		n := counts.Total()
		total += n
		if name == "" {
			continue
		}
		emit(metrics.OperationCount+name, n)
		if n > 0 {
			times = append(times, metrics.Labelled{Labels: `operation="` + name + `"`, Value: counts})
		}
	}
	emit(metrics.OperationCount+"total", total)
	emit("operation_duration_seconds", times)
}
