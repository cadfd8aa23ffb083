package zk

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/internal/wire"
	"github.com/zk-lite/zk-lite/server"
	"github.com/zk-lite/zk-lite/znode"
)

// reconfig makes the command of a reconfig, or refuses it.
func (r *request) reconfig(q *wire.ReconfigRequest) {
	cfg := &r.c.listener.cfg
	if !cfg.Reconfig {
		r.refuse(znode.ErrReconfigDisabled)
		return
	}
	x, err := parseReconfig(q)
	if err != nil {
		r.c.listener.logRefusal("reconfig", "remote", r.c.remote, "session", r.c.session(), "reason", err.Error())
		r.refuse(znode.ErrBadArguments)
		return
	}
	x.MinVoters = cfg.MinVoters
	r.cmd = state.Command{Op: state.OpReconfig, Path: znode.ConfigPath, Reconfig: x}
}

// parseReconfig reads the lists of a reconfig, as PrepRequestProcessor does. Errors name what is wrong.
func parseReconfig(q *wire.ReconfigRequest) (*state.Reconfig, error) {
	x := &state.Reconfig{Version: znode.Zxid(q.CurConfigID), Complete: q.NewMembers != nil}
	if x.Complete {
		return x, parseMembers(x, *q.NewMembers)
	}
	for _, text := range listed(q.LeavingServers) {
		id, err := strconv.ParseInt(text, 10, 64)
		switch {
		case err != nil:
			return nil, fmt.Errorf("%.50q leaves, and is not the number of a server", text)
		case id >= 0 && id <= state.MaxServerID: // others are no members
			x.Leaving = append(x.Leaving, state.ServerID(id))
		}
	}
	for _, text := range listed(q.JoiningServers) {
		s, err := parseServer(text)
		switch {
		case err != nil:
			return nil, err
		case s.Client == "":
			return nil, fmt.Errorf("%.200q has no client port; want ;clientPort or ;clientHost:clientPort behind it",
				text)
		}
		x.Servers = append(x.Servers, s)
	}
	return x, nil
}

// parseMembers reads the lines of a complete configuration.
func parseMembers(x *state.Reconfig, text string) error {
	for line := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == ',' || r == '\n' || r == '\r' }) {
		line = strings.TrimSpace(line)
		switch {
		case line == "" || line[0] == '#' || line[0] == '!' || strings.HasPrefix(line, "version="):
			continue
		case strings.HasPrefix(line, "group") || strings.HasPrefix(line, "weight"):
			return fmt.Errorf("%.50q: each server that votes has one vote, and a majority of them decides, so there "+
				"are no groups and weights; a server that shall not count can be an observer", line)
		}
		s, err := parseServer(line)
		if err != nil {
			return err
		}
		x.Servers = append(x.Servers, s)
	}
	return nil
}

// parseServer reads server.N=...
func parseServer(text string) (s state.PlannedServer, err error) {
	name, value, _ := strings.Cut(text, "=")
	number, is := strings.CutPrefix(strings.TrimSpace(name), "server.")
	id, wrong := strconv.ParseUint(number, 10, 8)
	if !is || wrong != nil || id > state.MaxServerID {
		return s, fmt.Errorf("%.200q does not begin with server.N=, where N is a number from 0 to %d", text,
			state.MaxServerID)
	}
	if s, err = state.ParseServer(value); err != nil {
		return s, fmt.Errorf("server %d: %w", id, err)
	}
	s.ID = state.ServerID(id)
	return s, nil
}

// listed cuts a list at its commas.
func listed(text *string) (items []string) {
	if text == nil {
		return nil
	}
	for item := range strings.SplitSeq(*text, ",") {
		if item = strings.TrimSpace(item); item != "" {
			items = append(items, item)
		}
	}
	return items
}

// answerReconfig sends what /zookeeper/config is now.
func (r *request) answerReconfig(v *server.View, x *state.Result) {
	text, _, _ := v.Tree().Get(znode.ConfigPath, []znode.ID{znode.SuperIDs})
	body := wire.ReconfigResponse{Data: text, Stat: x.Stat}
	r.reply(x.Zxid, x.Code, body.Append)
}
