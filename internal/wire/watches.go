package wire

import (
	"github.com/zk-lite/zk-lite/internal/jute"
	"github.com/zk-lite/zk-lite/znode"
)

// AddWatchMode is the kind of watch that addWatch sets
// (org.apache.zookeeper.AddWatchMode).
type AddWatchMode int32

// The modes of addWatch.
const (
	AddWatchPersistent          AddWatchMode = 0
	AddWatchPersistentRecursive AddWatchMode = 1
)

// SetWatchesRequest is the body of setWatches, with which a reconnected client
// sets its one-shot watches again.
type SetWatchesRequest struct {
	RelativeZxid znode.Zxid // the last zxid the client has seen
	DataWatches  []string   // paths
	ExistWatches []string   // paths of znodes that did not exist
	ChildWatches []string   // paths
}

func (*SetWatchesRequest) isRequest() {}

// Append appends the record to b.
func (s *SetWatchesRequest) Append(b []byte) []byte {
	b = jute.AppendInt64(b, int64(s.RelativeZxid))
	b = jute.AppendUstrings(b, s.DataWatches)
	b = jute.AppendUstrings(b, s.ExistWatches)
	return jute.AppendUstrings(b, s.ChildWatches)
}

// Decode reads the record.
func (s *SetWatchesRequest) Decode(r *jute.Reader) {
	s.RelativeZxid = znode.Zxid(r.Int64())
	s.DataWatches = r.Ustrings()
	s.ExistWatches = r.Ustrings()
	s.ChildWatches = r.Ustrings()
}

// SetWatches2Request is the body of setWatches2: setWatches and the two kinds
// of persistent watches.
type SetWatches2Request struct {
	SetWatchesRequest
	PersistentWatches          []string // paths
	PersistentRecursiveWatches []string // paths
}

// Append appends the record to b.
func (s *SetWatches2Request) Append(b []byte) []byte {
	b = s.SetWatchesRequest.Append(b)
	b = jute.AppendUstrings(b, s.PersistentWatches)
	return jute.AppendUstrings(b, s.PersistentRecursiveWatches)
}

// Decode reads the record.
func (s *SetWatches2Request) Decode(r *jute.Reader) {
	s.SetWatchesRequest.Decode(r)
	s.PersistentWatches = r.Ustrings()
	s.PersistentRecursiveWatches = r.Ustrings()
}

// AddWatchRequest is the body of addWatch. The reply is an ErrorResponse.
type AddWatchRequest struct {
	Path string
	Mode AddWatchMode
}

func (*AddWatchRequest) isRequest() {}

// Append appends the record to b.
func (a *AddWatchRequest) Append(b []byte) []byte {
	return jute.AppendInt32(jute.AppendUstring(b, a.Path), int32(a.Mode))
}

// Decode reads the record.
func (a *AddWatchRequest) Decode(r *jute.Reader) {
	a.Path = r.Ustring()
	a.Mode = AddWatchMode(r.Int32())
}

// RemoveWatchesRequest is the body of removeWatches, and of checkWatches, which
// only asks whether there are any.
type RemoveWatchesRequest struct {
	Path string
	Type znode.WatcherType
}

func (*RemoveWatchesRequest) isRequest() {}

// Append appends the record to b.
func (w *RemoveWatchesRequest) Append(b []byte) []byte {
	return jute.AppendInt32(jute.AppendUstring(b, w.Path), int32(w.Type))
}

// Decode reads the record.
func (w *RemoveWatchesRequest) Decode(r *jute.Reader) {
	w.Path = r.Ustring()
	w.Type = znode.WatcherType(r.Int32())
}

// KeeperState is the state of the connection that a notification reports
// (Watcher.Event.KeeperState). The other states exist in clients only and are
// never sent.
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
