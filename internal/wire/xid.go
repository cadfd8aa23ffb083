package wire

import "fmt"

// Xid is the number by which a client tells its requests apart. A reply
// carries the xid of its request: a server echoes what it got, also for auth
// and setWatches, where some clients send a special xid and some do not.
type Xid int32

// The special xids.
const (
	XidNotification Xid = -1 // a WatcherEvent follows the header
	XidPing         Xid = -2 // the server uses it for every reply to a ping
	XidAuth         Xid = -4 // by convention of the Java and C clients
	XidSetWatches   Xid = -8 // by convention of the C client
)

// String names the special xids and is a decimal number otherwise.
func (x Xid) String() string {
	switch x {
	case XidNotification:
		return "notification"
	case XidPing:
		return "ping"
	case XidAuth:
		return "auth"
	case XidSetWatches:
		return "setWatches"
	}
	return fmt.Sprintf("%d", int32(x))
}
