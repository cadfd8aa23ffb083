package zklite_test

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestTests_DoNotSleep holds the rule that a test waits for a condition, or
// lets virtual time pass with clock.Sleep: whoever waits for the real clock is slow on a fast
// machine and fails on a slow one.
func TestTests_DoNotSleep(t *testing.T) {
	sleep := []byte("time.Sleep" + "(")
	files := 0
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != "." && strings.HasPrefix(d.Name(), "."), d.IsDir() && strings.HasPrefix(d.Name(), "_"):
			return filepath.SkipDir
		case !strings.HasSuffix(path, "_test.go"):
			return nil
		}
		files++
		text, err := os.ReadFile(path)
		if bytes.Contains(text, sleep) {
			t.Errorf("%s sleeps: wait for a condition, or use clock.Sleep in synctest.Test", path)
		}
		return err
	})
	if err != nil || files == 0 {
		t.Fatalf("%d test files read, %v", files, err)
	}
}
