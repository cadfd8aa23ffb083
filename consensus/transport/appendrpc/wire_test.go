package appendrpc

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/hashicorp/raft"
)

// header is what raft puts into every message.
var header = raft.RPCHeader{ProtocolVersion: 3, ID: []byte("1"), Addr: []byte("127.0.0.1:2888")}

func requests() map[string]*raft.AppendEntriesRequest {
	heartbeat := &raft.AppendEntriesRequest{RPCHeader: header, Term: 7,
		Leader: header.Addr} //nolint:staticcheck // raft still sends and checks it
	full := &raft.AppendEntriesRequest{RPCHeader: header, Term: 1 << 63, PrevLogEntry: 41, PrevLogTerm: 6,
		LeaderCommitIndex: 40, Leader: header.Addr} //nolint:staticcheck // as above
	for i, typ := range []raft.LogType{raft.LogCommand, raft.LogNoop, raft.LogConfiguration} {
		full.Entries = append(full.Entries, &raft.Log{
			Index: uint64(42 + i), Term: 7, Type: typ, AppendedAt: time.Unix(int64(i), 5).UTC(),
		})
	}
	full.Entries[0].Data = bytes.Repeat([]byte("d"), 3*bufferSize/2) // more than a buffer holds
	full.Entries[2].Data, full.Entries[2].Extensions = []byte("data"), []byte("extensions")
	full.Entries[1].AppendedAt = time.Time{}
	return map[string]*raft.AppendEntriesRequest{"heartbeat": heartbeat, "full": full, "empty": {}}
}

func encodeRequest(t testing.TB, form byte, req *raft.AppendEntriesRequest) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := writeRequest(bufio.NewWriterSize(&out, bufferSize), form, req); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestWire_Request_RoundTrip(t *testing.T) {
	for name, want := range requests() {
		t.Run(name, func(t *testing.T) {
			b := encodeRequest(t, formNotice, want)
			in := bufio.NewReader(iotest.OneByteReader(bytes.NewReader(append(b, 'x'))))
			form, got, err := readRequest(in)
			if err != nil || form != formNotice {
				t.Fatalf("form %d, %v", form, err)
			}
			if len(got.Entries) != len(want.Entries) {
				t.Fatalf("%d entries, want %d", len(got.Entries), len(want.Entries))
			}
			for i, e := range want.Entries {
				if g := got.Entries[i]; !g.AppendedAt.Equal(e.AppendedAt) || g.AppendedAt.IsZero() != e.AppendedAt.IsZero() {
					t.Errorf("entry %d was appended at %v, want %v", i, g.AppendedAt, e.AppendedAt)
				} else {
					g.AppendedAt = e.AppendedAt
				}
			}
			if !reflect.DeepEqual(got, want) {
				t.Fatalf("got %+v\nwant %+v", got, want)
			}
			if next, err := in.ReadByte(); err != nil || next != 'x' {
				t.Fatalf("what follows is %q, %v", next, err)
			}
		})
	}
}

func TestWire_Answer_RoundTrip(t *testing.T) {
	for name, want := range map[string]raft.RPCResponse{
		"success": {Response: &raft.AppendEntriesResponse{RPCHeader: header, Term: 5, LastLog: 9, Success: true}},
		"refusal": {Response: &raft.AppendEntriesResponse{RPCHeader: header, Term: 6, NoRetryBackoff: true}},
		"error":   {Response: &raft.AppendEntriesResponse{RPCHeader: header}, Error: errors.New("the disk is full")},
		"nothing": {Error: errors.New("stopping")},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			if err := writeAnswer(&out, want); err != nil {
				t.Fatal(err)
			}
			resp := &raft.AppendEntriesResponse{}
			err := readAnswer(bufio.NewReader(&out), resp)
			var declined *DeclinedError
			if want.Error == nil && err != nil ||
				want.Error != nil && (!errors.As(err, &declined) || err.Error() != want.Error.Error()) {
				t.Fatalf("error %v, want %v", err, want.Error)
			}
			if want.Response == nil {
				want.Response = &raft.AppendEntriesResponse{}
			}
			if !reflect.DeepEqual(resp, want.Response) {
				t.Fatalf("got %+v, want %+v", resp, want.Response)
			}
		})
	}
}

