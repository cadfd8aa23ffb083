package seed

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/zk-lite/zk-lite/session"
	"github.com/zk-lite/zk-lite/znode"
)

// Limits are settings of a server, as far as imported data can exceed them.
type Limits struct {
	TreeBytes     int64 // 0: no limit
	MaxBuffer     int   // bytes
	MinTimeout    time.Duration
	MaxTimeout    time.Duration
	ExtendedTypes bool
	SASL, X509    bool // clients can prove such identities
	Digest, SHA1  bool // also passwords; their hashes are as in ZooKeeper by default
}

// Finding is something in the data that a server with these limits refuses to clients, or treats differently. The data
// have it all the same.
type Finding struct {
	Setting string `json:"setting"`
	Problem string `json:"problem"`
	// Refused says that a server with the data would be of no use until the setting is changed.
	Refused bool     `json:"refused"`
	Count   int      `json:"count"`          // of znodes or sessions; 1 for what concerns all data
	Some    []string `json:"some,omitempty"` // paths or session ids, in order, at most MaxSome
}

// MaxSome is how many znodes or sessions a Finding names.
const MaxSome = 10

// Check compares the seed with a server's limits. It reads every znode.
func (s *Seed) Check(l *Limits) ([]Finding, error) {
	c := checker{limits: l, found: map[string]*Finding{}}
	tree := s.machine.Tree()
	if m := tree.Memory(); l.TreeBytes > 0 && m > l.TreeBytes {
		c.note(Finding{
			Setting: "limits.treeBytes", Refused: true,
			Problem: fmt.Sprintf("the tree takes %d bytes of memory, and the limit is %d: no client could create a znode", m,
				l.TreeBytes),
		}, "")
	}
	snap := tree.Snapshot()
	defer snap.Release()
	if err := snap.Walk(func(r *znode.Record) error {
		c.znode(r)
		return nil
	}); err != nil {
		return nil, err
	}
	s.machine.Sessions().Each(c.session)
	return c.findings(), nil
}

// checker collects findings by their problem.
type checker struct {
	limits *Limits
	found  map[string]*Finding
}

func (c *checker) note(f Finding, of string) {
	have := c.found[f.Problem]
	if have == nil {
		have = &f
		c.found[f.Problem] = have
	}
	have.Count++
	if of == "" {
		return
	}
	at, _ := slices.BinarySearch(have.Some, of)
	if at < MaxSome {
		have.Some = slices.Insert(have.Some, at, of)
		have.Some = have.Some[:min(len(have.Some), MaxSome)]
	}
}

func (c *checker) znode(r *znode.Record) {
	l := c.limits
	// A request has the path, too, and some numbers.
	if len(r.Data)+len(r.Path) > l.MaxBuffer {
		c.note(Finding{Setting: "jute.maxbuffer", Problem: fmt.Sprintf("data longer than a request may be (%d bytes): "+
			"they can be read, and not written again", l.MaxBuffer)}, r.Path)
	}
	if len(r.ACL) > znode.MaxACL {
		c.note(Finding{Setting: "none", Problem: fmt.Sprintf("an ACL of more than %d entries: it counts, and may be set "+
			"again unless it grows; no client can set another one as long", znode.MaxACL)}, r.Path)
	}
	const ttlMark = 0xff
	if uint64(r.Stat.EphemeralOwner)>>56 == ttlMark && !l.ExtendedTypes {
		c.note(Finding{Setting: "extendedTypesEnabled", Problem: "znodes with a TTL, which are deleted at their time: " +
			"clients cannot create others"}, r.Path)
	}
	schemes := schemesOf(r.ACL)
	for scheme := range schemes {
		if setting := c.proves(scheme); setting != "" {
			c.note(Finding{Setting: setting, Problem: fmt.Sprintf("ACLs with the scheme %q: they are kept, and no client "+
				"can prove such an identity to this server", scheme)}, r.Path)
		}
	}
	if schemes["digest"] && l.Digest && !l.SHA1 {
		c.note(Finding{Setting: "DigestAuthenticationProvider.digestAlg", Problem: "ACLs with digests: they match only if " +
			"ZooKeeper had the same algorithm; its default is SHA1"}, r.Path)
	}
}

func schemesOf(list []znode.ACL) map[string]bool {
	all := map[string]bool{}
	for i := range list {
		all[list[i].ID.Scheme] = true
	}
	return all
}

// proves returns the setting without which clients cannot prove identities of a scheme; empty if they can, or if no
// setting changes it.
func (c *checker) proves(scheme string) string {
	can, setting := true, ""
	switch scheme {
	case "digest":
		can, setting = c.limits.Digest, "DigestAuthenticationProvider.enabled"
	case "sasl":
		can, setting = c.limits.SASL, "java.security.auth.login.config"
	case "x509":
		can, setting = c.limits.X509, "ssl.clientAuth"
	}
	if can {
		return ""
	}
	return setting
}

func (c *checker) session(x *session.Session) {
	l := c.limits
	switch {
	case x.Timeout < l.MinTimeout:
		c.note(Finding{Setting: "minSessionTimeout", Problem: fmt.Sprintf("sessions with a shorter timeout than %v, which "+
			"they get when their clients reconnect", l.MinTimeout)}, x.ID.String())
	case x.Timeout > l.MaxTimeout:
		c.note(Finding{Setting: "maxSessionTimeout", Problem: fmt.Sprintf("sessions with a longer timeout than %v, which "+
			"they get when their clients reconnect", l.MaxTimeout)}, x.ID.String())
	}
}

// findings returns what was found, first what is refused.
func (c *checker) findings() []Finding {
	var all []Finding
	for _, problem := range slices.Sorted(maps.Keys(c.found)) {
		all = append(all, *c.found[problem])
	}
	slices.SortStableFunc(all, func(a, b Finding) int {
		switch {
		case a.Refused == b.Refused:
			return strings.Compare(a.Setting, b.Setting)
		case a.Refused:
			return -1
		}
		return 1
	})
	return all
}
