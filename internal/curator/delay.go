package curator

import (
	"fmt"
	"strings"
	"time"
)

// DelayName is the name of the znode, beside the waiters, by which a lock's holder asks for a lock delay. Curator and
// kazoo sort all that is there by what follows the marker, or leave it out: a name that has letters there comes last.
const DelayName = "lock-delay"

// MaxDelay bounds a lock delay.
const MaxDelay = time.Hour

// DelayMark is what is in that znode. Its holder writes it with the grant and deletes it with the release, so one whose
// holder is not in the queue was left by a holder that was lost. The first waiter then replaces it by one with Lost,
// whose ctime is the beginning of the delay.
type DelayMark struct {
	Delay  time.Duration // above 0, at most MaxDelay
	Holder string        // the name of its znode in the queue
	Lost   bool
}

// Bytes is the mark as data: its delay, held or lost, and the holder.
func (m DelayMark) Bytes() []byte {
	state := "held"
	if m.Lost {
		state = "lost"
	}
	return fmt.Appendf(nil, "%v %s %s", m.Delay, state, m.Holder)
}

// ParseDelayMark is the inverse of Bytes.
func ParseDelayMark(data []byte) (DelayMark, error) {
	parts := strings.SplitN(string(data), " ", 3)
	if len(parts) == 3 && (parts[1] == "held" || parts[1] == "lost") && parts[2] != "" {
		d, err := time.ParseDuration(parts[0])
		if m := (DelayMark{d, parts[2], parts[1] == "lost"}); err == nil && CheckDelay(d) == nil {
			return m, nil
		}
	}
	return DelayMark{}, fmt.Errorf("%.100q is no lock delay, such as %q; delete the znode to go on without", data,
		DelayMark{Delay: 15 * time.Second, Holder: Name("7d3f0c7e", Lock) + "0000000004"}.Bytes())
}

// CheckDelay returns why d cannot be a lock delay.
func CheckDelay(d time.Duration) error {
	if d <= 0 || d > MaxDelay {
		return fmt.Errorf("a lock delay of %v; want more than 0, and at most %v", d, MaxDelay)
	}
	return nil
}

// Remaining is how much of the delay is left after a time by the clock that has stamped the mark; ctime is the mark's.
// Of one that is not lost it is all.
func (m DelayMark) Remaining(ctime, now int64) time.Duration {
	if !m.Lost {
		return m.Delay
	}
	return m.Delay - max(time.Duration(now-ctime)*time.Millisecond, 0)
}
