package curator_test

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/zk-lite/zk-lite/internal/curator"
)

func TestItems_NamesReadBack(t *testing.T) {
	for kind, keys := range map[curator.Items][]int64{
		curator.Plain:       {0},
		curator.Prioritized: {0, 1, -1, math.MaxInt32, math.MinInt32},
		curator.Delayed:     {1, 0xffffffff, 1 << 41},
	} {
		for _, key := range keys {
			want := curator.Item{Name: kind.Name(key) + "0000000003", Key: key, Number: 3}
			if got, ok := kind.Parse(want.Name); !ok || got != want {
				t.Errorf("%s reads as %+v (%t), want %+v", want.Name, got, ok, want)
			}
		}
	}
	for _, name := range []string{
		"", "queue-", "queue-0000000003", "queue-2000000010000000003", "x-queue-10000000010000000003",
		"queue-0000000010000000003", "queue-|1|", "queue-||0000000003", "queue-|-1|0000000003",
	} {
		for _, kind := range []curator.Items{curator.Prioritized, curator.Delayed} {
			if got, ok := kind.Parse(name); ok {
				t.Errorf("kind %d: %q reads as %+v, want no item", kind, name, got)
			}
		}
	}
	if got, ok := curator.Plain.Parse("x-queue-0000000003"); ok {
		t.Errorf("a foreign name reads as %+v, want no item", got)
	}
}

func TestItems_Order(t *testing.T) {
	for kind, want := range map[curator.Items][]string{
		curator.Plain:       {"queue-2147483647", "queue--2147483648"}, // where the counter wraps
		curator.Prioritized: {"queue-0FFFFFFFF0000000009", "queue-1000000000000000002", "queue-1000000000000000003"},
		curator.Delayed:     {"queue-|00000001|0000000009", "queue-|100000000|0000000001"},
	} {
		children := append([]string{"other"}, want...)
		slices.Reverse(children)
		var got []string
		for _, item := range kind.Order(children) {
			got = append(got, item.Name)
		}
		if !slices.Equal(got, want) {
			t.Errorf("kind %d: order %q, want %q", kind, got, want)
		}
	}
}

// Any data of a znode decodes without loss: items encode back to the bytes that they came from, or are those bytes.
func FuzzDecodeItems(f *testing.F) {
	f.Add(curator.EncodeItem([]byte("a")))
	f.Add(curator.EncodeItem(nil))
	f.Add([]byte("\x00\x01\x00\x01\x01\x00\x00\x00\x01a\x01\x00\x00\x00\x00\x02"))
	f.Add([]byte("\x00\x01\x00\x01\x01\xff\xff\xff\xffa\x02"))
	f.Add([]byte("\x00\x01\x00\x01\x02"))
	f.Add([]byte("plain"))
	f.Fuzz(func(t *testing.T, b []byte) {
		items := curator.DecodeItems(b)
		if len(items) == 1 && bytes.Equal(items[0], b) {
			return
		}
		var again strings.Builder
		again.WriteString("\x00\x01\x00\x01")
		for _, item := range items {
			one := curator.EncodeItem(item)
			again.Write(one[4 : len(one)-1])
		}
		again.WriteByte(2)
		if again.String() != string(b) {
			t.Errorf("%q decodes to %q, which encodes to %q", b, items, again.String())
		}
	})
}

func FuzzItems_Parse(f *testing.F) {
	for _, s := range []string{"queue-0000000001", "queue-1000000050000000000", "queue-|00012345|0000000002", "-2147483648",
		"queue--000000000"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, name string) {
		const prefix = "queue-"
		if x, ok := curator.Plain.Parse(name); ok && name != fmt.Sprintf("%s%010d", prefix, x.Number) &&
			!strings.Contains(name[len(prefix):], prefix) {
			// The bytes between the prefix and the last marker are free.
			t.Errorf("%q reads as number %d, want one whose name it is", name, x.Number)
		}
		if x, ok := curator.Prioritized.Parse(name); ok &&
			name != fmt.Sprintf("%s%010d", curator.Prioritized.Name(x.Key), x.Number) {
			t.Errorf("%q reads as priority %d and number %d, want those whose name it is", name, x.Key, x.Number)
		}
		curator.Delayed.Parse(name)
	})
}
