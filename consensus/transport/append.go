package transport

import (
	"context"
	"errors"
	"log/slog"
	"net"

	"github.com/hashicorp/raft"

	"github.com/zk-lite/zk-lite/consensus/transport/appendrpc"
	"github.com/zk-lite/zk-lite/consensus/transport/mux"
)

// dialAppend makes a connection for AppendEntries.
func (t *Transport) dialAppend(target raft.ServerAddress) (net.Conn, error) {
	c, err := t.mux.DialMember(mux.KindAppend, string(target), t.timeout)
	if err != nil {
		return nil, err
	}
	return c, nil
}

// acceptAppends serves each append connection of a leader's on a goroutine of its own.
func (t *Transport) acceptAppends() {
	for {
		c, err := t.mux.Accept(mux.KindAppend)
		if err != nil {
			return
		}
		if !t.group.run(func() { t.serveAppends(c) }) {
			_ = c.Close()
			return
		}
	}
}

func (t *Transport) serveAppends(c *mux.Conn) {
	defer func() { _ = c.Close() }()
	err := appendrpc.Serve(c, t.receive, t.done)
	select {
	case <-t.done:
		return
	default:
	}
	level := slog.LevelDebug
	if errors.Is(err, appendrpc.ErrMalformed) {
		level = slog.LevelWarn
	}
	t.logger.Log(context.Background(), level, "append connection ended", "server", c.ServerID(), "error", err)
}
