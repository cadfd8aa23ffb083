package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/zk-lite/zk-lite/cmd/zk-lite/cli/httpapi"
	"github.com/zk-lite/zk-lite/internal/testkit/tier"
)

// browserScript stands for a browser: it notes what it was given, and ends as $END says.
const browserScript = `#!/bin/sh
echo "$*" >"$NOTES/arguments"
[ ! -f "$1" ] || { cp "$1" "$NOTES/page"; stat -c %a "$1" >"$NOTES/mode"; }
exit "$END"
`

// TestUI_OpensLoggedIn: on a terminal `zk-lite ui` gives a browser the address of a file with the token, which no one
// else can read and which is soon gone; without a terminal or a browser it says where the dashboard and the token are.
func TestUI_OpensLoggedIn(t *testing.T) {
	tier.Seconds(t)
	at := "http://" + startEnsemble(t).HTTPAddrs()[0]
	home, notes := t.TempDir(), t.TempDir()
	script := filepath.Join(notes, "browser")
	if err := os.WriteFile(script, []byte(browserScript), 0o700); err != nil {
		t.Fatal(err)
	}
	note := func(name string) string {
		text, err := os.ReadFile(filepath.Join(notes, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	run := func(end int, at string) *screen {
		cmd := exec.Command("zk-lite", "ui", "--http", at, "--wait", "0s")
		cmd.Env = append(os.Environ(), "HOME="+home, "BROWSER="+script, "NOTES="+notes, fmt.Sprintf("END=%d", end))
		return runOnScreen(t, cmd)
	}

	out, err := zkLite(t.Context(), "ui", "--http", at) // not on a terminal
	found := regexp.MustCompile(`^(.*)/ui/\nlog in there by token: the first line of (/.*/admin\.token)\n$`).
		FindStringSubmatch(out.String())
	if err != nil || found == nil || found[1] != at {
		t.Fatalf("got %q, %v, want %s/ui/ and the file of the token", out.String(), err, at)
	}
	secret, err := os.ReadFile(found[2])
	if err != nil {
		t.Fatal(err)
	}
	token, _, _ := strings.Cut(string(secret), "\n")

	s := run(0, at)
	s.expect(`opened ` + at + `/ui/`)
	<-s.done
	if page := note("page"); page != string((&httpapi.Login{URL: at, Token: token}).Page()) || !strings.Contains(page, token) {
		t.Errorf("the browser got %q, want a page that hands the token over", page)
	}
	if mode, arguments := note("mode"), note("arguments"); mode != "600\n" || strings.Contains(arguments+s.all, token) {
		t.Errorf("the file had mode %s, the arguments were %q, the screen %q; want 600 and no token", mode, arguments, s.all)
	}

	s = run(3, at)
	s.expect(`no browser: .*exit status 3`)
	s.expect(at + `/ui/\s+log in there by token: the first line of /.*/admin\.token`)
	<-s.done

	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "{}") }))
	defer other.Close()
	s = run(0, other.URL) // there is no token: an administrator is configured
	s.expect(`opened ` + other.URL + `/ui/`)
	<-s.done
	if got := note("arguments"); got != other.URL+"/ui/\n" {
		t.Errorf("the browser got %q, want the address alone", got)
	}
	if left, err := os.ReadDir(home); err != nil || len(left) > 0 {
		t.Errorf("there remain %v, %v, want no file", left, err)
	}
}
