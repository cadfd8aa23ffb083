package server

import (
	"fmt"
	"testing"
)

func TestRing_Model(t *testing.T) {
	var q ring
	var model []request
	next := 0
	for round := range 300 { // grows, shrinks and wraps around at many offsets
		for range round % 23 {
			r := request{op: &op{name: fmt.Sprint(next)}, write: next%3 == 0, weight: next % 5}
			next++
			q.push(r)
			model = append(model, r)
		}
		for range round % 29 {
			take, want, ok := q.pop, request{}, len(model) > 0
			if round%2 == 0 {
				take, ok = q.popRead, ok && !model[0].write
			}
			if ok {
				want, model = model[0], model[1:]
			}
			if got, have := take(); have != ok || got != want {
				t.Fatalf("took %v, %v; want %v, %v", got, have, want, ok)
			}
		}
		if q.len() != len(model) {
			t.Fatalf("len() = %d, want %d", q.len(), len(model))
		}
	}
	for q.len() > 0 {
		q.pop()
	}
	if q.bytes != 0 {
		t.Errorf("got %d bytes in an empty ring, want 0", q.bytes)
	}
	for _, r := range q.items {
		if r.op != nil {
			t.Fatal("an empty ring keeps requests alive")
		}
	}
}
