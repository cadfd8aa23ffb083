package cli

import (
	"strings"
	"testing"

	"github.com/zk-lite/zk-lite/api/body"
)

// Two releases ran, and upgrade status said that no upgrade is under way: they speak the same levels.
func TestRegression_Upgrade_TwoReleasesOfOneLevel(t *testing.T) {
	member := func(id int, version, commit string) body.Member {
		return body.Member{ID: id, Version: version, Commit: commit, Levels: []int{1, 1}}
	}
	for want, members := range map[string][]body.Member{
		"1.0.0 on server 1, 1.0.1 on servers 2, 3; give all servers one of them": {
			member(1, "1.0.0", ""), member(2, "1.0.1", ""), member(3, "1.0.1", "")},
		"dev aaaa on server 2, dev bbbb on server 1":   {member(1, "dev", "bbbb"), member(2, "dev", "aaaa")},
		"- on server 3, 1.0.0 on servers 1, 2":         {member(1, "1.0.0", ""), member(2, "1.0.0", ""), member(3, "", "")},
		"no upgrade is under way":                      {member(1, "1.0.0", "c"), member(2, "1.0.0", "c")},
		"server 2 has not said which levels it speaks": {member(1, "1.0.0", ""), {ID: 2}},
	} {
		if got := nextStep(&ensemble{body.Cluster{Level: 1, HighestLevel: 1, Members: members}}); !strings.Contains(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
