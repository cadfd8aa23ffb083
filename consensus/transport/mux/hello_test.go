package mux

import (
	"bytes"
	"encoding/binary"
	"errors"
	"strings"
	"testing"
	"testing/iotest"
)

func TestHello_ReadHello_RoundTrip(t *testing.T) {
	want := hello{kind: KindStream, ensemble: testEnsemble, from: 7, to: 1 << 63}
	b := want.append(nil)
	r := bytes.NewReader(append(b, "next"...))
	got, err := readHello(r)
	if err != nil || got != want {
		t.Fatalf("got %+v, %v; want %+v", got, err, want)
	}
	if r.Len() != len("next") {
		t.Fatalf("%d bytes left, want exactly those after the hello", r.Len())
	}
}

func TestHello_ReadHello_Refusals(t *testing.T) {
	good := hello{kind: KindRaft, ensemble: testEnsemble, from: 1}.append(nil)
	edit := func(at int, b byte) []byte {
		c := bytes.Clone(good)
		c[at] = b
		return c
	}
	long := append([]byte(helloMagic), protoVersion, 0xff, 0xff)
	later := append([]byte(helloMagic), 9, 0, 2, 'x', 'y')
	for _, c := range []struct {
		name string
		in   []byte
		code RefusalCode // 0: not worth an answer
		text string
	}{
		{"nothing", nil, 0, "nothing was sent"},
		{"cut in prefix", good[:5], 0, "after 5 bytes"},
		{"cut in body", good[:20], 0, "after 20 of 40"},
		{"garbage", []byte("GET / HTTP/1.1\r\n"), 0, `starts with "GET "`},
		{"oversize", long, RefusedMalformed, "65535 bytes, at most 1024"},
		{"later version", later, RefusedVersion, "version 9"},
		{"wrong size", edit(6, helloBody-1), RefusedMalformed, "want 33"},
		{"unknown kind", edit(7, 9), RefusedMalformed, "unknown kind 9"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := readHello(bytes.NewReader(c.in))
			if err == nil || !strings.Contains(err.Error(), c.text) {
				t.Fatalf("error %v, want one with %q", err, c.text)
			}
			var refusal *RefusedError
			if errors.As(err, &refusal) != (c.code != 0) || c.code != 0 && refusal.Code != c.code {
				t.Fatalf("refusal %v, want code %v", refusal, c.code)
			}
		})
	}
}

func TestAnswer_ReadAnswer_RoundTrip(t *testing.T) {
	if err := readAnswer(bytes.NewReader(appendAnswer(nil, nil))); err != nil {
		t.Fatal(err)
	}
	in := refuse(RefusedServer, "%s", strings.Repeat("x", 2*maxReason))
	err := readAnswer(bytes.NewReader(appendAnswer(nil, in)))
	var out *RefusedError
	if !errors.As(err, &out) || out.Code != RefusedServer || len(out.Reason) != maxReason {
		t.Fatalf("got %v, want the refusal with its reason cut to %d bytes", err, maxReason)
	}
	for _, bad := range []string{"", "zkLA", "HTTP/1.1 400 Bad Request", "zkLA\x01\x05\xff\xff"} {
		if err := readAnswer(strings.NewReader(bad)); err == nil || errors.As(err, &out) {
			t.Errorf("answer %q: got %v, want an error that is no refusal", bad, err)
		}
	}
}

func FuzzReadHello(f *testing.F) {
	f.Add(hello{kind: KindRaft, ensemble: testEnsemble, from: 1, to: 2}.append(nil))
	f.Add(hello{kind: KindControl}.append(nil))
	f.Add([]byte("GET / HTTP/1.1\r\n\r\n"))
	f.Add(append([]byte(helloMagic), protoVersion, 0xff, 0xff))
	f.Add(append([]byte(helloMagic), 9, 0, 2, 'x', 'y'))
	f.Fuzz(func(t *testing.T, b []byte) {
		r := bytes.NewReader(b)
		h, err := readHello(r)
		used := len(b) - r.Len()
		if used > helloPrefix+maxHelloBody {
			t.Fatalf("read %d bytes, more than the bound", used)
		}
		if err != nil {
			if h != (hello{}) {
				t.Fatalf("error %v with a hello %+v", err, h)
			}
			return
		}
		if !bytes.Equal(h.append(nil), b[:used]) {
			t.Fatalf("%+v does not encode to what it was read from: %x", h, b[:used])
		}
	})
}

func FuzzReadAnswer(f *testing.F) {
	f.Add(appendAnswer(nil, nil))
	f.Add(appendAnswer(nil, refuse(RefusedBusy, "later")))
	f.Fuzz(func(t *testing.T, b []byte) {
		r := bytes.NewReader(b)
		err := readAnswer(r)
		if used := len(b) - r.Len(); used > answerPrefix+maxReason {
			t.Fatalf("read %d bytes, more than the bound", used)
		}
		if err == nil && (len(b) < answerPrefix || b[5] != 0) {
			t.Fatalf("%x admits nobody", b)
		}
	})
}

// A reader that gives one byte at a time must make no difference.
func TestHello_ReadHello_ByteByByte(t *testing.T) {
	want := hello{kind: KindControl, from: 3}
	got, err := readHello(iotest.OneByteReader(bytes.NewReader(want.append(nil))))
	if err != nil || got != want {
		t.Fatalf("got %+v, %v", got, err)
	}
	if n := binary.BigEndian.Uint16(want.append(nil)[5:]); n != helloBody {
		t.Fatalf("length field %d, want %d", n, helloBody)
	}
}
