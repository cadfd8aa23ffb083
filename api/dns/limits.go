package dns

import (
	"hash/maphash"
	"net/netip"
	"sync"
	"time"
)

// What bounds the work and the bytes for clients that no one knows.
const (
	// maxQuestion is a question with the longest name, and room for extensions.
	maxQuestion = 1232
	// plainUDP and maxUDP bound a reply over UDP: without EDNS (RFC 1035, 4.2.1), and what passes any network
	// unfragmented (dnsflagday.net/2020). A longer one is cut, with the TC bit, and the client asks over TCP.
	plainUDP, maxUDP = 512, 1232
	maxTCP           = 1<<16 - 1
	leastRecord      = 12 // bytes of a record: its header, with the name as a pointer

	// maxMembers and maxData bound what is read for an answer. Of a larger group a part is answered, at random.
	maxMembers = 256
	maxData    = 256 << 10
	// maxTXT bounds the text of a member; longer ones are left out.
	maxTXT = 1024

	// maxConns and maxPerAddress bound the TCP connections, and tcpPatience the time for a question and its reply.
	maxConns, maxPerAddress = 128, 32
	tcpPatience             = 10 * time.Second

	// perSecond is how many questions of a network are answered in full in a second, of each transport. Beyond it, a
	// reply over UDP is as short as the question, so that no one can be flooded by questions in his name: TC, and the
	// client asks over TCP. There it is REFUSED.
	perSecond = 2000
)

// limiter counts the questions of a second by network, in a table whose size is fixed: some networks share a count.
type limiter struct {
	seed maphash.Seed

	mu     sync.Mutex // protects the fields below
	second int64
	counts [8192]uint16
}

func newLimiter() limiter { return limiter{seed: maphash.MakeSeed()} }

// source is a network and a transport.
type source struct {
	network netip.Prefix
	tcp     bool
}

// allow counts a question, and reports whether its network is within the limit.
func (l *limiter) allow(from netip.Addr, tcp bool, now time.Time) bool {
	bits := 24
	if from.Is6() {
		bits = 56
	}
	network, _ := from.Prefix(bits) // of an invalid address: the zero Prefix
	slot := maphash.Comparable(l.seed, source{network, tcp}) % uint64(len(l.counts))
	l.mu.Lock()
	defer l.mu.Unlock()
	if now.Unix() != l.second {
		l.second, l.counts = now.Unix(), [8192]uint16{}
	}
	if l.counts[slot] >= perSecond {
		return false
	}
	l.counts[slot]++
	return true
}
