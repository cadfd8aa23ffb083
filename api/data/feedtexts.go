package data

import (
	"sync/atomic"

	"github.com/zk-lite/zk-lite/api/rest"
	"github.com/zk-lite/zk-lite/server"
	"github.com/zk-lite/zk-lite/server/changes"
	"github.com/zk-lite/zk-lite/znode"
)

const (
	keptTexts = 8192 // transactions; a follower that is further behind the first one encodes for itself
	longText  = 1024 // bytes of a text that is kept, at most
)

// texts are the newest transactions as JSON, by their zxids: most followers of a feed get the same, and to encode one
// costs ten times as much as to send it. Only those of one change are kept, which are nearly all.
type texts [keptTexts]atomic.Pointer[keptText]

type keptText struct {
	textKey
	text rest.Text
}

// textKey is all that a text depends on. No two histories of a server have the same Author in memory.
type textKey struct {
	by            *changes.Author
	zxid          znode.Zxid
	timeMillis    int64
	path          string
	typ           znode.EventType
	stat          znode.Stat
	purged        bool
	before, admin bool
}

// text writes a transaction as JSON, or finds it as written for another follower.
func (v *values) text(of []changes.Change) rest.Text {
	may := false
	v.q.View(func(view *server.View) {
		_, code := view.Tree().Exists(of[0].Path, v.q.IDs)
		may = code != znode.ErrNoAuth
	})
	c := &of[0]
	key := textKey{c.By, c.At.Zxid, c.TimeMillis, c.Path, c.Type, c.Edit.Stat, c.Purged, v.before, v.admin}
	slot := &v.texts[uint64(key.zxid)%keptTexts]
	shared := may && len(of) == 1
	have := slot.Load()
	if shared && have != nil && have.textKey == key {
		return have.text
	}
	t, _ := v.next(of)
	text := rest.Encode(&t)
	if newer := have == nil || have.zxid < key.zxid; newer && shared && !t.Changes[0].Hidden && len(text) <= longText {
		slot.Store(&keptText{key, text})
	}
	return text
}
