package main

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

// Subscribers see only what both nodes have: a message that its backup has not taken is in the
// primary's log, and is not shown until no later primary can lack it.
func TestTopic_ShowsOnlyWhatBothNodesHave(t *testing.T) {
	var refuses atomic.Bool
	backup := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if refuses.Load() {
			w.WriteHeader(http.StatusMisdirectedRequest)
		}
	}))
	defer backup.Close()
	log, err := OpenLog(filepath.Join(t.TempDir(), "news.log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	news := &topic{name: "news", log: log}
	shows := func(want string) {
		t.Helper()
		messages, err := news.read(0)
		var texts []string
		for _, m := range messages {
			texts = append(texts, m.Text)
		}
		if got := strings.Join(texts, " "); err != nil || got != want {
			t.Errorf("subscribers see %q, %v; want %q", got, err, want)
		}
	}
	news.lead(1, strings.TrimPrefix(backup.URL, "http://"))
	if err := news.publish(Message{From: "p", Number: 1, Text: "first"}); err != nil {
		t.Fatal(err)
	}
	shows("first")
	refuses.Store(true)
	if err := news.publish(Message{From: "p", Number: 2, Text: "second"}); !errors.Is(err, errNotHere) {
		t.Errorf("a message that the backup has refused: %v, want %v", err, errNotHere)
	}
	if n := len(log.messages); n != 2 {
		t.Fatalf("the primary has %d messages, want 2", n)
	}
	shows("first")
	news.lead(2, "") // its backup is dropped: no other node may become the primary
	shows("first second")
}
