package wire

import (
	"bytes"
	"reflect"
	"testing"

	"github.com/zk-lite/zk-lite/internal/jute"
)

// checkStable checks that rec, decoded from fuzzed bytes, survives being
// encoded: decode(encode(rec)) is rec, and encode gives the same bytes again.
func checkStable(t *testing.T, rec Record) {
	t.Helper()
	encoded := rec.Append(nil)
	again := blank(rec)
	r := jute.NewReader(encoded)
	again.Decode(r)
	if r.Err() != nil || r.Remaining() != 0 {
		t.Fatalf("%T %+v\n encodes as %x: error %v, %d bytes left",
			rec, rec, encoded, r.Err(), r.Remaining())
	}
	if !reflect.DeepEqual(again, rec) {
		t.Fatalf("%T\n got %+v\nwant %+v", rec, again, rec)
	}
	if b := again.Append(nil); !bytes.Equal(b, encoded) {
		t.Fatalf("%T\n got %x\nwant %x", rec, b, encoded)
	}
}

func FuzzRequest(f *testing.F) {
	for _, g := range goldens() {
		for _, op := range allOpCodes() {
			if req := NewRequest(op); req != nil && reflect.TypeOf(req) == reflect.TypeOf(g.record) {
				h := RequestHeader{Xid: 1, Type: op}
				f.Add(append(h.Append(nil), unhex(f, g.hex)...))
			}
		}
	}
	f.Add([]byte{0, 0, 0, 1, 0, 0, 0, 11})
	f.Fuzz(func(t *testing.T, payload []byte) {
		h, req, err := ParseRequest(payload)
		if err != nil {
			return
		}
		if !h.Type.ClientRequest() {
			t.Fatalf("accepted type %s", h.Type)
		}
		checkStable(t, &h)
		checkStable(t, req)
	})
}

func FuzzReply(f *testing.F) {
	header := ReplyHeader{Xid: 1, Zxid: 2}
	for _, g := range goldens() {
		payload := append(header.Append(nil), unhex(f, g.hex)...)
		for _, op := range allOpCodes() {
			resp := NewResponse(op)
			if resp != nil && reflect.TypeOf(resp) == reflect.TypeOf(g.record) {
				f.Add(int32(op), payload)
			}
		}
		if _, ok := g.record.(*WatcherEvent); ok {
			f.Add(int32(OpNotification), payload)
		}
	}
	f.Fuzz(func(t *testing.T, op int32, payload []byte) {
		if OpCode(op) == OpNotification {
			r := jute.NewReader(payload)
			var h ReplyHeader
			h.Decode(r)
			var event WatcherEvent
			event.Decode(r)
			if r.Err() == nil {
				checkStable(t, &event)
			}
			return
		}
		h, resp, err := ParseReply(payload, OpCode(op))
		if err != nil {
			return
		}
		checkStable(t, &h)
		if resp != nil {
			checkStable(t, resp)
		}
	})
}

func FuzzMulti(f *testing.F) {
	for _, g := range goldenMultis() {
		f.Add(false, unhex(f, g.hex))
		f.Add(true, unhex(f, g.hex))
	}
	f.Fuzz(func(t *testing.T, read bool, body []byte) {
		if m, err := decodeMulti(read, body); err == nil {
			if len(m.Ops) > len(body)/multiOpMinBytes {
				t.Fatalf("%d operations in %d bytes", len(m.Ops), len(body))
			}
			if err := m.Validate(); err != nil {
				t.Fatal(err)
			}
			for i := range m.Ops {
				if want := m.Ops[i].EffectiveType(); !m.allows(want) {
					t.Fatalf("operation %d is a %s", i, want)
				}
			}
			checkStable(t, m)
		}
		var resp MultiResponse
		r := jute.NewReader(body)
		if resp.Decode(r); r.Err() == nil {
			checkStable(t, &resp)
		}
	})
}

func FuzzConnect(f *testing.F) {
	for _, g := range goldens() {
		switch g.record.(type) {
		case *ConnectRequest, *ConnectResponse:
			f.Add(unhex(f, g.hex))
		}
	}
	f.Fuzz(func(t *testing.T, payload []byte) {
		for _, rec := range []Record{&ConnectRequest{}, &ConnectResponse{}} {
			r := jute.NewReader(payload)
			if rec.Decode(r); r.Err() == nil {
				checkStable(t, rec)
			}
		}
	})
}

func FuzzFrameReader(f *testing.F) {
	f.Add(frames("abc", "", "de"))
	f.Add([]byte{0x7f, 0xff, 0xff, 0xff, 1})
	f.Fuzz(func(t *testing.T, stream []byte) {
		fr := NewFrameReader(bytes.NewReader(stream), DefaultMaxFrame)
		var read []byte
		for {
			payload, err := fr.Next()
			if err != nil {
				break
			}
			read = append(read, frames(string(payload))...)
		}
		if !bytes.HasPrefix(stream, read) {
			t.Fatalf("got the frames %x", read)
		}
	})
}
