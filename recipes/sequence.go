package recipes

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// contender is one znode of a line.
type contender struct {
	name   string
	marker string // what stands before the number
	seq    int32
}

// parseContender reads the name of a sequential znode, GUID or not:
// _c_<guid>-lock-0000000007 with the marker lock-. Only what follows the last
// marker counts, because a GUID in front spoils the order of names.
func parseContender(name string, markers []string) (contender, bool) {
	for _, m := range markers {
		i := strings.LastIndex(name, m)
		if i < 0 {
			continue
		}
		if seq, ok := parseSequence(name[i+len(m):]); ok {
			return contender{name: name, marker: m, seq: seq}, true
		}
	}
	return contender{}, false
}

// parseSequence reads the number that a server appends: the parent's cversion,
// a signed 32-bit number, by Java's format %010d. It wraps from 2147483647 to
// -2147483648, which is one character longer.
func parseSequence(s string) (int32, bool) {
	if len(s) != 10 && len(s) != 11 {
		return 0, false
	}
	n, err := strconv.ParseInt(s, 10, 32)
	// No server writes -000000000, or 00000000001.
	return int32(n), err == nil && s == fmt.Sprintf("%010d", n)
}

// contenders returns those children that are in a line, in its order. Other
// znodes are ignored.
//
// The order of the numbers is that of serial number arithmetic (RFC 1982): right
// across the wrap, as long as the znodes of one line are less than 2^31 creations
// apart.
func contenders(children, markers []string) []contender {
	var line []contender
	for _, name := range children {
		if c, ok := parseContender(name, markers); ok {
			line = append(line, c)
		}
	}
	if len(line) == 0 {
		return nil
	}
	// Distances from any member order them, wherever the wrap is.
	origin := line[0].seq
	slices.SortFunc(line, func(a, b contender) int {
		return cmp.Or(
			cmp.Compare(a.seq-origin, b.seq-origin),
			cmp.Compare(b.marker, a.marker), // a write lock before its downgrade
			cmp.Compare(a.name, b.name),
		)
	})
	return line
}