func TestWire_Request_Malformed(t *testing.T) {
	good := encodeRequest(t, formRequest, requests()["heartbeat"])
	edit := func(at int, b ...byte) []byte {
		c := bytes.Clone(good)
		copy(c[at:], b)
		return c
	}
	count := len(good) - 4
	for _, c := range []struct {
		name string
		in   []byte
		text string
	}{
		{"short", edit(0, 0, 0, 0, 3), "3 bytes announced"},
		{"long", edit(0, 0xff, 0xff, 0xff, 0xff), "4294967295 bytes announced"},
		{"cut", edit(0, 0, 0, 0, requestHead+1), "cut short"},
		{"something behind", append(edit(3, good[3]+1), 'x'), "1 extra bytes"},
		{"form", edit(5, 9), "unknown form 9"},
		{"entries", edit(count, 0xff, 0xff, 0xff, 0xff), "4294967295 entries announced"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, _, err := readRequest(bufio.NewReader(bytes.NewReader(c.in)))
			if !errors.Is(err, ErrMalformed) || !strings.Contains(err.Error(), c.text) {
				t.Fatalf("error %v, want a malformed one with %q", err, c.text)
			}
		})
	}
}

// A length that is only announced costs no memory.
func TestWire_Request_AnnouncedOnly(t *testing.T) {
	in := binary.BigEndian.AppendUint32(nil, maxRequest)
	in = append(in, make([]byte, 100)...)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, _, err := readRequest(bufio.NewReader(bytes.NewReader(in)))
	runtime.ReadMemStats(&after)
	if !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Fatalf("error %v", err)
	}
	if n := after.TotalAlloc - before.TotalAlloc; n > 2*readStep {
		t.Fatalf("%d bytes were allocated for 100", n)
	}
}

func FuzzDecodeRequest(f *testing.F) {
	for _, req := range requests() {
		f.Add(encodeRequest(f, formRequest, req)[4:])
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		form, req, err := decodeRequest(b)
		if err != nil {
			if !errors.Is(err, ErrMalformed) {
				t.Fatalf("error %v", err)
			}
			return
		}
		for _, e := range req.Entries {
			if e.AppendedAt.Nanosecond() != int(binary.BigEndian.Uint32(nanosOf(b, req, e))) {
				return // more nanoseconds than a second has: another encoding of the same time
			}
		}
		if got := encodeRequest(t, form, req)[4:]; !bytes.Equal(got, b) {
			t.Fatalf("%x was read as what encodes to %x", b, got)
		}
	})
}

// nanosOf finds the nanoseconds of entry e in the encoding of req.
func nanosOf(b []byte, req *raft.AppendEntriesRequest, e *raft.Log) []byte {
	at := requestSize(&raft.AppendEntriesRequest{RPCHeader: req.RPCHeader,
		Leader: req.Leader}) //nolint:staticcheck // as above
	for _, x := range req.Entries {
		if x == e {
			return b[at+8+8+1+8:]
		}
		at += entryHead + len(x.Extensions) + len(x.Data)
	}
	return nil
}

func FuzzDecodeAnswer(f *testing.F) {
	for _, r := range []raft.RPCResponse{
		{Response: &raft.AppendEntriesResponse{RPCHeader: header, Term: 5, LastLog: 9, Success: true}},
		{Response: &raft.AppendEntriesResponse{RPCHeader: header}, Error: errors.New("full")},
	} {
		var out bytes.Buffer
		if err := writeAnswer(&out, r); err != nil {
			f.Fatal(err)
		}
		f.Add(out.Bytes()[4:])
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		resp := &raft.AppendEntriesResponse{}
		err := decodeAnswer(b, resp)
		var declined *DeclinedError
		if err != nil && !errors.Is(err, ErrMalformed) && !errors.As(err, &declined) {
			t.Fatalf("error %v", err)
		}
		if errors.Is(err, ErrMalformed) && resp.Success {
			t.Fatal("a malformed answer is a success")
		}
	})
}
