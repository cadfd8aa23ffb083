package load

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
)

// maxWeight bounds a weight, so that sums stay far from overflow.
const maxWeight = 1_000_000

// Share is one operation of a mix.
type Share struct {
	Op     Op  `json:"op"`
	Weight int `json:"weight"` // of the sum of all weights
}

// Mix is what is asked for, in which proportion. It is drawn at random for each
// request, so that the shares are met on average and no pattern is.
type Mix []Share

// ParseMix reads a mix: "get", "get=90,set=10", "get:9 set:1" or "90% get 10%
// set". Weights are whole numbers, 1 if left out.
func ParseMix(text string) (Mix, error) {
	fields := strings.FieldsFunc(text, func(r rune) bool {
		return r == ',' || r == ' ' || r == '\t' || r == '=' || r == ':'
	})
	var m Mix
	pending := 0 // a weight before its operation: "90% get"
	for _, f := range fields {
		number, isPercent := strings.CutSuffix(f, "%")
		weight, err := strconv.Atoi(number)
		if err != nil {
			op, err := ParseOp(f)
			if err != nil {
				return nil, fmt.Errorf("mix %q: %w", text, err)
			}
			m = append(m, Share{op, pending})
			pending = 0
			continue
		}
		if weight < 1 || weight > maxWeight {
			return nil, fmt.Errorf("mix %q: weight %d: 1 to %d are possible", text, weight, maxWeight)
		}
		switch {
		case !isPercent && len(m) > 0 && m[len(m)-1].Weight == 0:
			m[len(m)-1].Weight = weight // "get=90"
		case pending == 0:
			pending = weight
		default:
			return nil, fmt.Errorf("mix %q: two weights, %d and %d, for one operation",
				text, pending, weight)
		}
	}
	if pending != 0 {
		return nil, fmt.Errorf("mix %q: the weight %d belongs to no operation", text, pending)
	}
	return m, m.complete(text)
}

// complete gives a weight to who has none and finds what is wrong with the whole.
func (m Mix) complete(text string) error {
	if len(m) == 0 {
		return errors.New(`the mix is empty; one is "get", another "get=90,set=10"`)
	}
	seen := map[Op]bool{}
	for i := range m {
		m[i].Weight = max(m[i].Weight, 1)
		if seen[m[i].Op] {
			return fmt.Errorf("mix %q: %s stands twice", text, m[i].Op)
		}
		seen[m[i].Op] = true
	}
	return nil
}

// String is a form that ParseMix reads.
func (m Mix) String() string {
	if len(m) == 1 {
		return m[0].Op.String()
	}
	var parts []string
	for _, s := range m {
		parts = append(parts, fmt.Sprintf("%s=%d", s.Op, s.Weight))
	}
	return strings.Join(parts, ",")
}

func (m Mix) has(op Op) bool {
	for _, s := range m {
		if s.Op == op {
			return true
		}
	}
	return false
}

// draw picks an operation.
func (m Mix) draw(r *rand.Rand) Op {
	if len(m) == 1 {
		return m[0].Op
	}
	sum := 0
	for _, s := range m {
		sum += s.Weight
	}
	at := r.IntN(sum)
	for _, s := range m {
		if at -= s.Weight; at < 0 {
			return s.Op
		}
	}
	panic("load: invariant broken: a draw beyond the sum of the weights")
}
