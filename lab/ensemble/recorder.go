package ensemble

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/zk-lite/zk-lite/internal/wire"
	"github.com/zk-lite/zk-lite/lab/sim"
)

// maxExchanges bounds the exchanges of a recorder. An experiment has some dozens.
const maxExchanges = 10_000

// recorder records the messages between candidates and servers, as the candidates see them:
// when a request left and when its reply arrived. A millisecond is a unit of the lab.
type recorder struct {
	began time.Time

	mu        sync.Mutex // protects the fields below
	exchanges []exchange
	open      map[call]int // places of those without a reply
	moments   []sim.Record // the faults of candidates and their consequences
}

// call names a request until its reply is here.
type call struct {
	conn *tapped
	xid  wire.Xid
}

// exchange is a request with its reply, or an event, which has no request.
type exchange struct {
	candidate  sim.ID
	what       string
	asked, got time.Duration // asked is -1 for an event, got for a reply that never arrived
	lost       bool          // the request did not leave: the candidate is cut off
}

func newRecorder() *recorder { return &recorder{began: time.Now(), open: map[call]int{}} }

func (r *recorder) now() time.Duration { return time.Since(r.began) }

func (r *recorder) asked(c *tapped, xid wire.Xid, op wire.OpCode, lost bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.exchanges) == maxExchanges {
		return
	}
	if !lost {
		r.open[call{c, xid}] = len(r.exchanges)
	}
	r.exchanges = append(r.exchanges, exchange{c.tap.id, op.String(), r.now(), -1, lost})
}

func (r *recorder) answered(c *tapped, xid wire.Xid) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if at, ok := r.open[call{c, xid}]; ok {
		r.exchanges[at].got = r.now()
		delete(r.open, call{c, xid})
	}
}

func (r *recorder) event(c *tapped) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.exchanges) < maxExchanges {
		r.exchanges = append(r.exchanges, exchange{c.tap.id, "event", -1, r.now(), false})
	}
}

// moment records what a candidate does apart from messages, with the fact that it establishes.
func (r *recorder) moment(kind sim.Kind, id sim.ID, label string, fact *sim.Fact) {
	r.mu.Lock()
	defer r.mu.Unlock()
	at := r.now()
	r.moments = append(r.moments, sim.Record{At: at, Kind: kind, Process: id, Label: label})
	if fact != nil {
		r.moments = append(r.moments, sim.Record{At: at, Kind: sim.Noted, Process: id, Fact: *fact})
	}
}

// records are those of a run on the simulator that had the same messages. The time of a request
// at the server is unknown: it is drawn half-way between request and reply, and an event leaves
// as long before its arrival as the quickest reply of that candidate took.
func (r *recorder) records() []sim.Record {
	r.mu.Lock()
	defer r.mu.Unlock()
	quickest := map[sim.ID]time.Duration{}
	for _, e := range r.exchanges {
		if e.asked < 0 || e.got < 0 {
			continue
		}
		half, known := quickest[e.candidate]
		if mine := (e.got - e.asked) / 2; !known || mine < half {
			quickest[e.candidate] = mine
		}
	}
	groups := [][]sim.Record{}
	for i := 0; i < len(r.moments); i++ { // a moment and its fact stay together
		group := r.moments[i : i+1]
		if i+1 < len(r.moments) && r.moments[i+1].Kind == sim.Noted {
			i++
			group = r.moments[i-1 : i+1]
		}
		groups = append(groups, group)
	}
	for i, e := range r.exchanges {
		groups = append(groups, e.groups(2*i+1, quickest[e.candidate])...)
	}
	slices.SortStableFunc(groups, func(a, b []sim.Record) int { return cmp.Compare(a[0].At, b[0].At) })
	return slices.Concat(groups...)
}

// groups are the records of an exchange, those of one moment together. number is that of its
// first message.
func (e exchange) groups(number int, half time.Duration) [][]sim.Record {
	at := func(kind sim.Kind, when time.Duration, from, to sim.ID, number int, what string) sim.Record {
		return sim.Record{At: when, Kind: kind, Process: from, Peer: to, Message: number, Type: what, Label: what}
	}
	told := func(when time.Duration, id sim.ID, what string) sim.Record {
		return sim.Record{At: when, Kind: sim.Told, Process: id, Label: what}
	}
	const s = sim.Service
	if e.asked < 0 {
		left := max(0, e.got-half)
		return [][]sim.Record{
			{told(left, s, "tells of a znode that is gone"),
				at(sim.Sent, left, s, e.candidate, number, e.what)},
			{at(sim.Delivered, e.got, e.candidate, s, number, e.what)}}
	}
	ask := []sim.Record{told(e.asked, e.candidate, "asks: "+e.what),
		at(sim.Sent, e.asked, e.candidate, s, number, e.what)}
	if e.lost || e.got < 0 {
		why := map[bool]string{true: "cut off", false: "no reply"}[e.lost]
		lost := at(sim.Lost, e.asked, e.candidate, s, number, e.what)
		lost.SentAt, lost.Due, lost.Label = e.asked, e.asked+half+sim.Unit, e.what+": "+why
		return [][]sim.Record{append(ask, lost)}
	}
	there, reply := (e.asked+e.got)/2, e.what+"-reply"
	return [][]sim.Record{ask,
		{at(sim.Delivered, there, s, e.candidate, number, e.what),
			at(sim.Sent, there, s, e.candidate, number+1, reply)},
		{at(sim.Delivered, e.got, e.candidate, s, number+1, reply)}}
}
