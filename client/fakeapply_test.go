package client

import (
	"fmt"
	"sort"
	"strings"

	"github.com/zk-lite/zk-lite/internal/wire"
	"github.com/zk-lite/zk-lite/znode"
)

// apply serves one request of a fakeConn, with the server's mutex held.
func (c *fakeConn) apply(h wire.RequestHeader, body wire.Request) (wire.Response, znode.Error) {
	s := c.s
	switch req := body.(type) {
	case *wire.EmptyRequest:
		if h.Type == wire.OpCloseSession {
			s.closeSessionLocked(c.session)
		}
		return nil, znode.OK
	case *wire.AuthRequest:
		if s.credentials != nil && !s.credentials[string(req.Auth)] {
			return nil, znode.ErrAuthFailed
		}
		return nil, znode.OK
	case *wire.SyncRequest:
		return &wire.SyncResponse{Path: req.Path}, znode.OK
	case *wire.AddWatchRequest:
		if s.noAddWatch {
			return nil, znode.ErrUnimplemented
		}
		c.persist[req.Path] = req.Mode
		return &wire.ErrorResponse{}, znode.OK
	case *wire.RemoveWatchesRequest:
		if !c.data[req.Path] && !c.child[req.Path] {
			if _, ok := c.persist[req.Path]; !ok {
				return nil, znode.ErrNoWatcher
			}
		}
		if h.Type == wire.OpRemoveWatches {
			delete(c.data, req.Path)
			delete(c.child, req.Path)
			delete(c.persist, req.Path)
		}
		return nil, znode.OK
	case *wire.SetWatchesRequest:
		c.restore(req)
		return nil, znode.OK
	case *wire.SetWatches2Request:
		c.restore(&req.SetWatchesRequest)
		for _, p := range req.PersistentWatches {
			c.persist[p] = wire.AddWatchPersistent
		}
		for _, p := range req.PersistentRecursiveWatches {
			c.persist[p] = wire.AddWatchPersistentRecursive
		}
		return nil, znode.OK
	case *wire.MultiRequest:
		return c.multi(req)
	case *wire.BranchRequest: // without operations
		return &wire.BranchResponse{Then: true}, znode.OK
	}
	if h.Type.Write() {
		return c.change(body)
	}
	return c.look(body)
}

func (s *fakeServer) closeSessionLocked(id znode.SessionID) {
	s.zxid++
	s.closed = append(s.closed, id)
	if old := s.sessions[id]; old != nil {
		old.expired = true
	}
	for path, n := range s.nodes {
		if n.stat.EphemeralOwner == id {
			s.removeLocked(path)
		}
	}
}

// restore is DataTree.setWatches.
func (c *fakeConn) restore(req *wire.SetWatchesRequest) {
	for _, p := range req.DataWatches {
		switch n := c.s.nodes[p]; {
		case n == nil:
			c.eventLocked(znode.EventDeleted, p)
		case n.stat.Mzxid > req.RelativeZxid:
			c.eventLocked(znode.EventDataChanged, p)
		default:
			c.data[p] = true
		}
	}
	for _, p := range req.ExistWatches {
		if c.s.nodes[p] != nil {
			c.eventLocked(znode.EventCreated, p)
		} else {
			c.data[p] = true
		}
	}
	for _, p := range req.ChildWatches {
		switch n := c.s.nodes[p]; {
		case n == nil:
			c.eventLocked(znode.EventDeleted, p)
		case n.stat.Pzxid > req.RelativeZxid:
			c.eventLocked(znode.EventChildrenChanged, p)
		default:
			c.child[p] = true
		}
	}
}

