package sim

import (
	"fmt"
	"strings"
	"time"
)

// Fault crashes a process, or brings it back.
type Fault struct {
	ID      ID
	At      time.Duration
	Recover bool
}

// ParseFault reads ID@TIME, where ID may be S for the Service; recover chooses which of the two it
// schedules.
func ParseFault(text string, recover bool) (Fault, error) {
	name, at, ok := strings.Cut(text, "@")
	if !ok {
		return Fault{}, fmt.Errorf("%q: want ID@TIME, such as 80@0", text)
	}
	id, err := parseMember(name)
	if err != nil {
		return Fault{}, fmt.Errorf("%q: want ID@TIME, such as 80@0: %w", text, err)
	}
	t, err := ParseTime(at)
	if err != nil {
		return Fault{}, fmt.Errorf("%q: want ID@TIME, such as 80@0: %w", text, err)
	}
	return Fault{ID: id, At: t, Recover: recover}, nil
}
