package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/zklitetest"
)

// A client's session, address and path are found by requests, by bytes and by watches.
func TestTop_Client_IsFound(t *testing.T) {
	e := zklitetest.Start(t)
	c, err := client.Connect(t.Context(), e.ConnectString())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, _, err := c.Create(t.Context(), "/busy", bytes.Repeat([]byte("x"), 1000), client.Persistent); err != nil {
		t.Fatal(err)
	}
	for range 100 {
		if _, _, err := c.Get(t.Context(), "/busy"); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, _, err := c.GetW(t.Context(), "/busy"); err != nil {
		t.Fatal(err)
	}
	for _, by := range []string{"requests", "bytes", "watches"} {
		root := rootCommand()
		var out bytes.Buffer
		root.SetOut(&out)
		root.SetArgs([]string{"top", "--by", by, "-o", "json", "--http", "http://" + e.HTTPAddrs()[0]})
		if err := root.ExecuteContext(t.Context()); err != nil {
			t.Fatal(err)
		}
		found := map[string]bool{}
		for line := range strings.Lines(out.String()) {
			var x struct {
				Kind, Name string
				Share      float64
			}
			if err := json.Unmarshal([]byte(line), &x); err != nil {
				t.Fatal(err)
			}
			found[x.Kind+" "+x.Name] = x.Share > 0.5
		}
		for _, want := range []string{"session " + c.SessionID().String(), "address 127.0.0.1", "path /busy"} {
			if !found[want] {
				t.Errorf("by %s: %s is not most of\n%s", by, want, out.String())
			}
		}
	}
}
