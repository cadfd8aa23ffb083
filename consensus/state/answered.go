package state

// Answered reports whether the result of a command with this key is known, and will be
// for a while: whoever sends the command again now gets that result and changes nothing.
// It is for requests whose preconditions were checked the first time, and need not hold
// any more.
func (m *Machine) Answered(key string) bool {
	a := m.keys.byKey[key]
	return a != nil && m.time-a.time < KeyLife/2
}
