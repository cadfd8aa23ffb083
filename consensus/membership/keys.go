package membership

import (
	"fmt"
	"time"

	"github.com/zk-lite/zk-lite/consensus/peerkeys"
	"github.com/zk-lite/zk-lite/consensus/state"
)

// TakeKeys takes the table that another server has sent, with its own key. A nil key is a connection without TLS,
// which proves nothing, and whose table is not needed.
func (e *Ensemble) TakeKeys(t *peerkeys.Table, from state.ServerID, key *peerkeys.Key) error {
	switch {
	case key == nil:
		return nil
	case t == nil:
		return fmt.Errorf("server %d has sent no table of keys", from)
	case t.Keys[from] != *key:
		return fmt.Errorf("server %d has sent a table in which its key is not the one that it shows", from)
	case t.Keys[e.cfg.Self] != e.cfg.Keys.Own():
		return fmt.Errorf("server %d takes another key for that of server %d: is there another server with this "+
			"number?", from, e.cfg.Self)
	}
	return e.cfg.Keys.Adopt(t)
}

// followKeys asks the others for their tables when a key is shown that this server does not know, and nobody leads it:
// members may have changed while it was away. Strangers cause it at most once in an election timeout.
func (e *Ensemble) followKeys() {
	for {
		select {
		case <-e.cfg.Context.Done():
			return
		case <-e.cfg.Keys.Met():
		}
		if e.cfg.Leadership.Now().Leader == state.NoServer {
			e.refreshKeys()
		}
		select {
		case <-e.cfg.Context.Done():
			return
		case <-time.After(e.cfg.ElectionTimeout):
		}
	}
}

// refreshKeys takes the newest table of those servers that this one knows.
func (e *Ensemble) refreshKeys() {
	for id := range e.cfg.Keys.Table().Keys {
		if id == e.cfg.Self {
			continue
		}
		reply, err := e.Ask(e.cfg.Context, id, Request{Op: RequestWho})
		if err == nil && reply.Keys != nil && reply.ShownKey != nil {
			if err := e.cfg.Keys.Adopt(reply.Keys); err != nil {
				e.cfg.Logger.Warn("the keys that another server knows are not taken", "server", id, "error", err)
			}
		}
	}
}
