package network

import (
	"container/heap"
	"io"
	"sync"
	"time"
)

// delayLine keeps the packets of slow links until they are due.
type delayLine struct {
	out  io.Writer
	wake chan struct{} // has room for one, so that senders do not wait
	end  chan struct{}

	mu      sync.Mutex // protects the fields below
	packets packetHeap
	next    int
}

// delayedPacket is one packet under way. Those due at the same time leave in the order in which
// they arrived.
type delayedPacket struct {
	due   time.Time
	order int
	bytes []byte
}

func newDelayLine(out io.Writer) *delayLine {
	return &delayLine{out: out, wake: make(chan struct{}, 1), end: make(chan struct{})}
}

func (d *delayLine) close() { close(d.end) }

func (d *delayLine) add(packet []byte, due time.Time) {
	d.mu.Lock()
	if len(d.packets) < maxDelayed {
		heap.Push(&d.packets, delayedPacket{due: due, order: d.next, bytes: packet})
		d.next++
	}
	d.mu.Unlock()
	select {
	case d.wake <- struct{}{}:
	default:
	}
}

// run sends packets when they are due, until close.
func (d *delayLine) run() {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		packets, wait := d.due(time.Now())
		for _, p := range packets {
			send(d.out, p)
		}
		timer.Reset(wait)
		select {
		case <-d.end:
			return
		case <-d.wake:
		case <-timer.C:
		}
	}
}

// due takes out the packets that are due and returns how long to wait for the next.
func (d *delayLine) due(now time.Time) (packets [][]byte, wait time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for len(d.packets) > 0 && !d.packets[0].due.After(now) {
		packets = append(packets, heap.Pop(&d.packets).(delayedPacket).bytes)
	}
	if len(d.packets) == 0 {
		return packets, time.Hour
	}
	return packets, d.packets[0].due.Sub(now)
}

// packetHeap has the packet that is due first at its root.
type packetHeap []delayedPacket

func (h packetHeap) Len() int { return len(h) }

func (h packetHeap) Less(i, j int) bool {
	if h[i].due.Equal(h[j].due) {
		return h[i].order < h[j].order
	}
	return h[i].due.Before(h[j].due)
}

func (h packetHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *packetHeap) Push(x any)   { *h = append(*h, x.(delayedPacket)) }

func (h *packetHeap) Pop() any {
	all := *h
	last := all[len(all)-1]
	*h = all[:len(all)-1]
	return last
}
