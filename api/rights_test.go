package api_test

import (
	"os"
	"strings"
	"testing"

	"github.com/zk-lite/zk-lite/internal/wire"
)

// The table of docs/security.md has for every request who may send it.
func TestRights_EveryRequestHasARow(t *testing.T) {
	text, err := os.ReadFile("../docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "### Who may do what")
	table, _, _ = strings.Cut(table, "\n## ")
	for op := wire.OpCode(-11); op <= 200; op++ {
		if op.ClientRequest() && !strings.Contains(table, "`"+op.String()+"`") {
			t.Errorf("%s has no row", op)
		}
	}
	paths, _ := newClient(t, shared().urls[0]).get("/openapi.json").want(200).json["paths"].(map[string]any)
	for path := range paths {
		resource := "/" + strings.Split(path, "/")[1]
		if resource == "/v1" {
			resource = strings.Join(strings.Split(path, "/")[:3], "/")
		}
		if !strings.Contains(table, "`"+resource+"`") && !strings.Contains(table, "`"+resource+"/") {
			t.Errorf("%s, for %s, has no row", resource, path)
		}
	}
}
