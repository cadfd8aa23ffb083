package wait

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestFor_LastErrorAfterPatience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start, looks := time.Now(), 0
		err := For(t.Context(), "nothing", time.Second, func() error { looks++; return errors.New("no") })
		if d := time.Since(start); err == nil || d < time.Second || d > time.Second+2*maxPause || looks < 50 {
			t.Errorf("%v after %v and %d looks", err, d, looks)
		}
		looks = 0
		Until(t, "the third look", func() bool { looks++; return looks == 3 })
		if Holds(func() bool { return false }) {
			t.Error("it holds")
		}
	})
}
