package rest

import (
	"bytes"
	"container/list"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf16"
	"unicode/utf8"
)

// Data reads the body as a znode's data, byte for byte.
func (q *Request) Data() ([]byte, error) { return q.Body(q.Core.Config.MaxBody) }

// Body reads the request's body, of at most limit bytes; never nil. It is called once.
func (q *Request) Body(limit int) ([]byte, error) {
	if q.HTTP.ContentLength > int64(limit) {
		return nil, tooLarge(limit)
	}
	control, all := http.NewResponseController(q.W), &q.Core.bodies
	q.body = all.begin(q.Address, func() { _ = control.SetReadDeadline(time.Unix(1, 0)) })
	most := limit
	if q.HTTP.ContentLength >= 0 {
		most = int(q.HTTP.ContentLength)
	}
	b, err := all.read(q.body, http.MaxBytesReader(q.W, q.HTTP.Body, int64(limit)), most)
	intact := all.complete(q.body)
	var over *http.MaxBytesError
	var slow net.Error
	var refused *Problem
	switch {
	case err == nil:
		_ = control.SetReadDeadline(time.Time{})
		return b, nil // otherwise net/http skips the rest before it answers, and the deadline ends that
	case errors.As(err, &refused):
		return nil, refused
	case errors.As(err, &over):
		return nil, tooLarge(limit)
	case !intact:
		return nil, cutOff()
	case errors.As(err, &slow) && slow.Timeout() && q.Core.Stopping.Err() != nil:
		return nil, Unavailable("this server is stopping, and the body was not complete")
	case errors.As(err, &slow) && slow.Timeout():
		return nil, &Problem{
			Status: http.StatusRequestTimeout, Title: "the body came too slowly",
			Detail: fmt.Sprintf("it was not complete after %v; nothing was done", q.Core.Config.Limits.BodyTime),
			Hint:   "try again",
		}
	}
	return nil, BadRequest("body", "%v", err)
}

func releaseBody(q *Request) {
	if q.body != nil {
		q.Core.bodies.release(q.body)
	}
}

func tooLarge(limit int) *Problem {
	p := &Problem{
		Status: http.StatusRequestEntityTooLarge, Title: "body too large",
		Detail: fmt.Sprintf("the body has more than %d bytes", limit),
		Hint:   "see /docs for the fields that it may have",
	}
	if limit > SmallBody {
		p.Hint = "znodes are for small data: store large data elsewhere, and its location here"
	}
	return p
}

// Decode reads a JSON body into v, and refuses fields that v does not have. An empty
// body leaves v as it is.
func (q *Request) Decode(limit int, v any) error {
	b, err := q.Body(limit)
	if err != nil || len(b) == 0 {
		return err
	}
	if !utf8.Valid(b) || loneSurrogate(b) { // which encoding/json would replace by U+FFFD
		return BadRequest("body", "it has text that is not Unicode; send other data as base64, with "+
			`"encoding": "base64"`)
	}
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil {
		return decodeProblem(err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return BadRequest("body", "something follows the JSON document")
	}
	return nil
}

// decodeProblem describes an error in a JSON body in the terms of JSON.
func decodeProblem(err error) *Problem {
	var kind *json.UnmarshalTypeError
	var syntax *json.SyntaxError
	switch {
	case errors.As(err, &kind) && kind.Field == "":
		return BadRequest("body", "it must be a JSON object, not: %s", kind.Value)
	case errors.As(err, &kind):
		return BadRequest(kind.Field, "it must be %s, not: %s", jsonName(kind.Type), kind.Value)
	case errors.As(err, &syntax):
		return BadRequest("body", "this is not JSON: %v, at byte %d", syntax, syntax.Offset)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return BadRequest("body", "the JSON document is not complete")
	}
	return BadRequest("body", "%s", strings.TrimPrefix(err.Error(), "json: "))
}

// jsonName is what JSON calls a type.
func jsonName(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice, reflect.Array:
		return "an array"
	case reflect.Struct, reflect.Map:
		return "an object"
	case reflect.Pointer:
		return jsonName(t.Elem())
	}
	return "a whole number within its bounds"
}

