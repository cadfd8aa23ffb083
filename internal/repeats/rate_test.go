package repeats_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zk-lite/zk-lite/internal/repeats"
	"github.com/zk-lite/zk-lite/internal/testkit/clock"
)

// No more lines pass than the rate, from all loggers together; errors pass for longer; the next line counts those that
// were left out.
func TestHandler_Bounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		log := slog.New(repeats.NewHandler(slog.NewTextHandler(&out, nil)))
		passed := func(n int, level slog.Level) int {
			before := strings.Count(out.String(), "\n")
			for i := range n {
				log.With("subsystem", i).WithGroup("g").Log(t.Context(), level, "a line", "number", i)
			}
			return strings.Count(out.String(), "\n") - before
		}
		for _, c := range []struct {
			wait  time.Duration
			lines int
			level slog.Level
			want  int
		}{
			{0, 5000, slog.LevelInfo, repeats.Burst},
			{time.Second, 5000, slog.LevelWarn, repeats.PerSecond},
			{0, 100_000, slog.LevelDebug, 0},
			{0, 5000, slog.LevelError, repeats.Burst},
			{time.Second, 5000, slog.LevelWarn, 0},
			{time.Hour, 5000, slog.LevelInfo, repeats.Burst},
		} {
			if clock.Sleep(c.wait); passed(c.lines, c.level) != c.want {
				t.Errorf("%d lines of level %v after %v: want %d that pass", c.lines, c.level, c.wait, c.want)
			}
		}
		// After the first burst, before the first error, and after the hour.
		for _, want := range []string{"lines_left_out=4000\n", "lines_left_out=4980\n", "lines_left_out=9000\n"} {
			if strings.Count(out.String(), want) != 1 {
				t.Errorf("%q is there %d times", want, strings.Count(out.String(), want))
			}
		}
	})
}
