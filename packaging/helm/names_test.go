package helm

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

// names is the cluster's DNS. It answers from a copy of what is true that can be held back, as caches do. It has one
// goroutine, until close.
type names struct {
	conn net.PacketConn

	mu       sync.Mutex
	now, old map[string][]string // addresses by name, without the dot at the end
	until    time.Time           // old counts
}

func newNames(ip string) (*names, error) {
	conn, err := net.ListenPacket("udp4", ip+":53")
	if err != nil {
		return nil, err
	}
	d := &names{conn: conn, now: map[string][]string{}}
	go d.serve()
	return d, nil
}

func (d *names) close() { d.conn.Close() }

// set gives a name its addresses; none takes it away.
func (d *names) set(name string, addresses ...string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.now[name] = addresses; len(addresses) == 0 {
		delete(d.now, name)
	}
}

// hold has all answers be what they are now, for a while.
func (d *names) hold(long time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.until, d.old = time.Now().Add(long), maps.Clone(d.now)
}

func (d *names) addresses(name string) []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	if time.Now().Before(d.until) {
		return d.old[name]
	}
	return d.now[name]
}

// lookup is what clients in this process ask.
func (d *names) lookup(_ context.Context, name string) ([]string, error) {
	if found := d.addresses(name); len(found) > 0 {
		return found, nil
	}
	return nil, fmt.Errorf("no such host: %s", name)
}

func (d *names) serve() {
	buf := make([]byte, 512)
	for {
		n, from, err := d.conn.ReadFrom(buf)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		var m dnsmessage.Message
		if err != nil || m.Unpack(buf[:n]) != nil || len(m.Questions) != 1 {
			continue
		}
		q := m.Questions[0]
		found := d.addresses(strings.ToLower(strings.TrimSuffix(q.Name.String(), ".")))
		m.Header = dnsmessage.Header{ID: m.ID, Response: true, Authoritative: true, RecursionDesired: m.RecursionDesired}
		m.Additionals = nil
		if len(found) == 0 {
			m.RCode = dnsmessage.RCodeNameError
		}
		for _, a := range found {
			if q.Type == dnsmessage.TypeA {
				m.Answers = append(m.Answers, dnsmessage.Resource{
					Header: dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class, TTL: 5},
					Body:   &dnsmessage.AResource{A: netip.MustParseAddr(a).As4()},
				})
			}
		}
		if reply, err := m.Pack(); err == nil {
			_, _ = d.conn.WriteTo(reply, from)
		}
	}
}
