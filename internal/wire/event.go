package wire

import (
	"github.com/zk-lite/zk-lite/internal/jute"
	"github.com/zk-lite/zk-lite/znode"
)

// KeeperState is the state of the connection that a notification reports
// (Watcher.Event.KeeperState). The other states are known to clients only and
// never travel.
type KeeperState int32

// StateSyncConnected is the state in every notification a server sends.
const StateSyncConnected KeeperState = 3

// WatcherEvent is the body of a notification, after a ReplyHeader with
// XidNotification.
type WatcherEvent struct {
	Type  znode.EventType
	State KeeperState
	Path  string
}

func (*WatcherEvent) isResponse() {}

// Append appends the record to b.
func (w *WatcherEvent) Append(b []byte) []byte {
	b = jute.AppendInt32(b, int32(w.Type))
	b = jute.AppendInt32(b, int32(w.State))
	return jute.AppendUstring(b, w.Path)
}

// Decode reads the record.
func (w *WatcherEvent) Decode(r *jute.Reader) {
	w.Type = znode.EventType(r.Int32())
	w.State = KeeperState(r.Int32())
	w.Path = r.Ustring()
}
