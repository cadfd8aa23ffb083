package sim

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Delay is the range from which a message's transmission time is drawn, uniformly. Max is the
// bound that algorithms with timeouts know.
type Delay struct{ Min, Max time.Duration }

// ParseDelay reads "D" (every message takes D) or "MIN-MAX".
func ParseDelay(text string) (Delay, error) {
	low, high, ranged := strings.Cut(text, "-")
	least, err := ParseTime(low)
	if err != nil {
		return Delay{}, fmt.Errorf("delay %q: want D or MIN-MAX in units: %w", text, err)
	}
	most := least
	if ranged {
		if most, err = ParseTime(high); err != nil {
			return Delay{}, fmt.Errorf("delay %q: want D or MIN-MAX in units: %w", text, err)
		}
	}
	d := Delay{Min: least, Max: most}
	if err := d.check(); err != nil {
		return Delay{}, err
	}
	return d, nil
}

func (d Delay) check() error {
	if d.Min < grain || d.Max < d.Min {
		return fmt.Errorf("delay %s-%s: want 0.001 <= MIN <= MAX",
			FormatTime(d.Min), FormatTime(d.Max))
	}
	return nil
}

// Nth picks the K-th message of a type sent in a run, counting from 1. It
// scripts one loss or one duplication exactly.
type Nth struct {
	Type string
	K    int
}

// ParseNth reads TYPE@K.
func ParseNth(text string) (Nth, error) {
	name, number, ok := strings.Cut(text, "@")
	k, err := strconv.Atoi(number)
	if !ok || name == "" || err != nil || k < 1 {
		return Nth{}, fmt.Errorf("%q: want TYPE@K, the K-th message of that type, such as token@3", text)
	}
	return Nth{Type: name, K: k}, nil
}

// Late sets the delay of the K-th message of a type sent in a run.
type Late struct {
	Nth
	Delay time.Duration
}

// ParseLate reads TYPE@K=DELAY.
func ParseLate(text string) (Late, error) {
	message, delay, ok := strings.Cut(text, "=")
	nth, errNth := ParseNth(message)
	d, errDelay := ParseTime(delay)
	if !ok || errNth != nil || errDelay != nil || d < grain {
		return Late{}, fmt.Errorf("%q: want TYPE@K=DELAY, such as answer@2=9", text)
	}
	return Late{nth, d}, nil
}

// Partition splits the processes from From until Until: a message between
// processes of different groups, sent or due in that time, is lost. A process
// in no group is cut off from all. The Service is reached by the first group.
type Partition struct {
	From, Until time.Duration
	Groups      [][]ID
}

// ParsePartition reads GROUP|GROUP@FROM-UNTIL, such as 1,2|3,4,5@0-40.
func ParsePartition(text string) (Partition, error) {
	const form = "want IDS|IDS@FROM-UNTIL, such as 1,2|3,4,5@0-40"
	groups, span, ok := strings.Cut(text, "@")
	from, until, ranged := strings.Cut(span, "-")
	if !ok || !ranged {
		return Partition{}, fmt.Errorf("partition %q: %s", text, form)
	}
	var p Partition
	var err error
	if p.From, err = ParseTime(from); err != nil {
		return Partition{}, fmt.Errorf("partition %q: %s: %w", text, form, err)
	}
	if p.Until, err = ParseTime(until); err != nil || p.Until <= p.From {
		return Partition{}, fmt.Errorf("partition %q: %s, UNTIL after FROM", text, form)
	}
	for group := range strings.SplitSeq(groups, "|") {
		ids, err := ParseIDs(group)
		if err != nil {
			return Partition{}, fmt.Errorf("partition %q: %s: %w", text, form, err)
		}
		p.Groups = append(p.Groups, ids)
	}
	return p, nil
}

// group returns the index of the group that holds id, or -1.
func (p Partition) group(id ID) int {
	if id == Service {
		return 0
	}
	for i, g := range p.Groups {
		for _, member := range g {
			if member == id {
				return i
			}
		}
	}
	return -1
}

func (p Partition) separates(a, b ID, at time.Duration) bool {
	if at < p.From || at >= p.Until {
		return false
	}
	ga, gb := p.group(a), p.group(b)
	return ga < 0 || ga != gb
}

