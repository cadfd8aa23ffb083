package zktest

import (
	"fmt"
	"os"
	"testing"
)

// TB is the part of testing.TB that this package needs.
type TB interface {
	Helper()
	Cleanup(f func())
	TempDir() string
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// Main runs the tests of a package with one server that all of them may use, and
// returns the exit code. It is for TestMain: one server for all is much quicker
// than one for each.
func Main(m *testing.M, use func(*Server)) int {
	tb := new(mainTB)
	defer tb.cleanup()
	use(Start(tb, 1).Servers[0])
	return m.Run()
}

// mainTB is the TB of TestMain, which has none.
type mainTB struct{ cleanups []func() }

func (tb *mainTB) Helper() {}

func (tb *mainTB) Cleanup(f func()) { tb.cleanups = append(tb.cleanups, f) }

func (tb *mainTB) TempDir() string {
	dir, err := os.MkdirTemp("", "zktest")
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = os.RemoveAll(dir) }) // the system clears what is left
	return dir
}

// Fatal panics: there is no test to fail yet.
func (tb *mainTB) Fatal(args ...any) { panic(fmt.Sprint(args...)) }

func (tb *mainTB) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }

func (tb *mainTB) cleanup() {
	for i := len(tb.cleanups) - 1; i >= 0; i-- {
		tb.cleanups[i]()
	}
}
