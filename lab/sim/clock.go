package sim

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Unit is one message transmission time at the default delay. Virtual times are
// multiples of it; it is a millisecond only so that time.Duration can hold it.
const Unit = time.Millisecond

// grain is the finest step of virtual time a random delay uses. A thousandth of
// a unit keeps traces short to read and still makes ties rare.
const grain = Unit / 1000

// maxUnits bounds every time a user may give, so that sums of times cannot
// overflow a time.Duration.
const maxUnits = 1e9

// FormatTime writes a virtual time in units without trailing zeros: "5", "2.25".
func FormatTime(t time.Duration) string {
	return strconv.FormatFloat(Units(t), 'f', -1, 64)
}

// Units returns t as a number of units, rounded to a thousandth.
func Units(t time.Duration) float64 {
	return math.Round(float64(t)/float64(grain)) / 1000
}

// ParseTime reads a virtual time. A plain number counts units; a Go duration is
// taken with one millisecond to the unit, so "2" and "2ms" are the same time.
func ParseTime(text string) (time.Duration, error) {
	trimmed := strings.TrimSpace(text)
	if units, err := strconv.ParseFloat(trimmed, 64); err == nil {
		if math.IsNaN(units) || units < 0 || units > maxUnits {
			return 0, fmt.Errorf("time %q is outside 0 to %g units", text, float64(maxUnits))
		}
		return time.Duration(math.Round(units*1000)) * grain, nil
	}
	d, err := time.ParseDuration(trimmed)
	if err != nil {
		return 0, fmt.Errorf("time %q is neither a number of units (2.5) nor a duration (2500us)", text)
	}
	if d < 0 || Units(d) > maxUnits {
		return 0, fmt.Errorf("time %q is outside 0 to %g units", text, float64(maxUnits))
	}
	return d, nil
}
