package gc

import (
	"os"
	"testing"
)

// unsetenv removes a variable of the environment until the end of the test.
func unsetenv(t *testing.T, key string) {
	t.Helper()
	t.Setenv(key, "") // which restores it
	if err := os.Unsetenv(key); err != nil {
		t.Fatal(err)
	}
}
