package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

// data reads the body as a znode's data, byte for byte.
func (q *request) data() ([]byte, error) { return q.body(q.door.cfg.MaxBody) }

// body reads the request's body, of at most so many bytes; never nil.
func (q *request) body(limit int) ([]byte, error) {
	size := q.http.ContentLength
	if size > int64(limit) {
		return nil, tooLarge(limit)
	}
	if size < 0 {
		size = int64(limit)
	}
	if q.held += size; q.door.bodies.Add(size) > maxBodies {
		return nil, tooMany(1, "this server is taking in as much as it can")
	}
	b, err := io.ReadAll(http.MaxBytesReader(q.w, q.http.Body, int64(limit)))
	_ = http.NewResponseController(q.w).SetReadDeadline(time.Time{})
	var over *http.MaxBytesError
	var slow net.Error
	switch {
	case err == nil:
		return b, nil
	case errors.As(err, &over):
		return nil, tooLarge(limit)
	case errors.As(err, &slow) && slow.Timeout():
		return nil, &problem{
			Status: http.StatusRequestTimeout, Title: "the body came too slowly",
			Detail: fmt.Sprintf("it was not complete after %v; nothing was done", bodyTimeout),
			Hint:   "try again",
		}
	}
	return nil, badRequest("body", "%v", err)
}

func tooLarge(limit int) *problem {
	return &problem{
		Status: http.StatusRequestEntityTooLarge, Title: "body too large",
		Detail: fmt.Sprintf("the body has more than %d bytes", limit),
		Hint:   "znodes are for small data: keep the data elsewhere and store where it is",
	}
}

// decode reads a JSON body into v, and refuses what v has no place for. An empty
// body leaves v as it is.
func (q *request) decode(limit int, v any) error {
	b, err := q.body(limit)
	if err != nil || len(b) == 0 {
		return err
	}
	dec := json.NewDecoder(strings.NewReader(string(b)))
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil {
		return badRequest("body", "%s", strings.TrimPrefix(err.Error(), "json: "))
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return badRequest("body", "something follows the JSON document")
	}
	return nil
}
