package state

import (
	"errors"
	"fmt"
)

// The head of a snapshot ends with sections, for what most states do not have. Each begins with its number, of which
// one stands for a form of its contents: another form gets another number. Snapshots of level 1 have none.
const (
	mirrorSection   = 2 // 1 was the mirror's in builds between two releases
	takeoverSection = 3
	reconfigSection = 4
	leavingSection  = 5
)

// appendSections encodes what is mirrored, or was taken over, and a reconfiguration; nothing if there is none.
func (s *Snapshot) appendSections(b []byte) []byte {
	switch {
	case s.mirror != nil:
		b = s.mirror.append(b)
	case s.takeover.Source != "":
		b = s.takeover.Append(b)
	}
	return appendLeaving(s.reconfig.append(b), s.leaving)
}

// readSections reads them, to the end of the head.
func (m *Machine) readSections(r *reader) {
	for r.err == nil && r.off < len(r.b) {
		switch n := r.byte(); n {
		case mirrorSection:
			m.mirror = readMirror(r)
		case takeoverSection:
			if m.takeover = readTakeover(r); m.takeover.Source == "" {
				r.fail(errors.New("the record of a take-over has no source"))
			}
		case reconfigSection:
			m.reconfig = readReconfiguration(r)
		case leavingSection:
			m.leaving = readServers(r)
		default:
			r.fail(fmt.Errorf("the head has a section %d, which this build does not read", n))
		}
	}
}
