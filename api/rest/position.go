package rest

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/zk-lite/zk-lite/server/changes"
)

// FormatPosition writes a place in the order of changes: the zxid, and in the
// midst of a transaction .n behind it.
func FormatPosition(p changes.Position) string {
	if p.Part == 0 {
		return p.Zxid.String()
	}
	return fmt.Sprintf("%s.%d", p.Zxid, p.Part)
}

// ParsePosition is the inverse of FormatPosition.
func ParsePosition(param, text string) (changes.Position, error) {
	digits, part, midst := strings.Cut(text, ".")
	var p changes.Position
	var err error
	if p.Zxid, err = ParseZxid(param, digits); err != nil {
		return p, BadRequest(param, "%q is not a position: the zxid, or the id of a stream's "+
			"event, such as 0x100000002 or 0x100000002.1", text)
	}
	if !midst {
		return p, nil
	}
	if p.Part, err = strconv.Atoi(part); err != nil || p.Part < 1 || p.Zxid == 0 {
		return p, BadRequest(param, "%q: after the point there must be a number from 1", text)
	}
	return p, nil
}

// ResumePoint is where the client wants to go on, and what it has said so with; none
// if it begins.
func (q *Request) ResumePoint() (param, text string) {
	if id := q.HTTP.Header.Get("Last-Event-ID"); id != "" {
		return "Last-Event-ID", id
	}
	if q.Query.Has("since") {
		return "since", q.Query.Text("since")
	}
	return "", ""
}

// Reached is how far a stream has come: where its last change was, or later when
// nothing has happened since that concerns it.
func Reached(st *changes.Stream, last changes.Position) changes.Position {
	if z := st.Zxid(); z > last.Zxid {
		return changes.Position{Zxid: z}
	}
	return last
}

// ReadAgain is the hint for those whose position is unknown.
const ReadAgain = "read the znodes again, and watch since the Zk-Zxid of that answer"

// SubscribeProblem explains why a stream cannot be opened or go on.
func (q *Request) SubscribeProblem(err error) error {
	if !errors.Is(err, changes.ErrTooOld) {
		return err
	}
	p := &Problem{
		Status: http.StatusGone, Title: "resume point too old", Detail: err.Error(), Hint: ReadAgain,
	}
	if param, _ := q.ResumePoint(); param != "" {
		p.Param, p.Detail = param, param+": "+p.Detail
	}
	return p
}
