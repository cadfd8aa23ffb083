package main

import "testing"

func TestBuildInfo_Full(t *testing.T) {
	for want, b := range map[string]buildInfo{
		"1.2.3":                       {Version: "1.2.3"},
		"1.2.3+0123456789ab":          {Version: "1.2.3", Commit: "0123456789abcdef"},
		"1.2.3-rc.1+0123456.modified": {Version: "1.2.3-rc.1", Commit: "0123456", Modified: true},
	} {
		if got := b.full(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
