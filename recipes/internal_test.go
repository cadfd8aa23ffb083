package recipes

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"testing"
)

func TestQueueNames_ReadBack(t *testing.T) {
	for _, p := range []int32{0, 1, -1, math.MaxInt32, math.MinInt32} {
		name := itemName + priorityKey(p) + "0000000003"
		if x, ok := parsePriorityName(name); !ok || x.key != int64(p) || x.seq != 3 {
			t.Errorf("%s: %v, %v", name, x, ok)
		}
	}
	for _, ms := range []int64{1, 0xffffffff, 1 << 41} {
		name := itemName + delayKey(ms) + "0000000003"
		if x, ok := parseDelayName(name); !ok || x.key != ms || x.seq != 3 {
			t.Errorf("%s: %v, %v", name, x, ok)
		}
	}
	for _, name := range []string{
		"", "queue-", "queue-0000000003", "queue-2000000010000000003", "x-queue-10000000010000000003",
		"queue-0000000010000000003", "queue-|1|", "queue-||0000000003", "queue-|-1|0000000003",
	} {
		if x, ok := parsePriorityName(name); ok {
			t.Errorf("priority %s: %v", name, x)
		}
		if x, ok := parseDelayName(name); ok {
			t.Errorf("delay %s: %v", name, x)
		}
	}
	if _, ok := parseQueueName("x-queue-0000000003"); ok {
		t.Error("a foreign name is in the queue")
	}
}

// Whatever is in a znode, it is decoded without loss: items encode back to what they
// came from, or are the bytes as they were.
func FuzzDecodeItems(f *testing.F) {
	f.Add(encodeItem([]byte("a")))
	f.Add(encodeItem(nil))
	f.Add([]byte("\x00\x01\x00\x01\x01\x00\x00\x00\x01a\x01\x00\x00\x00\x00\x02"))
	f.Add([]byte("\x00\x01\x00\x01\x01\xff\xff\xff\xffa\x02"))
	f.Add([]byte("\x00\x01\x00\x01\x02"))
	f.Add([]byte("plain"))
	f.Fuzz(func(t *testing.T, b []byte) {
		items := decodeItems(b)
		if len(items) == 1 && bytes.Equal(items[0], b) {
			return
		}
		var again strings.Builder
		again.WriteString("\x00\x01\x00\x01")
		for _, item := range items {
			one := encodeItem(item)
			again.Write(one[4 : len(one)-1])
		}
		again.WriteByte(opcodeEnd)
		if again.String() != string(b) {
			t.Errorf("%q decodes to %q", b, items)
		}
	})
}

func FuzzParseNames(f *testing.F) {
	for _, s := range []string{"queue-0000000001", "queue-1000000050000000000", "queue-|00012345|0000000002", "-2147483648",
		"queue--000000000"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, name string) {
		if x, ok := parseQueueName(name); ok && name != fmt.Sprintf("%s%010d", itemName, x.seq) &&
			!strings.Contains(name[len(itemName):], itemName) {
			// What stands between the prefix and the last marker is free.
			t.Errorf("%q reads as %d", name, x.seq)
		}
		if x, ok := parsePriorityName(name); ok && name != fmt.Sprintf("%s%s%010d", itemName, priorityKey(int32(x.key)), x.seq) {
			t.Errorf("%q reads as %d, %d", name, x.key, x.seq)
		}
		parseDelayName(name)
	})
}
