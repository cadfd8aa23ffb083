package journal_test

import (
	"slices"
	"testing"

	"github.com/zk-lite/zk-lite/internal/journal"
)

func TestJournal_KeepsTheNewest(t *testing.T) {
	j := journal.New[int](3)
	expect := func(before uint64, limit int, want ...int) {
		t.Helper()
		if got := j.Page(before, limit); !slices.Equal(got, want) {
			t.Errorf("Page(%d, %d) with %d added = %v, want %v", before, limit, j.Last(), got, want)
		}
	}
	expect(0, 9)
	for n := range 7 {
		j.Add(n + 1)
		if j.Last() != uint64(n+1) {
			t.Fatalf("Last() = %d, want %d", j.Last(), n+1)
		}
		if n == 1 {
			expect(0, 9, 2, 1)
			expect(2, 9, 1)
		}
	}
	expect(0, 9, 7, 6, 5)
	expect(0, 2, 7, 6)
	expect(7, 9, 6, 5)
	expect(6, 1, 5)
	expect(5, 9) // dropped
	expect(100, 1, 7)
}

func TestJournal_Fresh_ReturnsEachRecordOnce(t *testing.T) {
	j := journal.New[int](3)
	next := 0
	for _, c := range []struct {
		add  int
		want []int
	}{{0, nil}, {2, []int{2, 1}}, {0, nil}, {1, []int{3}}, {5, []int{8, 7, 6}}, {0, nil}, {3, []int{11, 10, 9}}} {
		for range c.add {
			next++
			j.Add(next)
		}
		if got := j.Fresh(); !slices.Equal(got, c.want) {
			t.Errorf("Fresh() after %d more, %d in all = %v, want %v", c.add, next, got, c.want)
		}
	}
}
