package membership

import (
	"maps"
	"net"
	"slices"

	"github.com/zk-lite/zk-lite/consensus/state"
)

// called is the host by which this server finds another one; empty: it is not known here.
func (e *Ensemble) called(id state.ServerID) string {
	at := e.cfg.Applied.Members()[id].Addr
	for _, s := range e.cfg.Servers {
		if s.ID == id && at == "" {
			at = s.Addr
		}
	}
	host, _, _ := net.SplitHostPort(at) // or empty
	return host
}

// AskName asks the others for a host by which they find this server, and that is good; empty: none has said one. all
// reports that all servers of the configuration have answered.
func (e *Ensemble) AskName(good func(host string) bool) (host string, all bool) {
	replies := e.askOthers(Request{Op: RequestWho})
	for _, id := range slices.Sorted(maps.Keys(replies)) {
		if name := replies[id].Called; good(name) {
			return name, true
		}
	}
	for _, s := range e.cfg.Servers {
		if _, ok := replies[s.ID]; !ok && s.ID != e.cfg.Self {
			return "", false
		}
	}
	return "", true
}
