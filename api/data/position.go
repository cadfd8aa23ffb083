package data

import (
	"fmt"
	"net/http"

	"github.com/zk-lite/zk-lite/api/rest"
	"github.com/zk-lite/zk-lite/server/changes"
	"github.com/zk-lite/zk-lite/znode"
)

// since is where the client wants to go on: ?since= or Last-Event-ID, which a
// browser sends when it connects again and is therefore the newer one; else now.
// This server is brought there first.
func since(q *rest.Request) (changes.Position, error) {
	param, text := q.ResumePoint()
	if param == "" {
		return changes.Position{Zxid: q.Zxid()}, nil
	}
	p, err := rest.ParsePosition(param, text)
	if err != nil {
		return p, err
	}
	now, err := q.WaitForZxid(p.Zxid)
	if err == nil && now < p.Zxid {
		err = &rest.Problem{
			Status: http.StatusGone, Title: "resume point never reached", Param: param,
			Detail: fmt.Sprintf("%s: this ensemble is at %[3]v and has never reached %[2]v; the position is of "+
				"another one, or its data are gone", param, p.Zxid, now),
			Hint: rest.ReadAgain,
		}
	}
	return p, err
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
	return 0, rest.BadRequest(param, "%q is none of data, children, exists, persistent, recursive", text)
}
