package zk

import (
	"container/list"
	"net"
	"sync"
)

// partialFrames bounds the buffers of frames that have arrived in part, of all connections together.
// When there is no room for one more, the connection whose frame began first is closed: a frame that is
// sent without pause is complete long before that, and none that stops holds up others. A
// single frame may be larger than the bound, and what fits into a connection's own smallInput
// bytes does not count.
type partialFrames struct {
	limit int
	close func(net.Conn) // a connection that has to go

	mu    sync.Mutex // protects the fields below, and input's place, held and cut
	bytes int
	queue list.List // of *input, in the order in which their frames began
}

// hold counts an incomplete frame for which in has a buffer of n bytes.
func (p *partialFrames) hold(in *input, n int) {
	for _, c := range p.count(in, n) {
		p.close(c)
	}
}

// count returns the connections that have to go.
func (p *partialFrames) count(in *input, n int) (out []net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case in.cut:
		return nil // its next read will fail
	case in.place == nil:
		in.place = p.queue.PushBack(in)
	}
	p.bytes += n - in.held
	in.held = n
	for p.bytes > p.limit {
		oldest := p.queue.Front().Value.(*input)
		if oldest == in {
			break
		}
		p.removeLocked(oldest)
		oldest.cut = true
		out = append(out, oldest.conn)
	}
	return out
}

// release ends what hold has begun: the frame is complete, or the connection has ended.
func (p *partialFrames) release(in *input) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if in.place != nil {
		p.removeLocked(in)
	}
}

func (p *partialFrames) removeLocked(in *input) {
	p.queue.Remove(in.place)
	p.bytes -= in.held
	in.place, in.held = nil, 0
}
