package membership

import (
	"context"
	"fmt"

	"github.com/zk-lite/zk-lite/consensus/peerkeys"
	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/consensus/transport/mux"
)

// Answer is what a server says to a program that has the files of another one, and is none itself.
type Answer struct {
	Member bool // it runs as a member of an ensemble
	Led    bool // it has a leader, and so the ensemble a majority
}

// Ask asks a server how it is, with the key of server self. A server that refuses the key is a member that says no
// more. An error says why there is no answer.
func Ask(ctx context.Context, m *mux.Mux, keys *peerkeys.Keys, self, to state.ServerID) (Answer, error) {
	c := control{self, m, keys}
	reply, err := c.ask(ctx, to, controlRequest{Op: controlWho})
	if isRefusal(&reply, err) {
		return Answer{Member: true}, nil
	}
	if err != nil {
		return Answer{}, fmt.Errorf("asking server %d: %w", to, err)
	}
	return Answer{Member: reply.Ensemble != "", Led: reply.Led}, nil
}
