package zklitetest

import (
	"fmt"
	"os"
	"slices"
	"testing"
)

// Main is for a TestMain whose tests share their servers, which is quicker than servers
// for each test: it starts them, calls use, runs the tests and stops the servers. It
// returns the exit code.
func Main(m *testing.M, use func(*Ensemble), opts ...Option) int {
	tb := new(mainTB)
	defer tb.cleanUp()
	use(Start(tb, opts...))
	code := m.Run()
	if tb.failed && code == 0 {
		return 1
	}
	return code
}

// mainTB is the testing.TB of TestMain, which has none.
type mainTB struct {
	testing.TB // nil: the methods below are all that is called
	cleanups   []func()
	failed     bool
}

func (tb *mainTB) Helper() {}

func (tb *mainTB) Cleanup(f func()) { tb.cleanups = append(tb.cleanups, f) }

func (tb *mainTB) TempDir() string {
	dir, err := os.MkdirTemp("", "zklitetest")
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = os.RemoveAll(dir) }) // the system clears what is left
	return dir
}

func (tb *mainTB) Errorf(format string, args ...any) {
	tb.failed = true
	fmt.Fprintf(os.Stderr, format+"\n", args...)
}

// Fatal panics: there is no test to fail yet.
func (tb *mainTB) Fatal(args ...any) { panic(fmt.Sprint(args...)) }

func (tb *mainTB) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }

func (tb *mainTB) cleanUp() {
	for _, f := range slices.Backward(tb.cleanups) {
		f()
	}
}
