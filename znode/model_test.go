package znode

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"sort"
	"strings"
)

// model is a naive tree: a map from path to znode, the rules written down a
// second time without indexes, sharing or undo. A multi works on a copy.
type model struct {
	nodes map[string]mnode
	// events of the transaction, as "type path", and quota'd paths gone over.
	events   []string
	exceeded []string
}

// mnode is a znode of the model. It is a value; data is never written to.
type mnode struct {
	data  []byte
	acl   []ACL
	owner SessionID // or a marker
	stat  Stat      // without DataLength, NumChildren, Cversion, EphemeralOwner
	born  int32     // children ever created
}

func newModel() *model {
	m := &model{nodes: map[string]mnode{}}
	for _, p := range []string{RootPath, SystemPath, QuotaPath, ConfigPath} {
		m.nodes[p] = mnode{data: []byte{}, acl: OpenACL}
	}
	c := m.nodes[ConfigPath]
	c.acl = ReadACL
	m.nodes[ConfigPath] = c
	return m
}

func (m *model) clone() *model { return &model{nodes: maps.Clone(m.nodes)} }

func (m *model) children(path string) []string {
	var names []string
	for p := range m.nodes {
		if p != RootPath && Parent(p) == path {
			names = append(names, Base(p))
		}
	}
	sort.Strings(names)
	return names
}

func (m *model) allowed(path string, want Perms, ids []ID) bool {
	return slices.Contains(ids, super) || slices.ContainsFunc(m.nodes[path].acl, func(a ACL) bool {
		return a.Perms&want != 0 && (a.ID == Anyone || slices.Contains(ids, a.ID))
	})
}

// statOf is the Stat that a client would see.
func (m *model) statOf(path string) Stat {
	n := m.nodes[path]
	s := n.stat
	s.NumChildren = int32(len(m.children(path)))
	s.Cversion = Version(2*n.born - s.NumChildren)
	s.DataLength = int32(len(n.data))
	if n.owner > 0 { // the tests' sessions are positive, the markers negative
		s.EphemeralOwner = n.owner
	}
	return s
}

// quotaOf finds the nearest ancestor with limits, and its stats if there are any.
func (m *model) quotaOf(path string) (subject string, limits, stats map[string]int64) {
	if strings.HasPrefix(path, "/zookeeper/") {
		return "", nil, nil
	}
	for p := path; p != "/"; p = Parent(p) {
		if n, ok := m.nodes["/zookeeper/quota"+p+"/zookeeper_limits"]; ok {
			if s, ok := m.nodes["/zookeeper/quota"+p+"/zookeeper_stats"]; ok {
				stats = mquota(s.data)
			}
			return p, mquota(n.data), stats
		}
	}
	return "", nil, nil
}

// mquota reads the four numbers the tests use; a missing one is -1.
func mquota(b []byte) map[string]int64 {
	q := map[string]int64{"count": -1, "bytes": -1, "countHardLimit": -1, "byteHardLimit": -1}
	for key := range q {
		for _, f := range strings.FieldsFunc(string(b), func(r rune) bool { return r == ',' || r == ';' }) {
			var v int64
			if n, _ := fmt.Sscanf(f, key+"=%d", &v); n == 1 {
				q[key] = v
			}
		}
	}
	return q
}

// overQuota applies both limits of the nearest quota.
func (m *model) overQuota(x *Txn, path string, bytes, count int64) bool {
	subject, limits, stats := m.quotaOf(path)
	if stats == nil {
		return false
	}
	refuse, report := false, false
	check := func(diff int64, used, soft, hard int64) {
		switch {
		case diff == 0:
		case hard > -1 && used+diff > hard:
			refuse, report = true, true
		case hard == -1 && soft > -1 && used+diff > soft:
			report = true
		}
	}
	check(count, stats["count"], limits["count"], limits["countHardLimit"])
	check(bytes, stats["bytes"], limits["bytes"], limits["byteHardLimit"])
	if report {
		m.exceeded = append(m.exceeded, subject)
	}
	return refuse && x.EnforceQuota
}

func (m *model) charge(path string, bytes, count int64) {
	if subject, _, stats := m.quotaOf(path); stats != nil {
		m.putStats(subject, stats["count"]+count, stats["bytes"]+bytes)
	}
}

func (m *model) putStats(subject string, count, bytes int64) {
	p := "/zookeeper/quota" + subject + "/zookeeper_stats"
	n := m.nodes[p]
	n.data = fmt.Appendf(nil, "count=%d,bytes=%d", count, bytes)
	m.nodes[p] = n
}

