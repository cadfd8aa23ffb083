package znode

import (
	"fmt"
	"strconv"
)

// FormatSequence returns the suffix that a server appends to the name of a sequential
// znode: the parent's counter, a signed 32-bit number, in Java's format %010d. In
// ZooKeeper it can be negative, and is then one character longer.
func FormatSequence(n int32) string { return fmt.Sprintf("%010d", n) }

// ParseSequence is the inverse of FormatSequence. ok is false for text that no server
// writes, such as -000000000.
func ParseSequence(s string) (n int32, ok bool) {
	if len(s) != 10 && len(s) != 11 {
		return 0, false
	}
	v, err := strconv.ParseInt(s, 10, 32)
	return int32(v), err == nil && s == FormatSequence(int32(v))
}
