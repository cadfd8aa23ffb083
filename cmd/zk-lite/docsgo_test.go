package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zk-lite/zk-lite/internal/testkit/tier"
	"github.com/zk-lite/zk-lite/zklitetest"
)

// runGo runs a program of the pages against servers, whose addresses take the place of the documented ones.
func runGo(t *testing.T, program string) string {
	t.Helper()
	e := zklitetest.Start(t)
	const servers = "127.0.0.1:2181,127.0.0.1:2182,127.0.0.1:2183"
	if !strings.Contains(program, servers) {
		t.Fatalf("the program has no %s:\n%s", servers, program)
	}
	file := filepath.Join(t.TempDir(), "main.go")
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(program, servers, e.ConnectString())), 0o644); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), "go", "run", file).CombinedOutput()
	if err != nil {
		t.Errorf("go run: %v", err)
	}
	return string(out)
}

// TestQuickStart_Go runs the program in Go of the page; integration/interop runs those in other languages.
func TestQuickStart_Go(t *testing.T) {
	tier.Seconds(t)
	program := strings.Join(blocksOf(t, "../../docs/quickstart.md", "go"), "")
	if got, want := runGo(t, program), "one\nchanged\nholding the lock\n"; got != want {
		t.Errorf("it prints %q, want %q", got, want)
	}
}

// TestCookbook_Go compiles the functions of the page and runs each.
func TestCookbook_Go(t *testing.T) {
	tier.Seconds(t)
	program := cookbookBegin + strings.Join(blocksOf(t, "../../docs/cookbook.md", "go"), "\n") + cookbookMain
	want := "leads true\nlocked true\nlimit 10\nlimit 20\nbackend 10.0.0.1:80\nround\nround\njob one true\n"
	if got := runGo(t, program); got != want {
		t.Errorf("it prints\n%s\nwant\n%s", got, want)
	}
}

// What the functions of the cookbook need around them. Each is ended by an error that its caller returns, where it
// would go on.
const (
	cookbookBegin = `package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/recipes"
)

`
	cookbookMain = `
func must(err, want error) {
	if !errors.Is(err, want) {
		log.Fatalf("got the error %v, want %v", err, want)
	}
}

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c, err := client.Connect(ctx, "127.0.0.1:2181,127.0.0.1:2182,127.0.0.1:2183")
	must(err, nil)
	defer c.Close()
	enough := errors.New("enough")

	must(lead(ctx, c, "me", func(ctx context.Context, token int64) error {
		fmt.Println("leads", ctx.Err() == nil && token > 0)
		return enough
	}), enough)
	must(locked(ctx, c, func(ctx context.Context, token int64) error {
		fmt.Println("locked", ctx.Err() == nil && token > 0)
		return nil
	}), nil)

	must(c.EnsurePath(ctx, "/app", client.Persistent), nil)
	_, _, err = c.Create(ctx, "/app/config", []byte("{\"limit\": 10}"), client.Persistent)
	must(err, nil)
	following, stop := context.WithCancel(ctx)
	must(follow(following, c, func(config Config) {
		fmt.Println("limit", config.Limit)
		if config.Limit == 20 {
			stop()
			return
		}
		_, err := c.Set(ctx, "/app/config", []byte("{\"limit\": 20}"), client.AnyVersion)
		must(err, nil)
	}), context.Canceled)

	_, err = announce(ctx, c, "w1", "10.0.0.1", 80)
	must(err, nil)
	watching, stop := context.WithCancel(ctx)
	must(backends(watching, c, func(all []recipes.Instance) {
		for _, i := range all {
			fmt.Printf("backend %s:%d\n", i.Address, *i.Port)
			stop()
		}
	}), context.Canceled)

	other, err := client.Connect(ctx, "127.0.0.1:2181,127.0.0.1:2182,127.0.0.1:2183")
	must(err, nil)
	defer other.Close()
	done := make(chan error)
	for _, c := range []*client.Client{c, other} {
		go func() { done <- round(ctx, c, 2, func(context.Context) error { fmt.Println("round"); return nil }) }()
	}
	must(<-done, nil)
	must(<-done, nil)

	must(recipes.NewQueue(other, "/app/jobs").Put(ctx, []byte("one")), nil)
	working, stop := context.WithCancel(ctx)
	must(worker(working, c, func(data []byte, token int64) error {
		fmt.Println("job", string(data), token > 0)
		return enough
	}), enough)
	stop()
}
`
)
