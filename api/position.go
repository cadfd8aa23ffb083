package api

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/zk-lite/zk-lite/server/changes"
	"github.com/zk-lite/zk-lite/znode"
)

// formatPosition writes a place in the order of changes: the zxid, and in the
// midst of a transaction .n behind it.
func formatPosition(p changes.Position) string {
	if p.Part == 0 {
		return p.Zxid.String()
	}
	return fmt.Sprintf("%s.%d", p.Zxid, p.Part)
}

func parsePosition(param, text string) (changes.Position, error) {
	digits, part, midst := strings.Cut(text, ".")
	var p changes.Position
	var err error
	if p.Zxid, err = parseZxid(param, digits); err != nil {
		return p, badRequest(param, "%q is not a position: the zxid, or the id of a stream's "+
			"event, such as 0x100000002 or 0x100000002.1", text)
	}
	if !midst {
		return p, nil
	}
	if p.Part, err = strconv.Atoi(part); err != nil || p.Part < 1 || p.Zxid == 0 {
		return p, badRequest(param, "%q: what is behind the point is a number from 1", text)
	}
	return p, nil
}

// since is where the client wants to go on: ?since= or Last-Event-ID, which a
// browser sends when it connects again and is therefore the newer one; else now.
// This server is brought there first.
func (q *request) since() (changes.Position, error) {
	param, text := q.resumePoint()
	if param == "" {
		return changes.Position{Zxid: q.zxid()}, nil
	}
	p, err := parsePosition(param, text)
	if err != nil {
		return p, err
	}
	now, err := q.catchUp(p.Zxid)
	if err == nil && now < p.Zxid {
		err = &problem{
			Status: http.StatusGone, Title: "resume point never reached", Param: param,
			Detail: fmt.Sprintf("%s: this ensemble has never been at %v, it is at %v; the position is of "+
				"another one, or its data are gone", param, p.Zxid, now),
			Hint: readAfresh,
		}
	}
	return p, err
}

// resumePoint is where the client wants to go on, and what it has said so with; none
// if it begins.
func (q *request) resumePoint() (param, text string) {
	if id := q.http.Header.Get("Last-Event-ID"); id != "" {
		return "Last-Event-ID", id
	}
	if q.query.has("since") {
		return "since", q.query.text("since")
	}
	return "", ""
}

// reached is how far a stream has come: where its last change was, or later when
// nothing has happened since that concerns it.
func reached(st *changes.Stream, last changes.Position) changes.Position {
	if z := st.Zxid(); z > last.Zxid {
		return changes.Position{Zxid: z}
	}
	return last
}

// change is a change as JSON.
type change struct {
	Type string `json:"type"`
	Path string `json:"path"`
	Zxid string `json:"zxid"`
}

func changeOf(c *changes.Change) change {
	return change{changeName(c.Type), c.Path, c.At.Zxid.String()}
}

func changeName(t znode.EventType) string {
	switch t {
	case znode.EventCreated:
		return "created"
	case znode.EventDeleted:
		return "deleted"
	case znode.EventDataChanged:
		return "changed"
	case znode.EventChildrenChanged:
		return "children"
	}
	panic("api: invariant broken: a change of type " + t.String())
}

// parseKind reads a kind of watch; data when it is empty.
func parseKind(param, text string) (changes.Kind, error) {
	switch text {
	case "", "data":
		return changes.KindData, nil
	case "exists":
		return changes.KindExists, nil
	case "children":
		return changes.KindChildren, nil
	case "persistent":
		return changes.KindPersistent, nil
	case "recursive":
		return changes.KindRecursive, nil
	}
	return 0, badRequest(param, "%q is none of data, children, exists, persistent, recursive", text)
}