// loneSurrogate reports whether a JSON text has half of a surrogate pair as an escape,
// such as \ud800 (RFC 8259, 8.2), which is no character.
func loneSurrogate(b []byte) bool {
	for i := 0; i+1 < len(b); i++ {
		if b[i] != '\\' {
			continue
		}
		r := escapedUnit(b[i:])
		switch {
		case !utf16.IsSurrogate(r):
			i++ // the escaped character: it may be a backslash itself
		case utf16.DecodeRune(r, escapedUnit(b[i+6:])) == utf8.RuneError:
			return true
		default:
			i += 11
		}
	}
	return false
}

// escapedUnit is the number of an escape like \u00e4 at the start of b; -1 without one.
func escapedUnit(b []byte) rune {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return -1
	}
	n, err := strconv.ParseUint(string(b[2:6]), 16, 16)
	if err != nil {
		return -1
	}
	return rune(n)
}

// bodies bounds the memory of all requests' bodies, as far as they have arrived. When it is exhausted, incomplete
// bodies are cut off, the oldest first: one that is sent without pause is complete long before. The bodies of one
// address have at most half of the memory.
type bodies struct {
	limit int64 // bytes

	mu         sync.Mutex // protects the fields below, and those of every body
	held       int64
	byAddress  map[string]int64 // never 0
	incomplete list.List        // of *heldBody, in the order in which they began
}

// heldBody is the part of a body that has arrived.
type heldBody struct {
	address string
	held    int64
	place   *list.Element // among the incomplete; nil: it is complete
	end     func()        // ends its read; it does not block
	cut     bool          // others needed the room
}

// begin adds a body of which nothing has arrived.
func (t *bodies) begin(address string, end func()) *heldBody {
	t.mu.Lock()
	defer t.mu.Unlock()
	b := &heldBody{address: address, end: end}
	b.place = t.incomplete.PushBack(b)
	return b
}

// grow holds n more bytes for a body. It is refused if they do not fit.
func (t *bodies) grow(b *heldBody, n int64) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if b.cut {
		return cutOff()
	}
	for e := t.incomplete.Front(); e != b.place && !t.fitsLocked(b, n); {
		oldest := e.Value.(*heldBody)
		e = e.Next()
		if oldest.address == b.address || t.held+n > t.limit {
			t.releaseLocked(oldest)
			oldest.cut = true
			oldest.end()
		}
	}
	if !t.fitsLocked(b, n) {
		return TooMany(1, "there is no memory left for more request bodies, or %s has half of it", b.address)
	}
	b.held += n
	t.held += n
	t.byAddress[b.address] += n
	return nil
}

// firstRead is how many bytes of a body there is room for before any has come.
const firstRead = 512

// read reads a body of at most most bytes to its end. The memory grows with the bytes that arrive: the announced length
// may be a lie.
func (t *bodies) read(b *heldBody, in io.Reader, most int) ([]byte, error) {
	data := []byte{}
	for {
		if len(data) == cap(data) {
			size := min(max(2*len(data), firstRead), most+1) // the one more is for the end
			if err := t.grow(b, int64(size-len(data))); err != nil {
				return nil, err
			}
			data = append(make([]byte, 0, size), data...)
		}
		n, err := in.Read(data[len(data):cap(data)])
		data = data[:len(data)+n]
		switch {
		case errors.Is(err, io.EOF):
			return data, nil
		case err != nil:
			return nil, err
		}
	}
}

// fitsLocked: an address's only body may be a large one.
func (t *bodies) fitsLocked(b *heldBody, n int64) bool {
	sum := t.byAddress[b.address]
	return t.held+n <= t.limit && (sum == b.held || sum+n <= t.limit/2)
}

// complete marks a body as complete, and reports whether it was in time.
func (t *bodies) complete(b *heldBody) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.passLocked(b)
	return !b.cut
}

// release ends a body: the request has been answered.
func (t *bodies) release(b *heldBody) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.releaseLocked(b)
}

func (t *bodies) releaseLocked(b *heldBody) {
	t.passLocked(b)
	t.held -= b.held
	if t.byAddress[b.address] -= b.held; t.byAddress[b.address] == 0 {
		delete(t.byAddress, b.address)
	}
	b.held = 0
}

// passLocked removes a body from the list of those that may be cut off.
func (t *bodies) passLocked(b *heldBody) {
	if b.place != nil {
		t.incomplete.Remove(b.place)
		b.place = nil
	}
}

// bytes is how much all bodies hold.
func (t *bodies) bytes() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.held
}

func cutOff() *Problem {
	return TooMany(1, "the body came slowly, and others needed the memory; nothing was done")
}
