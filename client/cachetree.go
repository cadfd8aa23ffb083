package client

import "github.com/zk-lite/zk-lite/znode"

// cacheTree holds the znodes of a Cache by path. The sets of children do not
// depend on whether the parent is there: in the middle of changes a child may be
// read before its parent.
type cacheTree struct {
	nodes    map[string]CacheNode
	children map[string]map[string]struct{} // names, by the parent's path
}

func newCacheTree() cacheTree {
	return cacheTree{map[string]CacheNode{}, map[string]map[string]struct{}{}}
}

// put adds or replaces a znode.
func (t *cacheTree) put(n CacheNode) {
	if _, ok := t.nodes[n.Path]; !ok && n.Path != "/" {
		parent := znode.Parent(n.Path)
		if t.children[parent] == nil {
			t.children[parent] = map[string]struct{}{}
		}
		t.children[parent][znode.Base(n.Path)] = struct{}{}
	}
	t.nodes[n.Path] = n
}

// drop removes a znode and all below it.
func (t *cacheTree) drop(path string) {
	for name := range t.children[path] {
		t.drop(znode.Join(path, name))
	}
	if _, ok := t.nodes[path]; !ok {
		return
	}
	delete(t.nodes, path)
	parent := znode.Parent(path)
	siblings := t.children[parent]
	delete(siblings, znode.Base(path))
	if len(siblings) == 0 {
		delete(t.children, parent)
	}
}
