package dns

import (
	"math/rand/v2"
	"net/netip"
	"strings"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/zk-lite/zk-lite/internal/memberdata"
	"github.com/zk-lite/zk-lite/znode"
)

// group is a group, or a member alone.
type group struct {
	members []member
	service bool // the question is about a service of it, which has SRV records only
}

// member is a znode with its data.
type member struct {
	path string
	data []byte
}

// ephemeral is znode.About's kind of members.
const ephemeral = "ephemeral"

// find reads what a name below the domain stands for; ok is false if that is nothing that world:anyone may read. DNS
// knows no case, and resolvers may change it: the znodes are those of the name as it is, or else in lower case.
func find(tree *znode.Tree, name string) (g group, ok bool) {
	labels := strings.Split(name, ".")
	labels, g.service = withoutService(labels)
	path, ok := pathOf(tree, labels)
	if !ok {
		path, ok = pathOf(tree, strings.Split(strings.ToLower(strings.Join(labels, ".")), "."))
	}
	if !ok {
		return g, false
	}
	about, stat, _ := tree.About(path, nil, 0)
	if about.Kind == ephemeral {
		g.add(tree, path)
		return g, true
	}
	// Where the list of a large group begins is chosen by chance; it goes on at its start.
	n := int(stat.NumChildren)
	if n == 0 {
		return g, true
	}
	from := rand.IntN(n)
	bytes, count := 0, 0
	visit := func(name string) {
		if bytes < maxData {
			bytes += g.add(tree, znode.Join(path, name))
		}
	}
	for _, part := range [2][2]int{{from, n}, {0, from}} {
		to := min(part[1], part[0]+maxMembers-count)
		count += to - part[0]
		_, _ = tree.VisitChildren(path, part[0], to, nil, visit) // it may be read: see above
	}
	rand.Shuffle(len(g.members), func(i, j int) { g.members[i], g.members[j] = g.members[j], g.members[i] })
	return g, true
}

// withoutService takes what RFC 2782 puts in front of a name away: _http._tcp.web.app asks for web.app. Resolvers that
// ask for one label after the other ask for _tcp.web.app, too.
func withoutService(labels []string) (rest []string, service bool) {
	for i := range min(2, len(labels)-1) {
		proto := strings.ToLower(labels[i])
		if labels[0][0] == '_' && (proto == "_tcp" || proto == "_udp") {
			return labels[i+1:], true
		}
	}
	return labels, false
}

// add adds a znode if it is a member that may be read, and returns the bytes of its data.
func (g *group) add(tree *znode.Tree, path string) int {
	data, _, code := tree.Get(path, nil)
	if code != znode.OK || len(data) > memberdata.MaxBytes {
		return 0
	}
	if about, _, _ := tree.About(path, nil, 0); about.Kind != ephemeral {
		return 0
	}
	g.members = append(g.members, member{path, data})
	return len(data)
}

// pathOf finds the znode of a name. The last name of a path may have dots, as that of a member that is called by its
// host's name: what is left of the path's parent is tried as one name, after as many names as there are labels.
func pathOf(tree *znode.Tree, labels []string) (path string, ok bool) {
	for first := 1; first <= len(labels); first++ {
		var b strings.Builder
		for i := len(labels) - 1; i >= first; i-- {
			b.WriteString("/" + labels[i])
		}
		b.WriteString("/" + strings.Join(labels[:first], "."))
		if path = b.String(); strings.Count(path, "/") == len(labels)-first+1 && tree.Visible(path, nil) {
			return path, true
		}
	}
	return "", false
}

// nameOf is the inverse of pathOf; ok is false if the path has no name in DNS.
func (s *Server) nameOf(path string) (name dnsmessage.Name, ok bool) {
	parts := strings.Split(path[1:], "/")
	var b strings.Builder
	for i := len(parts) - 1; i >= 0; i-- {
		if i < len(parts)-1 && strings.Contains(parts[i], ".") {
			return name, false
		}
		b.WriteString(parts[i] + ".")
	}
	b.WriteString(s.cfg.Domain)
	if !memberdata.ValidHost(b.String()) {
		return name, false
	}
	name, err := dnsmessage.NewName(b.String() + ".")
	return name, err == nil
}

// records adds the records of the healthy members to the reply.
func (s *Server) records(x *query, g *group) {
	add := func(to *[]dnsmessage.Resource, name dnsmessage.Name, body dnsmessage.ResourceBody) {
		*to = append(*to, dnsmessage.Resource{Header: s.header(name), Body: body})
	}
	if g.service && x.q.Type != dnsmessage.TypeSRV {
		return
	}
	seen := map[netip.Addr]bool{}
	for _, m := range g.members {
		if len(x.msg.Answers)*leastRecord > x.size {
			return // there are more than the reply has room for
		}
		i := memberdata.Parse(m.data)
		if i.Unhealthy != "" {
			continue
		}
		switch x.q.Type {
		case dnsmessage.TypeA, dnsmessage.TypeAAAA:
			if i.Addr.IsValid() && i.Addr.Is4() == (x.q.Type == dnsmessage.TypeA) && !seen[i.Addr] {
				seen[i.Addr] = true // a set of records has each once
				add(&x.msg.Answers, x.q.Name, address(i.Addr))
			}
		case dnsmessage.TypeSRV:
			target, ok := s.nameOf(m.path)
			if i.Host != "" {
				target, ok = dnsmessage.MustNewName(i.Host+"."), true // Parse has checked it
			}
			if !ok || i.Port == 0 || i.Host == "" && !i.Addr.IsValid() {
				continue
			}
			add(&x.msg.Answers, x.q.Name, &dnsmessage.SRVResource{Weight: 1, Port: i.Port, Target: target})
			if i.Addr.IsValid() {
				add(&x.msg.Additionals, target, address(i.Addr))
			}
		case dnsmessage.TypeTXT:
			if text := znode.Base(m.path) + "=" + string(m.data); len(text) <= maxTXT { // RFC 1464
				add(&x.msg.Answers, x.q.Name, &dnsmessage.TXTResource{TXT: chunks(text)})
			}
		}
	}
}

func address(addr netip.Addr) dnsmessage.ResourceBody {
	if addr.Is4() {
		return &dnsmessage.AResource{A: addr.As4()}
	}
	return &dnsmessage.AAAAResource{AAAA: addr.As16()}
}

// chunks divides a text into the strings of a TXT record.
func chunks(text string) (all []string) {
	for len(text) > 255 {
		all, text = append(all, text[:255]), text[255:]
	}
	return append(all, text)
}
