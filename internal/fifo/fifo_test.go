package fifo

import (
	"slices"
	"testing"
)

func TestQueue_Model(t *testing.T) {
	var q Queue[*int]
	var model []*int
	first := uint64(0)
	check := func(round int) {
		t.Helper()
		var got []*int
		for i := range q.Len() {
			got = append(got, q.At(i))
		}
		if !slices.Equal(got, model) || q.First() != first || q.End() != first+uint64(len(model)) {
			t.Fatalf("round %d: %d elements, numbered %d to %d; want %d, from %d",
				round, len(got), q.First(), q.End(), len(model), first)
		}
	}
	for round := range 300 { // grows, shrinks and wraps around at many offsets
		for range round % 23 {
			x := new(int)
			q.Push(x)
			model = append(model, x)
		}
		for range min(round%29, len(model)) {
			if len(model) > 2 && round%5 == 0 {
				i := round % len(model)
				q.Delete(i)
				model = slices.Delete(model, i, i+1)
				continue
			}
			if got := q.Pop(); got != model[0] {
				t.Fatalf("round %d: Pop() is not the oldest", round)
			}
			model, first = model[1:], first+1
		}
		check(round)
	}
	for q.Len() > 0 {
		q.Pop()
	}
	for _, x := range q.items {
		if x != nil {
			t.Fatal("an empty queue keeps elements alive")
		}
	}
}
