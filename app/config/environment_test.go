package config

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func TestUnknownVariables(t *testing.T) {
	for entry, want := range map[string]string{
		"ZK_LITE_TICKTIME=77":                          "did you mean ZK_LITE_TICK_TIME?",
		"ZK_LITE_NOTHING_LIKE_IT=1":                    "docs/reference/settings.md",
		"ZK_LITE_CLIENT_PORTS=1":                       "did you mean ZK_LITE_CLIENT_PORT?",
		"ZK_LITE_TICK_TIME=77":                         "",
		"ZK_LITE_SERVERS=1=a:1:2":                      "",
		"ZK_LITE_HTTP=http://a:8080":                   "",
		"ZK_LITE_TEST_CHILD=1":                         "",
		"TICKTIME=1":                                   "",
		"ZK_LITE_SERVICE_HOST=10.0.0.1":                "",
		"ZK_LITE_SERVICE_PORT_CLIENT=2181":             "",
		"ZK_LITE_PORT=tcp://10.0.0.1:2181":             "",
		"ZK_LITE_HEADLESS_PORT_2181_TCP_ADDR=10.0.0.1": "",
	} {
		notices := UnknownVariables([]string{entry, "HOME=/"})
		switch {
		case want == "" && len(notices) > 0:
			t.Errorf("%s: got %v, want no notice", entry, notices)
		case want != "" && (len(notices) != 1 || !strings.Contains(notices[0].Text, want)):
			t.Errorf("%s: %v, want %q", entry, notices, want)
		}
	}
}

// Each variable that the program's source names is known, so that none is reported that works.
func TestUnknownVariables_KnowsThoseOfTheCommands(t *testing.T) {
	named := regexp.MustCompile(`"(ZK_LITE_[A-Z][A-Z_]*)"`)
	files, err := filepath.Glob("../../cmd/zk-lite/cli/*.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("got the files %v, %v, want some", files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range named.FindAllStringSubmatch(string(text), -1) {
			if n := UnknownVariables([]string{m[1] + "=x"}); len(n) > 0 {
				t.Errorf("%s: got %v, want no notice", file, n)
			}
		}
	}
}
