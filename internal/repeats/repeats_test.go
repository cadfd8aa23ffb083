package repeats

import (
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/zk-lite/zk-lite/internal/testkit/clock"
)

func TestFilter_Pass_OnceInAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f Filter
		want := func(key string, ok bool, leftOut int) {
			t.Helper()
			if gotOK, got := f.Pass(key); gotOK != ok || got != leftOut {
				t.Errorf("%s: %v and %d left out, want %v and %d", key, gotOK, got, ok, leftOut)
			}
		}
		want("a", true, 0)
		want("a", false, 0)
		clock.Sleep(Every - 1)
		want("a", false, 0)
		want("b", true, 0)
		clock.Sleep(1)
		want("a", true, 2)
		want("b", false, 0)
		clock.Sleep(Every)
		want("a", true, 0)
		want("b", true, 1)
	})
}

func TestFilter_Memory_IsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f Filter
		for i := range 10 * maxKeys {
			if ok, _ := f.Pass(fmt.Sprint(i)); !ok || len(f.seen) > maxKeys {
				t.Fatalf("message %d: passed %v, %d are remembered", i, ok, len(f.seen))
			}
			if i%maxKeys == maxKeys/2 {
				clock.Sleep(Every) // some are old when room is made, some are not
			}
		}
	})
}

// A key under which different messages go passes some of them.
func TestFilter_PassSome_SoManyInAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f Filter
		for range 2 {
			for i := range 10 {
				ok, leftOut := f.PassSome(3, "a")
				if ok != (i < 3) || leftOut != 0 && i > 0 {
					t.Errorf("message %d: passed %v, %d were left out", i, ok, leftOut)
				}
			}
			clock.Sleep(Every)
		}
		if ok, leftOut := f.PassSome(3, "a"); !ok || leftOut != 7 {
			t.Errorf("after a while: passed %v, %d were left out, want 7", ok, leftOut)
		}
	})
}