// Network is what happens to messages between sending and delivery.
type Network struct {
	// Delay of each message; zero value means exactly one Unit.
	Delay Delay
	// Loss and Duplication are probabilities in [0, 1] drawn per message.
	Loss, Duplication float64
	// Sessions exempts messages to and from the Service from Loss and Duplication: they model a
	// TCP connection. Partitions cut it all the same.
	Sessions bool
	// Reorder lets a message overtake an earlier one on the same link. Without
	// it links are first-in first-out, which Lamport's lock requires.
	Reorder bool
	// StaticRing sends ring messages to the configured neighbour even when it
	// is down. Without it the ring is repaired below the algorithm: a message
	// goes to the next live process, as the lectures assume.
	StaticRing bool
	// Partitions in force at their times.
	Partitions []Partition
	// Drop and Duplicate script single messages.
	Drop, Duplicate []Nth
	Late            []Late
	// Slow gives single links a delay of their own.
	Slow []SlowLink
}

// SlowLink sets the delay of every message from From to To.
type SlowLink struct {
	From, To ID
	Delay    time.Duration
}

// ParseSlowLink reads FROM-TO@DELAY.
func ParseSlowLink(text string) (SlowLink, error) {
	const form = "want FROM-TO@DELAY, such as 80-6@5"
	link, delay, ok := strings.Cut(text, "@")
	from, to, ok2 := strings.Cut(link, "-")
	if !ok || !ok2 {
		return SlowLink{}, fmt.Errorf("slow link %q: %s", text, form)
	}
	a, errA := parseMember(from)
	b, errB := parseMember(to)
	d, errD := ParseTime(delay)
	if errA != nil || errB != nil || errD != nil || d < grain {
		return SlowLink{}, fmt.Errorf("slow link %q: %s", text, form)
	}
	return SlowLink{From: a, To: b, Delay: d}, nil
}

func (n Network) check() error {
	if err := n.Delay.check(); err != nil {
		return err
	}
	for name, p := range map[string]float64{"loss": n.Loss, "duplication": n.Duplication} {
		if !(p >= 0 && p <= 1) {
			return fmt.Errorf("%s %g: want a probability from 0 to 1", name, p)
		}
	}
	return nil
}

// Use is how an algorithm uses a Network.
type Use struct {
	// Types of its messages; nil if they are not known.
	Types []string
	// Ring: it sends to the next process of the ring.
	Ring bool
	// Sessions: it talks to the Service only, and as Network.Sessions describes, so that loss
	// and duplication have no effect.
	Sessions bool
}

// CheckUse returns an error for settings that have no effect on an algorithm, which has a name.
func (n Network) CheckUse(name string, u Use) error {
	if n.StaticRing && !u.Ring {
		return fmt.Errorf("%s sends nothing round the ring: a static ring is for algorithms that do", name)
	}
	picks := slices.Concat(n.Drop, n.Duplicate)
	for _, l := range n.Late {
		picks = append(picks, l.Nth)
	}
	if u.Types == nil {
		return nil // a program, which may send any messages
	}
	for _, picked := range picks {
		if !slices.Contains(u.Types, picked.Type) {
			return fmt.Errorf("%s@%d: %s has no message of that type: want one of %s",
				picked.Type, picked.K, name, strings.Join(u.Types, ", "))
		}
	}
	return nil
}

// ParseID reads a process id, with or without a leading N.
func ParseID(text string) (ID, error) {
	digits := strings.TrimPrefix(strings.TrimSpace(text), "N")
	n, err := strconv.Atoi(digits)
	if err != nil || n < 0 || n > 1e9 {
		return None, fmt.Errorf("process id %q: want a whole number from 0 to 1000000000", text)
	}
	return ID(n), nil
}

// parseMember reads a process id, or S for the Service.
func parseMember(text string) (ID, error) {
	if strings.TrimSpace(text) == Service.String() {
		return Service, nil
	}
	return ParseID(text)
}

// ParseIDs reads process ids separated by commas.
func ParseIDs(text string) ([]ID, error) {
	var ids []ID
	for part := range strings.SplitSeq(text, ",") {
		id, err := ParseID(part)
		if err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, nil
}
