package dns

import (
	"errors"
	"net/netip"
	"strings"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/zk-lite/zk-lite/server"
)

// query is a question and its reply.
type query struct {
	msg dnsmessage.Message // the reply
	q   dnsmessage.Question

	edns bool   // the question has an OPT record, and so has the reply
	size int    // of the longest reply, in bytes
	name string // of the question, below the domain, without a dot at its end; "" is the domain itself

	rcode dnsmessage.RCode // of 12 bits with edns
}

// What dnsmessage has no names for.
const (
	typeIXFR      = dnsmessage.Type(251)
	rcodeBadVers  = dnsmessage.RCode(16) // RFC 6891, 9
	versionOfEDNS = 0xff << 16           // in the TTL of an OPT record
)

// answer returns the reply to a question, nil if it deserves none.
func (s *Server) answer(question []byte, from netip.Addr, tcp bool) []byte {
	x := &query{size: plainUDP}
	if tcp {
		x.size = maxTCP
	}
	if !x.parse(question, tcp) {
		return nil
	}
	s.questions.Add(1)
	switch within := s.limits.allow(from, tcp, time.Now()); {
	case !within:
		s.limited.Add(1)
		if x.rcode = dnsmessage.RCodeRefused; !tcp {
			x.rcode, x.msg.Truncated = dnsmessage.RCodeSuccess, true
		}
	case x.rcode == dnsmessage.RCodeSuccess:
		s.turn.Lock()
		defer s.turn.Unlock()
		s.resolve(x)
	}
	return x.pack()
}

// parse reads a question. It reports false if there is no reply, and sets rcode if the reply is an error.
func (x *query) parse(question []byte, tcp bool) bool {
	var p dnsmessage.Parser
	h, err := p.Start(question)
	if err != nil || h.Response {
		return false // answers to answers could go back and forth
	}
	x.msg.Header = dnsmessage.Header{
		ID: h.ID, Response: true, OpCode: h.OpCode, RecursionDesired: h.RecursionDesired,
		CheckingDisabled: h.CheckingDisabled,
	}
	if h.OpCode != 0 {
		x.rcode = dnsmessage.RCodeNotImplemented
		return true
	}
	all, err := p.AllQuestions()
	if err != nil || len(all) != 1 {
		x.rcode = dnsmessage.RCodeFormatError
		return true
	}
	x.q, x.msg.Questions = all[0], all
	if !x.parseEDNS(&p, tcp) {
		x.rcode = dnsmessage.RCodeFormatError
	}
	return true
}

// parseEDNS reads the rest for an OPT record.
func (x *query) parseEDNS(p *dnsmessage.Parser, tcp bool) bool {
	if p.SkipAllAnswers() != nil || p.SkipAllAuthorities() != nil {
		return false
	}
	for {
		h, err := p.AdditionalHeader()
		if errors.Is(err, dnsmessage.ErrSectionDone) {
			return true
		}
		if err != nil || p.SkipAdditional() != nil {
			return false
		}
		if h.Type != dnsmessage.TypeOPT {
			continue
		}
		if x.edns { // RFC 6891, 6.1.1
			return false
		}
		if x.edns = true; !tcp {
			x.size = min(max(int(h.Class), plainUDP), maxUDP)
		}
		if h.TTL&versionOfEDNS != 0 {
			x.rcode = rcodeBadVers
		}
	}
}

// resolve finds the answers.
func (s *Server) resolve(x *query) {
	name := strings.TrimSuffix(x.q.Name.String(), ".")
	if n := len(name) - len(s.cfg.Domain); n < 0 || !strings.EqualFold(name[n:], s.cfg.Domain) ||
		n > 0 && name[n-1] != '.' {
		x.rcode = dnsmessage.RCodeRefused
		return
	}
	x.name = strings.TrimSuffix(name[:len(name)-len(s.cfg.Domain)], ".")
	switch {
	case x.q.Class != dnsmessage.ClassINET, x.q.Type == dnsmessage.TypeAXFR, x.q.Type == typeIXFR:
		x.rcode = dnsmessage.RCodeRefused
	case x.q.Type == dnsmessage.TypeALL: // RFC 8482
		x.rcode = dnsmessage.RCodeNotImplemented
	case !s.ready():
		x.rcode = dnsmessage.RCodeServerFailure
	default:
		x.msg.Authoritative = true
		s.lookUp(x)
	}
}

// ready reports whether what this server has may be shown. It may be old, but not from before its start.
func (s *Server) ready() bool {
	return s.srv.Status().Halt == nil && (s.srv.Serving() || s.srv.ReadOnly.Readable())
}

// lookUp answers a question about a name below the domain, or about the domain.
func (s *Server) lookUp(x *query) {
	var found bool
	var group group
	var serial uint32
	s.srv.View(func(v *server.View) {
		serial = uint32(v.Zxid())
		if x.name != "" {
			group, found = find(v.Tree(), x.name)
		}
	})
	switch {
	case found:
		s.records(x, &group)
	case x.name != "":
		x.rcode = dnsmessage.RCodeNameError
	case x.q.Type == dnsmessage.TypeSOA:
		x.msg.Answers = append(x.msg.Answers, s.authority(serial))
	}
	if len(x.msg.Answers) == 0 {
		x.msg.Authorities = append(x.msg.Authorities, s.authority(serial)) // says for how long that holds (RFC 2308)
	}
}

// authority is the SOA record of the domain.
func (s *Server) authority(serial uint32) dnsmessage.Resource {
	name := dnsmessage.MustNewName(s.cfg.Domain + ".")
	mbox, err := dnsmessage.NewName("hostmaster." + s.cfg.Domain + ".")
	if err != nil { // the domain is too long for it
		mbox = name
	}
	return dnsmessage.Resource{Header: s.header(name), Body: &dnsmessage.SOAResource{
		NS: name, MBox: mbox, Serial: serial, Refresh: 3600, Retry: 600, Expire: 86400, MinTTL: s.ttl(),
	}}
}

func (s *Server) header(name dnsmessage.Name) dnsmessage.ResourceHeader {
	return dnsmessage.ResourceHeader{Name: name, Class: dnsmessage.ClassINET, TTL: s.ttl()}
}

func (s *Server) ttl() uint32 { return uint32(s.cfg.TTL / time.Second) }

// pack encodes the reply. If it is too long, additional records are left out, and then answers, with the TC bit.
func (x *query) pack() []byte {
	x.msg.RCode = x.rcode & 0xf
	var opt []dnsmessage.Resource
	if x.edns {
		opt = make([]dnsmessage.Resource, 1)
		opt[0].Body = &dnsmessage.OPTResource{}
		if opt[0].Header.SetEDNS0(maxUDP, x.rcode, false) != nil {
			return nil // cannot be
		}
	}
	for x.msg.Additionals = append(x.msg.Additionals, opt...); ; x.msg.Additionals = opt {
		b, err := x.msg.Pack()
		if err != nil {
			return nil // cannot be: all names were checked
		}
		answers := len(x.msg.Answers)
		switch {
		case len(b) <= x.size || answers == 0:
			return b
		case len(x.msg.Additionals) == len(opt):
			x.msg.Answers, x.msg.Truncated = x.msg.Answers[:answers*x.size/len(b)], true
		}
	}
}
