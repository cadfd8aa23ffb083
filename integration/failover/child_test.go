package failover_test

import (
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// childVariable, when it is set, makes the test binary one of the commands that lock
// and elect run: it is the directory where the children of one path meet.
const childVariable = "ZK_LITE_TEST_CHILD"

// nameVariable holds the child's name.
const nameVariable = "ZK_LITE_TEST_NAME"

// childPoll is how often a child looks whether it may end.
const childPoll = 10 * time.Millisecond

// child runs until its name is in a file go-NAME, or SIGTERM arrives. The lock of the file
// system, which the kernel takes from a process that dies, detects whether two run at once.
func child(dir string) int {
	told := make(chan os.Signal, 1)
	signal.Notify(told, syscall.SIGTERM)
	name, token := os.Getenv(nameVariable), os.Getenv("ZK_LITE_FENCING_TOKEN")
	only, err := os.OpenFile(filepath.Join(dir, "only"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return 99
	}
	if err := syscall.Flock(int(only.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		note(dir, "overlap", name, token)
		return 98
	}
	note(dir, "start", name, token)
	tick := time.NewTicker(childPoll)
	for {
		select {
		case <-told:
			note(dir, "stopped", name, token)
			return 0
		case <-tick.C:
			if _, err := os.Stat(filepath.Join(dir, "go-"+name)); err == nil {
				note(dir, "done", name, token)
				return 0
			}
		}
	}
}

// note writes a line in one piece.
func note(dir string, words ...string) {
	f, err := os.OpenFile(filepath.Join(dir, "events"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		os.Exit(97) // the test sees it as the code of the command
	}
	defer f.Close()
	if _, err := fmt.Fprintln(f, strings.Join(words, " ")); err != nil {
		os.Exit(97)
	}
}
