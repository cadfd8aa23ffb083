package sim

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// Limits of a run. They bound memory and the running time of a run that an
// algorithm would otherwise never end.
const (
	// MaxProcesses: the quadratic algorithms send some n*n messages at once,
	// which at this size is about two gigabytes of queue.
	MaxProcesses = 2048
	// DefaultMaxEvents ends a run after this many queue entries.
	DefaultMaxEvents = 20_000_000
	// MaxRecords is how many records a run keeps for charts. Observers see all.
	MaxRecords = 200_000
)

// Config describes a run.
type Config struct {
	// Seed of the network's randomness. Zero is a seed like any other.
	Seed uint64
	// Network; its zero Delay means one Unit for every message.
	Network Network
	// Faults to happen, in any order.
	Faults []Fault
	// MaxTime ends the run; zero means no limit in time.
	MaxTime time.Duration
	// MaxEvents ends the run; zero means DefaultMaxEvents.
	MaxEvents int
	// Keep asks for the records to be kept for Records.
	Keep bool
	// CheckPure runs every step twice and panics if the algorithm is not a
	// function of its arguments or changes its own past.
	CheckPure bool
}

// Member is a process and its first state.
type Member struct {
	ID   ID
	Node Node
}

type process struct {
	node   Node
	down   bool
	life   int
	timers map[string]uint64
	shown  map[string]string // variables as last recorded
}

type link struct{ from, to ID }

// Simulator runs members under a Config. It is not safe for concurrent use.
type Simulator struct {
	config    Config
	ring      []ID       // the peers clockwise, without the Service
	place     map[ID]int // where in ring
	processes map[ID]*process
	random    *rand.Rand
	observers []Observer

	queue     queue
	now       time.Duration
	seq       uint64
	events    int
	faults    int // faults and commands still to happen
	lastHeard map[link]time.Duration

	counts    map[string]int
	messages  int
	lost      int
	inFlight  int // messages that are not Background
	lastWork  time.Duration
	records   []Record
	truncated bool
}

// New builds a simulator whose members are in ring order, clockwise. A member
// with id Service is outside the ring. Start is given to all at time zero.
func New(config Config, members []Member) (*Simulator, error) {
	if config.Network.Delay == (Delay{}) {
		config.Network.Delay = Delay{Min: Unit, Max: Unit}
	}
	if config.MaxEvents == 0 {
		config.MaxEvents = DefaultMaxEvents
	}
	if err := config.Network.check(); err != nil {
		return nil, err
	}
	s := &Simulator{
		config:    config,
		place:     map[ID]int{},
		processes: map[ID]*process{},
		random:    rand.New(rand.NewPCG(config.Seed, 0x6c6162)),
		lastHeard: map[link]time.Duration{},
		counts:    map[string]int{},
	}
	for _, m := range members {
		if s.processes[m.ID] != nil {
			return nil, fmt.Errorf("process id %d is given twice", int(m.ID))
		}
		s.processes[m.ID] = &process{node: m.Node, timers: map[string]uint64{}}
		if m.ID != Service {
			s.place[m.ID] = len(s.ring)
			s.ring = append(s.ring, m.ID)
		}
	}
	if len(s.ring) < 1 || len(s.ring) > MaxProcesses {
		return nil, fmt.Errorf("%d processes: want 1 to %d", len(s.ring), MaxProcesses)
	}
	if err := s.checkNames(); err != nil {
		return nil, err
	}
	for _, f := range config.Faults {
		s.push(item{at: f.At, class: classFault, other: &other{fault: f}})
	}
	for _, m := range members {
		s.push(item{class: classCommand, to: m.ID, other: &other{event: Start{}}})
	}
	return s, nil
}

// checkNames reports ids in the Config that no member has.
func (s *Simulator) checkNames() error {
	known := func(what string, ids ...ID) error {
		for _, id := range ids {
			if s.processes[id] == nil {
				return fmt.Errorf("%s names process %v, which is not among the processes", what, id)
			}
		}
		return nil
	}
	for _, f := range s.config.Faults {
		if err := known("a crash or recovery", f.ID); err != nil {
			return err
		}
	}
	for _, l := range s.config.Network.Slow {
		if err := known("a slow link", l.From, l.To); err != nil {
			return err
		}
	}
	for _, p := range s.config.Network.Partitions {
		for _, g := range p.Groups {
			if err := known("a partition", g...); err != nil {
				return err
			}
		}
	}
	return nil
}

// Watch adds an observer. Call it before Run.
func (s *Simulator) Watch(o Observer) { s.observers = append(s.observers, o) }

// Command schedules a command event for a process. It is dropped if the process
// is down at that time.
func (s *Simulator) Command(at time.Duration, to ID, command Event) {
	s.push(item{at: max(at, s.now), class: classCommand, to: to, other: &other{event: command}})
}