func (m *model) create(x *Txn, r *CreateRequest) (string, Error) {
	parent := Parent(r.Path)
	pn, ok := m.nodes[parent]
	switch {
	case !ok:
		return "", ErrNoNode
	case !m.allowed(parent, PermCreate, x.Identities):
		return "", ErrNoAuth
	}
	path := r.Path
	if r.Mode.Sequential() {
		path = fmt.Sprintf("%s%010d", path, pn.born)
	}
	if _, ok := m.nodes[path]; ok {
		return "", ErrNodeExists
	}
	if pn.owner > 0 {
		return "", ErrNoChildrenForEphemeral
	}
	if m.overQuota(x, path, int64(len(r.Data)), 1) {
		return "", ErrQuotaExceeded
	}
	n := mnode{data: r.Data, acl: r.ACL, owner: r.owner(x.Session)}
	n.stat.Czxid, n.stat.Mzxid, n.stat.Pzxid = x.Zxid, x.Zxid, x.Zxid
	n.stat.Ctime, n.stat.Mtime = x.TimeMillis, x.TimeMillis
	m.nodes[path] = n
	pn.born++
	pn.stat.Pzxid = x.Zxid
	m.nodes[parent] = pn
	m.events = append(m.events, "NodeCreated "+path)
	if subject := strings.TrimPrefix(Parent(path), "/zookeeper/quota"); Base(path) == "zookeeper_stats" &&
		subject != Parent(path) && subject != "" {
		var count, bytes int64
		for p, n := range m.nodes {
			if p == subject || strings.HasPrefix(p, subject+"/") {
				count, bytes = count+1, bytes+int64(len(n.data))
			}
		}
		m.putStats(subject, count, bytes)
	} else {
		m.charge(path, int64(len(r.Data)), 1)
	}
	return path, OK
}

func (m *model) delete(x *Txn, path string, version Version) Error {
	if isSystem(path) {
		return ErrBadArguments
	}
	n, ok := m.nodes[path]
	switch _, parent := m.nodes[Parent(path)]; {
	case !parent:
		return ErrNoNode
	case !m.allowed(Parent(path), PermDelete, x.Identities):
		return ErrNoAuth
	case !ok:
		return ErrNoNode
	case version != -1 && version != n.stat.Version:
		return ErrBadVersion
	case len(m.children(path)) > 0:
		return ErrNotEmpty
	}
	m.drop(x, path)
	return OK
}

func (m *model) drop(x *Txn, path string) {
	size := len(m.nodes[path].data)
	delete(m.nodes, path)
	p := m.nodes[Parent(path)]
	p.stat.Pzxid = x.Zxid
	m.nodes[Parent(path)] = p
	m.events = append(m.events, "NodeDeleted "+path)
	m.charge(path, -int64(size), -1)
}

func (m *model) set(x *Txn, path string, data []byte, version Version) Error {
	n, ok := m.nodes[path]
	diff := int64(len(data) - len(n.data))
	switch {
	case !ok:
		return ErrNoNode
	case !m.allowed(path, PermWrite, x.Identities):
		return ErrNoAuth
	case m.overQuota(x, path, diff, 0):
		return ErrQuotaExceeded
	case version != -1 && version != n.stat.Version:
		return ErrBadVersion
	}
	n.data = bytes.Clone(data)
	n.stat.Version++
	n.stat.Mzxid, n.stat.Mtime = x.Zxid, x.TimeMillis
	m.nodes[path] = n
	m.events = append(m.events, "NodeDataChanged "+path)
	m.charge(path, diff, 0)
	return OK
}

func (m *model) setACL(x *Txn, path string, acl []ACL, version Version) Error {
	n, ok := m.nodes[path]
	switch {
	case !ok:
		return ErrNoNode
	case !m.allowed(path, PermAdmin, x.Identities):
		return ErrNoAuth
	case version != -1 && version != n.stat.Aversion:
		return ErrBadVersion
	}
	n.acl = acl
	n.stat.Aversion++
	m.nodes[path] = n
	return OK
}

func (m *model) check(x *Txn, path string, version Version) Error {
	n, ok := m.nodes[path]
	switch {
	case !ok:
		return ErrNoNode
	case !m.allowed(path, PermRead, x.Identities):
		return ErrNoAuth
	case version != -1 && version != n.stat.Version:
		return ErrBadVersion
	}
	return OK
}

func (m *model) reap(x *Txn, path string) Error {
	n, ok := m.nodes[path]
	switch {
	case !ok || isSystem(path):
		return ErrNoNode
	case n.owner >= 0:
		return ErrBadVersion
	case len(m.children(path)) > 0:
		return ErrNotEmpty
	case n.owner != containerOwner && x.TimeMillis-n.stat.Mtime <= int64(n.owner)&ttlMaxMillis:
		return ErrBadVersion
	}
	m.drop(x, path)
	return OK
}

func (m *model) closeSession(x *Txn, s SessionID) {
	for _, p := range m.ephemerals(s) {
		m.drop(x, p)
	}
}

func (m *model) ephemerals(s SessionID) []string {
	var paths []string
	for p, n := range m.nodes {
		if n.owner == s {
			paths = append(paths, p)
		}
	}
	sort.Strings(paths)
	return paths
}
