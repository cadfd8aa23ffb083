package zk

import "sync/atomic"

// longReply is a reply of so many bytes that not all clients may be given one at a time.
const longReply = 2 << 20

// replyRoom bounds the bytes of the long replies that are made at a time: they are in memory before the first byte can
// be sent, or its client cut off.
type replyRoom struct {
	limit int64
	bytes atomic.Int64
}

// reserve takes room for a reply of n bytes. It reports false if there is none; a single reply may be larger than the
// bound.
func (a *replyRoom) reserve(n int) bool {
	if n <= longReply {
		return true
	}
	if sum := a.bytes.Add(int64(n)); sum > a.limit && sum > int64(n) {
		a.bytes.Add(-int64(n))
		return false
	}
	return true
}

// release ends what reserve has begun.
func (a *replyRoom) release(n int) {
	if n > longReply {
		a.bytes.Add(-int64(n))
	}
}
