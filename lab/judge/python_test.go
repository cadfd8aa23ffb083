//go:build interop

package judge

import "testing"

// TestJudge_Python_RightPassWrongFail is the other language: Debian's python3.
func TestJudge_Python_RightPassWrongFail(t *testing.T) {
	right := Config{Command: []string{"python3", "testdata/bully.py"}, Task: Election, Runs: 100, Crashes: 2, Recoveries: true,
		Like: "bully"}
	if r := judged(t, right); !r.Passed || r.Compared == 0 {
		t.Errorf("%+v, %+v, want runs that pass", r, r.Failure)
	}
	hasty := judged(t, Config{Command: []string{"python3", "testdata/bully_hasty.py"}, Task: Election, Runs: 200})
	assertFails(t, hasty, "safety", "--ids 1,2 --initiator 1")
	polite := judged(t, Config{Command: []string{"python3", "testdata/lock_polite.py"}, Task: Mutex, Runs: 200})
	assertFails(t, polite, "safety", "--ids 1,2")
}
