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
// have it all the same. Where there are Some, Problem reads after a count: "3 with ...".
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
	return Check(s.machine.Tree(), s.machine.Sessions(), l)
}

// Check compares a state with a server's limits. It reads every znode.
func Check(tree *znode.Tree, sessions *session.Table, l *Limits) ([]Finding, error) {
	c := checker{limits: l, found: map[string]*Finding{}}
	if m := tree.Memory(); l.TreeBytes > 0 && m > l.TreeBytes {
		c.note("limits.treeBytes", "", "the tree takes %d bytes of memory, and the limit is %d: no client could "+
			"create a znode", m, l.TreeBytes).Refused = true
	}
	snap := tree.Snapshot()
	defer snap.Release()
	if err := snap.Walk(func(r *znode.Record) error {
		c.znode(r)
		return nil
	}); err != nil {
		return nil, err
	}
	sessions.Each(c.session)
	return c.findings(), nil
}

// checker collects findings by their problem.
type checker struct {
	limits *Limits
	found  map[string]*Finding
}

// note adds a znode or session to the finding with this problem; an empty one is all data.
func (c *checker) note(setting, of, problem string, args ...any) *Finding {
	problem = fmt.Sprintf(problem, args...)
	f := c.found[problem]
	if f == nil {
		f = &Finding{Setting: setting, Problem: problem}
		c.found[problem] = f
	}
	f.Count++
	if at, _ := slices.BinarySearch(f.Some, of); of != "" && at < MaxSome {
		f.Some = slices.Insert(f.Some, at, of)
		f.Some = f.Some[:min(len(f.Some), MaxSome)]
	}
	return f
}

func (c *checker) znode(r *znode.Record) {
	l := c.limits
	if len(r.Data)+len(r.Path) > l.MaxBuffer { // a request has some bytes more
		c.note("jute.maxbuffer", r.Path, "data longer than a request may be (%d bytes): they can be read, and not "+
			"written again", l.MaxBuffer)
	}
	if len(r.ACL) > znode.MaxACL {
		c.note("none", r.Path, "an ACL of more than %d entries: it counts, and may be set again unless it grows; no "+
			"client can set another one as long", znode.MaxACL)
	}
	const ttlMark = 0xff
	if uint64(r.Stat.EphemeralOwner)>>56 == ttlMark && !l.ExtendedTypes {
		c.note("extendedTypesEnabled", r.Path, "a TTL, after which they are deleted: clients cannot create others")
	}
	schemes := schemesOf(r.ACL)
	for scheme := range schemes {
		if setting := c.proves(scheme); setting != "" {
			c.note(setting, r.Path, "ACLs of the scheme %q: they are kept, and no client can prove such an identity "+
				"to this server", scheme)
		}
	}
	if schemes["digest"] && l.Digest && !l.SHA1 {
		c.note("DigestAuthenticationProvider.digestAlg", r.Path, "ACLs with digests: they match only if ZooKeeper "+
			"had the same algorithm; its default is SHA1")
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
		c.note("minSessionTimeout", x.ID.String(), "a session timeout below %v, which they get when their clients "+
			"reconnect", l.MinTimeout)
	case x.Timeout > l.MaxTimeout:
		c.note("maxSessionTimeout", x.ID.String(), "a session timeout above %v, which they get when their clients "+
			"reconnect", l.MaxTimeout)
	}
}

// findings returns what was found, first what is refused.
func (c *checker) findings() []Finding {
	all := []Finding{} // in JSON a list, also if it is empty
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
