package slowdisk

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"
)

// With a tail, one sync in tailOdds takes tailFactor times as long.
const (
	tailOdds   = 100
	tailFactor = 100
	tailSuffix = "/tail"
)

// Profile is how long syncs take on top of what the disk needs. The zero value adds nothing.
type Profile struct {
	Delay time.Duration
	Tail  bool // 1 % of the syncs take 100 times longer
}

// Profiles are the disks that tests have: from a fast one to a slow cloud volume, constant and with a tail.
func Profiles() (all []Profile) {
	const us, ms = time.Microsecond, time.Millisecond
	for _, delay := range []time.Duration{200 * us, ms, 5 * ms, 15 * ms, 50 * ms} {
		all = append(all, Profile{Delay: delay}, Profile{Delay: delay, Tail: true})
	}
	return all
}

// Parse reads "5ms" or "5ms/tail".
func Parse(text string) (p Profile, err error) {
	delay, tail := strings.CutSuffix(text, tailSuffix)
	p.Tail = tail
	if p.Delay, err = time.ParseDuration(delay); err != nil || p.Delay < 0 {
		return Profile{}, fmt.Errorf("sync time %q: want a duration, as 5ms, and %s behind it for 1 %% that take "+
			"100 times longer", text, tailSuffix)
	}
	return p, nil
}

// String is what Parse reads.
func (p Profile) String() string {
	if p.Tail {
		return p.Delay.String() + tailSuffix
	}
	return p.Delay.String()
}

// Draw is the delay of the next sync.
func (p Profile) Draw(rng *rand.Rand) time.Duration {
	if p.Tail && rng.IntN(tailOdds) == 0 {
		return p.Delay * tailFactor
	}
	return p.Delay
}
