package forward

import (
	"bufio"
	"bytes"
	"reflect"
	"slices"
	"testing"

	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/znode"
)

func batchFrame(first uint64, commands ...*state.Command) []byte {
	b := appendBatchHeader(nil)
	for _, c := range commands {
		b = state.AppendCommand(b, c)
	}
	batch := state.Batch{Origin: state.Origin{Server: 3, Incarnation: 2}, First: first, Count: len(commands)}
	return finishBatch(b, &batch)
}

func TestStream_Frames_RoundTrip(t *testing.T) {
	var b []byte
	b = append(b, appendOpen(nil, 9, 1<<30)...)
	b = append(b, batchFrame(5, create("/a"), create("/b"))...)
	b = append(b, appendTouch(nil, 77, []znode.SessionID{1, -2})...)
	in := bufio.NewReader(bytes.NewReader(b))
	kind, body, err := readFrame(in)
	if err != nil || kind != frameOpen {
		t.Fatalf("first frame: kind %d, error %v; want an open frame (%d)", kind, err, frameOpen)
	}
	if limit, has, err := parseOpen(body); limit != 1<<30 || !has || err != nil {
		t.Fatalf("open frame: limit %d (present: %t), error %v; want %d", limit, has, err, 1<<30)
	}
	kind, body, err = readFrame(in)
	if err != nil || kind != frameBatch {
		t.Fatalf("second frame: kind %d, error %v; want a batch (%d)", kind, err, frameBatch)
	}
	batch, err := parseBatch(body, 3)
	want := state.Batch{
		Origin: state.Origin{Server: 3, Incarnation: 2}, First: 5, Count: 2,
		Commands: state.AppendCommand(state.AppendCommand(nil, create("/a")), create("/b")),
	}
	if err != nil || !reflect.DeepEqual(batch, want) {
		t.Fatalf("batch %+v, error %v; want %+v", batch, err, want)
	}
	kind, body, err = readFrame(in)
	if err != nil || kind != frameTouch {
		t.Fatalf("third frame: kind %d, error %v; want a touch (%d)", kind, err, frameTouch)
	}
	stamp, ids, err := parseTouch(body)
	if err != nil || stamp != 77 || !slices.Equal(ids, []znode.SessionID{1, -2}) {
		t.Fatalf("touch: stamp %d, sessions %v, error %v; want 77, [0x1 -0x2]", stamp, ids, err)
	}
	if _, _, err := readFrame(in); err == nil {
		t.Fatal("a frame after the last, want an error")
	}
}

// Builds older than the limits neither send nor expect one.
func TestStream_Limits_OldAndNew(t *testing.T) {
	old := endFrame(appendU64(beginFrame(nil, frameOpen), 9))[5:]
	if limit, has, err := parseOpen(old); limit != 0 || has || err != nil {
		t.Errorf("open frame of an old build: limit %d (present: %t), error %v; want none", limit, has, err)
	}
	for _, has := range []bool{false, true} {
		body := appendContact(nil, 7, 99, has)[5:]
		stamp, limit, err := parseContact(body)
		if stamp != 7 || err != nil || (limit == 99) != has || (len(body) == 8) == has {
			t.Errorf("limit sent: %t: stamp %d, limit %d, error %v, %d bytes; want 7, 99 if sent, 8 bytes if not",
				has, stamp, limit, err, len(body))
		}
	}
	for _, x := range []struct{ a, b, want int64 }{{0, 0, 0}, {0, 5, 5}, {5, 0, 5}, {4, 5, 4}, {5, 4, 4}} {
		if got := smaller(x.a, x.b); got != x.want {
			t.Errorf("smaller(%d, %d) = %d, want %d", x.a, x.b, got, x.want)
		}
	}
}

func TestStream_BadFrames_AreRefused(t *testing.T) {
	good := batchFrame(1, create("/a"))[5:]
	for name, body := range map[string][]byte{
		"short": good[:batchHeader-1], "cut": good[:len(good)-1],
		"more":  append(slices.Clone(good), 0),
		"count": append(append(slices.Clone(good[:batchHeader-4]), 0xff, 0xff, 0xff, 0xff), good[batchHeader:]...),
	} {
		if batch, err := parseBatch(body, 1); err == nil {
			t.Errorf("%s: parsed as %+v, want an error", name, batch)
		}
	}
	for _, size := range []int{0, 7, 9, 15} {
		if _, _, err := parseTouch(make([]byte, size)); err == nil {
			t.Errorf("a touch of %d bytes was accepted", size)
		}
		if _, _, err := parseOpen(make([]byte, size)); err == nil {
			t.Errorf("an open of %d bytes was accepted", size)
		}
		if _, _, err := parseContact(make([]byte, size)); err == nil {
			t.Errorf("a contact of %d bytes was accepted", size)
		}
	}
	for _, head := range []string{"\x00\x00\x00\x00\x01", "\x01\x00\x00\x01\x01", "\xff\xff\xff\xff\x01"} {
		if _, _, err := readFrame(bufio.NewReader(bytes.NewReader([]byte(head)))); err == nil {
			t.Errorf("a frame with head % x was accepted", head)
		}
	}
}

// FuzzStream_Leader reads bytes as the leader reads a stream. The leader must accept only commands that can be
// applied: an entry that cannot stops every server.
func FuzzStream_Leader(f *testing.F) {
	f.Add(batchFrame(1, create("/a"), &state.Command{Op: state.OpSync}))
	f.Add(appendTouch(nil, 1, []znode.SessionID{1, 2}))
	f.Add(append(appendOpen(nil, 1, -1), appendContact(nil, 1, -1, true)...))
	f.Add(append(batchFrame(2, create("/a")), batchFrame(3, &state.Command{Op: state.OpCloseSession, Session: 1})...))
	f.Fuzz(func(t *testing.T, b []byte) {
		in := bufio.NewReader(bytes.NewReader(b))
		m := state.New()
		for index := uint64(1); ; index++ {
			kind, body, err := readFrame(in)
			if err != nil {
				return
			}
			switch kind {
			case frameOpen:
				if limit, _, _ := parseOpen(body); limit < 0 {
					t.Fatalf("a limit of %d", limit)
				}
			case frameContact:
				if _, limit, _ := parseContact(body); limit < 0 {
					t.Fatalf("a limit of %d", limit)
				}
			case frameTouch:
				_, _, _ = parseTouch(body)
			case frameBatch:
				batch, err := parseBatch(body, 1)
				if err != nil {
					return
				}
				entry := state.AppendEntry(nil, 1, []state.Batch{batch})
				if err := m.Apply(index, 1, entry, discard{}); err != nil {
					t.Fatalf("the leader took a batch that cannot be applied: %v", err)
				}
			}
		}
	})
}
