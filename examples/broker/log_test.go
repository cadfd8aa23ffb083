package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zk-lite/zk-lite/client"
)

func openLog(t *testing.T, path string) *Log {
	t.Helper()
	l, err := OpenLog(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

func texts(l *Log) string {
	var all []string
	for _, m := range l.messages {
		all = append(all, fmt.Sprintf("%d%s", m.ID, m.Text))
	}
	return strings.Join(all, " ")
}

func TestOpenLog_CutsOffATornLineAndGoesOn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "news.log")
	l := openLog(t, path)
	if err := l.Append(Message{From: "p", Number: 1, Text: "a"}, Message{From: "p", Number: 2, Text: "b"}); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for cut := range len(whole) {
		if err := os.WriteFile(path, whole[:cut], 0o600); err != nil {
			t.Fatal(err)
		}
		l := openLog(t, path)
		n := len(l.messages)
		if err := l.Append(Message{From: "q", Number: 1, Text: "c"}); err != nil {
			t.Fatal(err)
		}
		want := []string{"1c", "1a 2c"}[n]
		if got := texts(openLog(t, path)); got != want {
			t.Errorf("cut at %d the log has %q, want %q", cut, got, want)
		}
	}
}

func TestOpenLog_RefusesDamage(t *testing.T) {
	path := filepath.Join(t.TempDir(), "news.log")
	for _, text := range []string{"{\n", `{"ID":2}` + "\n", `{"ID":1}` + "\n" + `{"ID":1}` + "\n"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := OpenLog(path); err == nil || !strings.Contains(err.Error(), "damaged") {
			t.Errorf("a log of %q: %v, want one that says that it is damaged", text, err)
		}
	}
}

func TestLog_Truncate_ForgetsWhoHasSentWhat(t *testing.T) {
	path := filepath.Join(t.TempDir(), "news.log")
	l := openLog(t, path)
	for i, text := range []string{"a", "b", "c"} {
		if err := l.Append(Message{From: "p", Number: i + 1, Text: text}); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Truncate(1); err != nil {
		t.Fatal(err)
	}
	if !l.Has(Message{From: "p", Number: 1}) || l.Has(Message{From: "p", Number: 2}) || l.Has(Message{From: "q", Number: 1}) {
		t.Errorf("after it the log knows of %v", l.newest)
	}
	if err := l.Append(Message{From: "p", Number: 2, Text: "B"}); err != nil {
		t.Fatal(err)
	}
	if got, want := texts(openLog(t, path)), "1a 2B"; got != want {
		t.Errorf("the file has %q, want %q", got, want)
	}
}

func TestTopic_Receive_RefusesAnOldPrimary(t *testing.T) {
	c := &topic{log: openLog(t, filepath.Join(t.TempDir(), "news.log"))}
	for _, step := range []struct {
		epoch      client.Version
		after      int
		text, want string
	}{
		{4, 0, "a", "1a"},
		{3, 1, "late", "1a"}, // of a primary that has been replaced
		{4, 2, "gap", "1a"},
		{5, 0, "A", "1A"}, // a new copy
		{5, 1, "b", "1A 2b"},
		{5, 1, "B", "1A 2B"}, // again: the answer was lost
	} {
		err := c.receive(step.epoch, step.after, []Message{{From: "p", Number: 1, Text: step.text}})
		if got := texts(c.log); got != step.want || (err == nil) != strings.Contains(got, step.text) {
			t.Errorf("after %+v the log has %q (%v)", step, got, err)
		}
	}
}

// Whatever is in a file, it is refused or is a log that can be written.
func FuzzOpenLog(f *testing.F) {
	f.Add([]byte(`{"ID":1,"From":"p","Number":1,"Text":"a"}` + "\n" + `{"ID":2`))
	path := filepath.Join(f.TempDir(), "news.log")
	f.Fuzz(func(t *testing.T, data []byte) {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		l, err := OpenLog(path)
		if err != nil {
			return
		}
		defer l.Close()
		if err := l.Append(Message{From: "q", Number: 1, Text: "c"}); err != nil {
			t.Fatal(err)
		}
		again := openLog(t, path)
		if got, want := texts(again), texts(l); got != want {
			t.Errorf("the file has %q, want %q", got, want)
		}
	})
}
