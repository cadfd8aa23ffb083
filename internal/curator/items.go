package curator

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/zk-lite/zk-lite/znode"
)

// Items is the kind of a queue of items: the prefix of their names, before the number that the
// server appends.
type Items int

// The kinds of queues of items.
const (
	Plain       Items = iota // Curator's DistributedQueue: queue-
	Prioritized              // DistributedPriorityQueue: queue-<priority>
	Delayed                  // DistributedDelayQueue: queue-|<milliseconds>|
	KazooItems               // kazoo's Queue and LockingQueue: entry-<priority>-
)

// itemName is the prefix of the names of Curator's items, kazooItemName of kazoo's.
const (
	itemName      = "queue-"
	kazooItemName = "entry-"
)

// Item is an item's name, and its place in the order.
type Item struct {
	Name   string
	Key    int64 // lower ones first: the priority, or the time in milliseconds
	Number int32 // the order among those of one key
}

// Name is that of a new item before the server appends its number. The key is the
// priority, or milliseconds since 1970; 0 for a plain one.
func (k Items) Name(key int64) string {
	switch k {
	case Prioritized:
		return itemName + priority(int32(key))
	case Delayed:
		return fmt.Sprintf("%s|%08X|", itemName, key)
	case KazooItems:
		return fmt.Sprintf("%s%03d-", kazooItemName, key)
	}
	return itemName
}

// priority is a sign, 0 for negative ones and 1 for others, and eight hexadecimal digits
// of the two's complement: their order as text is that of the numbers.
func priority(p int32) string {
	sign := 1
	if p < 0 {
		sign = 0
	}
	return fmt.Sprintf("%d%08X", sign, uint32(p))
}

// Parse reads a name. ok is false for a znode that is no item of this kind.
func (k Items) Parse(name string) (item Item, ok bool) {
	prefix := itemName
	if k == KazooItems {
		prefix = kazooItemName
	}
	rest, ok := strings.CutPrefix(name, prefix)
	if !ok {
		return Item{}, false
	}
	item.Name = name
	switch k {
	case Prioritized:
		item.Key, rest, ok = parsePriority(rest)
	case Delayed:
		item.Key, rest, ok = parseTime(rest)
	case KazooItems:
		item.Key, rest, ok = parseKazooPriority(rest)
	default:
		var w Waiter
		w, ok = Parse(name, itemName)
		item.Number = w.Number
		return item, ok
	}
	number, isNumber := znode.ParseSequence(rest)
	item.Number = number
	return item, ok && isNumber
}

// parsePriority reads <priority> and returns the rest.
func parsePriority(s string) (key int64, rest string, ok bool) {
	const width = 9
	if len(s) < width {
		return 0, "", false
	}
	bits, err := strconv.ParseUint(s[1:width], 16, 32)
	return int64(int32(bits)), s[width:], err == nil && s[:width] == priority(int32(bits))
}

// parseKazooPriority reads <priority>- and returns the rest.
func parseKazooPriority(s string) (key int64, rest string, ok bool) {
	digits, rest, ok := strings.Cut(s, "-")
	n, err := strconv.ParseUint(digits, 10, 31)
	return int64(n), rest, ok && err == nil && len(digits) >= 3
}

// parseTime reads |<milliseconds>| and returns the rest.
func parseTime(s string) (key int64, rest string, ok bool) {
	s, ok = strings.CutPrefix(s, "|")
	digits, rest, ok2 := strings.Cut(s, "|")
	key, err := strconv.ParseInt(digits, 16, 64)
	return key, rest, ok && ok2 && err == nil && key >= 0
}

// Order returns those of a parent's children that are items, in the order in which to
// take them. Others are left out. Numbers are compared as by the function Order.
func (k Items) Order(children []string) []Item {
	var all []Item
	for _, name := range children {
		if item, ok := k.Parse(name); ok {
			all = append(all, item)
		}
	}
	if len(all) == 0 {
		return nil
	}
	origin := all[0].Number
	slices.SortFunc(all, func(a, b Item) int {
		return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.Number-origin, b.Number-origin))
	})
	return all
}

// The format of an item's data (Curator's ItemSerializer): a version, then for
// each item an opcode, its length and its bytes, then the opcode of the end. All
// numbers are big-endian.
const (
	itemsVersion = 0x00010001
	opcodeItem   = 1
	opcodeEnd    = 2
)

// EncodeItem returns the data of a znode for one item.
func EncodeItem(data []byte) []byte {
	b := make([]byte, 0, 4+1+4+len(data)+1)
	b = binary.BigEndian.AppendUint32(b, itemsVersion)
	b = append(b, opcodeItem)
	b = binary.BigEndian.AppendUint32(b, uint32(len(data)))
	b = append(b, data...)
	return append(b, opcodeEnd)
}

// DecodeItems returns the items of a znode; Curator can put several into one.
// Bytes of another format are one item as they are, so that an item can be put by
// hand, and no item stays in the queue forever because no client can decode it.
func DecodeItems(b []byte) [][]byte {
	if len(b) < 4 || binary.BigEndian.Uint32(b) != itemsVersion {
		return [][]byte{b}
	}
	var items [][]byte
	for rest := b[4:]; len(rest) > 0; {
		if rest[0] == opcodeEnd && len(rest) == 1 {
			return items
		}
		if rest[0] != opcodeItem || len(rest) < 5 {
			break
		}
		n := binary.BigEndian.Uint32(rest[1:])
		rest = rest[5:]
		if uint64(n) > uint64(len(rest)) {
			break
		}
		items = append(items, rest[:n:n])
		rest = rest[n:]
	}
	return [][]byte{b}
}