func (s *Simulator) push(it item) {
	it.seq = s.seq
	s.seq++
	if it.class == classFault || it.class == classCommand {
		s.faults++
	}
	s.queue.push(it)
}

// Step processes the next event. It returns false when nothing is left or a limit is reached.
func (s *Simulator) Step() bool {
	for len(s.queue.items) > 0 {
		if s.events >= s.config.MaxEvents {
			return false
		}
		if s.config.MaxTime > 0 && s.queue.items[0].at > s.config.MaxTime {
			return false
		}
		it := s.queue.pop()
		if it.class == classTimer && s.stale(it) {
			continue // a cancelled timer takes no time
		}
		s.events++
		s.now = it.at
		s.happen(it)
		return true
	}
	return false
}

func (s *Simulator) stale(it item) bool {
	p := s.processes[it.to]
	return p.down || p.life != it.life || p.timers[it.timer] != it.set
}

func (s *Simulator) happen(it item) {
	switch it.class {
	case classFault:
		s.faults--
		s.fail(it.fault)
	case classMessage:
		s.deliver(it)
	case classCommand:
		s.faults--
		if s.processes[it.to].down {
			return
		}
		if _, first := it.event.(Start); !first {
			s.record(Record{Kind: Told, Process: it.to, Peer: None, Label: fmt.Sprint(it.event)})
		}
		s.step(it.to, it.event)
	case classTimer:
		delete(s.processes[it.to].timers, it.timer)
		s.record(Record{Kind: TimedOut, Process: it.to, Peer: None, Type: it.timer})
		s.step(it.to, Timeout{Name: it.timer})
	}
}

func (s *Simulator) fail(f Fault) {
	p := s.processes[f.ID]
	switch {
	case f.Recover && p.down:
		p.down = false
		s.record(Record{Kind: Recovered, Process: f.ID, Peer: None})
		s.step(f.ID, Recover{})
	case !f.Recover && !p.down:
		p.down = true
		p.life++
		clear(p.timers)
		s.record(Record{Kind: Crashed, Process: f.ID, Peer: None})
	}
}

func (s *Simulator) deliver(it item) {
	_, quiet := it.msg.(Background)
	if !quiet {
		s.inFlight--
	}
	if s.processes[it.to].down {
		s.lose(it, "receiver down", s.now)
		return
	}
	if s.separated(it.from, it.to) {
		s.lose(it, "partition", s.now)
		return
	}
	if !quiet {
		s.lastWork = s.now
	}
	s.record(Record{Kind: Delivered, Process: it.to, Peer: it.from, SentAt: it.sentAt,
		Message: it.number, Type: it.msg.Type(), Label: it.msg.String(), Quiet: quiet})
	s.step(it.to, Deliver{From: it.from, Via: it.via, Message: it.msg})
}

// lose records that a message will not arrive, which it would have done at due.
func (s *Simulator) lose(it item, why string, due time.Duration) {
	s.lost++
	_, quiet := it.msg.(Background)
	s.record(Record{Kind: Lost, Process: it.from, Peer: it.to, SentAt: it.sentAt, Due: due,
		Message: it.number, Type: it.msg.Type(), Label: it.msg.String() + ": " + why, Quiet: quiet})
}

func (s *Simulator) step(id ID, event Event) {
	p := s.processes[id]
	node, out := p.node.Step(s.now, event)
	if s.config.CheckPure {
		s.checkPure(id, p.node, event, node, out)
	}
	p.node = node
	for _, f := range out.Facts {
		s.record(Record{Kind: Noted, Process: id, Peer: None, Fact: f})
	}
	for _, t := range out.Timers {
		if t.Cancel {
			if _, armed := p.timers[t.Name]; armed && s.config.Keep {
				s.record(Record{Kind: Disarmed, Process: id, Peer: None, Type: t.Name})
			}
			delete(p.timers, t.Name)
			continue
		}
		if s.config.Keep {
			s.record(Record{Kind: Armed, Process: id, Peer: None, Type: t.Name, Due: s.now + t.After})
		}
		p.timers[t.Name] = s.seq
		s.push(item{at: s.now + t.After, class: classTimer, to: id,
			other: &other{life: p.life, timer: t.Name, set: s.seq}})
	}
	for _, send := range out.Sends {
		s.send(id, send)
	}
	if s.config.Keep {
		s.show(id, p)
	}
}

// Run steps until stop returns true, or nothing is left, or a limit is reached. It reports
// whether the queue ran empty, which means the run is complete.
func (s *Simulator) Run(stop func() bool) bool {
	for s.Step() {
		if stop != nil && stop() {
			return false
		}
	}
	return len(s.queue.items) == 0
}

func (s *Simulator) record(r Record) {
	r.At = s.now
	for _, o := range s.observers {
		o.Observe(r)
	}
	if !s.config.Keep {
		return
	}
	if len(s.records) >= MaxRecords {
		s.truncated = true
		return
	}
	s.records = append(s.records, r)
}