func (c *fakeConn) change(body wire.Request) (wire.Response, znode.Error) {
	s := c.s
	s.zxid++
	switch req := body.(type) {
	case *wire.CreateRequest:
		parent := s.nodes[znode.Parent(req.Path)]
		if parent == nil {
			return nil, znode.ErrNoNode
		}
		path := req.Path
		if req.Mode.Sequential() {
			path = fmt.Sprintf("%s%010d", path, parent.creates)
		}
		if s.nodes[path] != nil {
			return nil, znode.ErrNodeExists
		}
		var owner znode.SessionID
		if req.Mode.Ephemeral() {
			owner = c.session
		}
		s.createLocked(path, req.Data, owner)
		return &wire.Create2Response{Path: path, Stat: s.nodes[path].stat}, znode.OK
	case *wire.DeleteRequest:
		n := s.nodes[req.Path]
		switch {
		case n == nil:
			return nil, znode.ErrNoNode
		case len(n.children) > 0:
			return nil, znode.ErrNotEmpty
		}
		s.removeLocked(req.Path)
		return nil, znode.OK
	case *wire.SetDataRequest:
		n := s.nodes[req.Path]
		switch {
		case n == nil:
			return nil, znode.ErrNoNode
		case req.Version != znode.AnyVersion && req.Version != n.stat.Version:
			return nil, znode.ErrBadVersion
		}
		s.setLocked(req.Path, req.Data)
		return &wire.SetDataResponse{Stat: n.stat}, znode.OK
	}
	return nil, znode.ErrUnimplemented
}

func (c *fakeConn) look(body wire.Request) (wire.Response, znode.Error) {
	switch req := body.(type) {
	case *wire.GetDataRequest:
		n := c.s.nodes[req.Path]
		if n == nil {
			return nil, znode.ErrNoNode
		}
		c.data[req.Path] = c.data[req.Path] || req.Watch
		return &wire.GetDataResponse{Data: n.data, Stat: n.stat}, znode.OK
	case *wire.ExistsRequest:
		c.data[req.Path] = c.data[req.Path] || req.Watch
		n := c.s.nodes[req.Path]
		if n == nil {
			return nil, znode.ErrNoNode
		}
		return &wire.ExistsResponse{Stat: n.stat}, znode.OK
	case *wire.GetChildrenRequest:
		n := c.s.nodes[req.Path]
		if n == nil {
			return nil, znode.ErrNoNode
		}
		c.child[req.Path] = c.child[req.Path] || req.Watch
		return &wire.GetChildren2Response{Children: sortedNames(n.children), Stat: n.stat}, znode.OK
	case *wire.GetEphemeralsRequest:
		var list []string
		for path, n := range c.s.nodes {
			if n.stat.EphemeralOwner == c.session && strings.HasPrefix(path, req.PrefixPath) {
				list = append(list, path)
			}
		}
		return &wire.GetEphemeralsResponse{Ephemerals: list}, znode.OK
	}
	return nil, znode.ErrUnimplemented
}

func sortedNames(m map[string]bool) []string {
	var list []string
	for name := range m {
		list = append(list, name)
	}
	sort.Strings(list)
	return list
}

// multi fails as a whole at a create that exists; it does not roll back
// anything, so tests put what fails first.
func (c *fakeConn) multi(req *wire.MultiRequest) (wire.Response, znode.Error) {
	resp := new(wire.MultiResponse)
	failed := false
	for i := range req.Ops {
		if failed {
			resp.Results = append(resp.Results, wire.MultiError(znode.ErrRuntimeInconsistency))
			continue
		}
		body, code := c.change(req.Ops[i].Request)
		if code != znode.OK {
			failed = true
			resp.Results = append(resp.Results, wire.MultiError(code))
			continue
		}
		if created, ok := body.(*wire.Create2Response); ok && c.s.oldMulti {
			resp.Results = append(resp.Results, wire.MultiResult{
				Type: wire.OpCreate, Response: &wire.CreateResponse{Path: created.Path},
			})
			continue
		}
		resp.Results = append(resp.Results, wire.MultiResult{
			Type: req.Ops[i].EffectiveType().ResultType(), Response: body,
		})
	}
	return resp, znode.OK
}
