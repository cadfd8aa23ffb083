package insight

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// Ranking is who used the server most.
type Ranking struct {
	Seconds   float64 // that it covers, at least one
	Total     int64   // requests or bytes of all
	Sessions  []User
	Addresses []User
	Paths     []User
}

// User is a session, an address or a path.
type User struct {
	Name  string
	Count int64 // requests, bytes or watches
	Over  int64 // what Count may be too large by, besides what sampling adds or takes away
}

// Top returns the first users by a measure, at most limit of each kind.
func (t *Usage) Top(by Measure, limit int) Ranking {
	now := time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.turnLocked(now)
	t.adjustLocked(now)
	present, before := &t.windows[0].by[by], &t.windows[1].by[by]
	since := t.windows[0].since
	if !t.windows[1].since.IsZero() {
		since = t.windows[1].since
	}
	return Ranking{
		// Over less than a second, the first few requests would give rates of hundreds.
		Seconds: max(1, now.Sub(since).Seconds()), Total: present.total + before.total,
		Sessions:  rank(limit, &present.sessions, &before.sessions),
		Addresses: rank(limit, &present.addresses, &before.addresses),
		Paths:     rank(limit, &present.paths, &before.paths),
	}
}

// rank adds up what two sketches have counted. What one of them does not list it may have counted up to its smallest
// counter, if that is full.
func rank[K comparable](limit int, both ...*sketch[K]) []User {
	users := map[K]*User{}
	for _, s := range both {
		for _, c := range s.counters {
			users[c.key] = &User{Name: fmt.Sprint(c.key)}
		}
	}
	list := make([]User, 0, len(users))
	for key, u := range users {
		for _, s := range both {
			c := s.of(key)
			u.Count += c.count
			u.Over += c.over
		}
		list = append(list, *u)
	}
	return TopUsers(list, limit)
}

// TopUsers orders users, the largest first, and cuts the list off.
func TopUsers(users []User, limit int) []User {
	slices.SortFunc(users, func(a, b User) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Name, b.Name))
	})
	return users[:min(limit, len(users))]
}
