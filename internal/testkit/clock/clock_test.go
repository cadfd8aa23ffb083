package clock

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestSleep_InABubble_TakesItsTime(t *testing.T) {
	synctest.Test(t, func(*testing.T) {
		start := time.Now()
		Sleep(time.Hour)
		if d := time.Since(start); d != time.Hour {
			t.Errorf("%v passed", d)
		}
	})
}

func TestSleep_Outside_Panics(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("it slept")
		}
	}()
	Sleep(0)
}
