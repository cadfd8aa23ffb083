package api_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// Administrators see the largest subtrees by each measure, also below a znode with more children than are looked at
// together.
func TestTop_Subtrees(t *testing.T) {
	e := shared()
	admin := operator(t, e.urls[0])
	c := newClient(t, admin.url)
	r := root(t, c)
	top := strings.TrimPrefix(r, "/v1/znodes")
	create := func(format string, n int, data string) {
		t.Helper()
		var ops []string
		for i := range n {
			ops = append(ops, fmt.Sprintf(`{"op":"create","path":"%s/%s","data":"%s"}`, top, fmt.Sprintf(format, i), data))
		}
		c.post("/v1/multi", `{"ops":[`+strings.Join(ops, ",")+"]}").want(200)
	}
	c.post(r+"/wide", "").want(201)
	create("wide/%d", 9000, "")
	c.post(r+"/deep", "").want(201)
	c.post(r+"/deep/er", strings.Repeat("x", 1000)).want(201)
	create("deep/er/%d", 20, strings.Repeat("y", 100))
	c.post(r+"/wide/4321/last", strings.Repeat("z", 500)).want(201)

	zk := connectTo(t, fmt.Sprintf("127.0.0.1:%d", e.settings[0].ClientPort))
	for i := range 30 {
		if _, _, _, err := zk.ExistsW(t.Context(), fmt.Sprintf("%s/missing/%d", top, i)); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, _, err := zk.ExistsW(t.Context(), top+"/wide/7"); err != nil {
		t.Fatal(err)
	}

	list := func(query string) (rows []string) {
		t.Helper()
		a := admin.get("/v1/subtrees" + top + "?" + query).want(200)
		if a.json["left_out"] != nil || a.json["missed"] != nil {
			t.Errorf("something is left out: %s", a.body)
		}
		for _, x := range a.field("subtrees").([]any) {
			s := x.(map[string]any)
			rows = append(rows, fmt.Sprint(strings.TrimPrefix(s["path"].(string), top), " ",
				s["znodes"], " ", s["bytes"], " ", s["watches"]))
		}
		return rows
	}
	for query, want := range map[string][]string{
		"limit=4": {" 9025 3500 31", "/wide 9002 500 1", "/deep 22 3000 0", "/deep/er 21 3000 0"},
		"by=bytes&limit=6": {" 9025 3500 31", "/deep 22 3000 0", "/deep/er 21 3000 0", "/wide 9002 500 1",
			"/wide/4321 2 500 0", "/wide/4321/last 1 500 0"},
		"by=watches&limit=4": {" 9025 3500 31", "/missing 0 0 30", "/missing/0 0 0 1", "/missing/1 0 0 1"},
		"limit=1":            {" 9025 3500 31"},
	} {
		if got := list(query); !slices.Equal(got, want) {
			t.Errorf("%s:\n got %q\nwant %q", query, got, want)
		}
	}
	if rows := list("limit=100"); len(rows) != 100 || rows[4] != "/wide/4321 2 500 0" {
		t.Errorf("a hundred: %d, the fifth %q", len(rows), rows[4])
	}
	if x := admin.get("/v1/subtrees/?limit=1").want(200).field("subtrees.0").(map[string]any); x["path"] != "/" ||
		x["znodes"].(float64) < 9025 {
		t.Errorf("the whole tree is %v", x)
	}
	c.get("/v1/subtrees"+top).problem(401, "NOAUTH")
	admin.get("/v1/subtrees"+top+"/none").problem(404, "NONODE")
	admin.get("/v1/subtrees"+top+"?by=requests").problem(400, "BADARGUMENTS").has("parameter", "by")
	admin.get("/v1/subtrees"+top+"?limit=101").problem(400, "BADARGUMENTS").has("parameter", "limit")
}
