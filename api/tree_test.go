package api_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/internal/testkit/seed"
	"github.com/zk-lite/zk-lite/znode"
)

// treeLines are the lines of a subtree. The last must say that it is complete, and how many there are.
func treeLines(t testing.TB, body []byte) (head map[string]any, znodes []map[string]any) {
	t.Helper()
	var all []map[string]any
	for line := range bytes.Lines(body) {
		var x map[string]any
		if err := json.Unmarshal(line, &x); err != nil {
			t.Fatalf("%v in %q", err, line)
		}
		all = append(all, x)
	}
	if len(all) < 3 {
		t.Fatalf("%d lines, want 3 or more: %s", len(all), body)
	}
	head, znodes, end := all[0], all[1:len(all)-1], all[len(all)-1]
	if end["complete"] != true || end["zxid"] != head["zxid"] || end["znodes"] != float64(len(znodes)) {
		t.Fatalf("the last line is %v, want that %d znodes of %v are complete", end, len(znodes), head["zxid"])
	}
	return head, znodes
}

// A subtree has each znode as GET has it, parents first and siblings by name; what the client may not read is named,
// and what is below it is not.
func TestTree(t *testing.T) {
	c := newClient(t, shared().urls[0])
	r := root(t, c)
	dir := strings.TrimPrefix(r, "/v1/znodes")
	ann := c.with(basic("ann:secret"))
	for _, path := range []string{"/b", "/a", "/a/x", "/a-b", "/a/x/y", "/locked?acl=auth::cdrwa", "/locked/open"} {
		ann.post(r+path, "data of "+path).want(201)
	}
	c.put(r+"/b", "\xff").want(200)
	a := c.get(r + "?tree&consistent&consistency=linearizable").want(200)
	head, znodes := treeLines(t, a.body)
	if a.header.Get("Content-Type") != "application/x-ndjson" || a.header.Get("Zk-Zxid") != head["zxid"] ||
		head["znodes"] != 8.0 || head["path"] != dir {
		t.Errorf("headers %v and head %v, want the zxid twice and 8 znodes", a.header, head)
	}
	var paths []string
	for _, z := range znodes {
		path := z["path"].(string)
		paths = append(paths, strings.TrimPrefix(path, dir))
		if path == dir+"/locked" {
			if len(z) != 2 || z["hidden"] != true {
				t.Errorf("a hidden znode is %v, want its path alone", z)
			}
			continue
		}
		for name, want := range c.get("/v1/znodes" + path).want(200).json {
			if got := z[name]; fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("%s: %s is %v, want %v", path, name, got, want)
			}
		}
		if z["type"] != "persistent" || z["acl"] != nil {
			t.Errorf("%s is %v, want persistent, without ACL", path, z)
		}
	}
	if want := []string{"", "/a", "/a/x", "/a/x/y", "/a-b", "/b", "/locked"}; !slices.Equal(paths, want) {
		t.Errorf("the order is %q, want %q", paths, want)
	}
	_, znodes = treeLines(t, ann.get(r+"?tree&acl").want(200).body)
	if acl := fmt.Sprint(znodes[6]["acl"]); len(znodes) != 8 || !strings.Contains(acl, "ann:") {
		t.Errorf("with permission %d znodes, and the ACL %s, want 8, and ann's", len(znodes), acl)
	}
	if a := c.do("HEAD", r+"?tree").want(200); len(a.body) > 0 {
		t.Errorf("HEAD has a body: %s", a.body)
	}
	c.get(r+"/none?tree").problem(404, "NONODE")
	c.get(r+"/locked?tree").problem(401, "NOAUTH")
	for _, with := range []string{"raw", "children", "about", "limit=1"} {
		c.get(r + "?tree&" + with).want(400)
	}
	c.get(r+"?tree=x").problem(400, "BADARGUMENTS").has("parameter", "tree")
	c.get(r+"?consistent").problem(400, "BADARGUMENTS").has("parameter", "consistent")
}

// Every subtree is one state, whether it is read as a whole or frozen: while transactions move amounts between znodes,
// create and delete them, the sum is the same in each.
func TestTree_IsOneState(t *testing.T) {
	for name, others := range map[string]int{"small": 10, "large": 3000} {
		t.Run(name, func(t *testing.T) {
			b := openBank(t, newClient(t, fresh(t, 1).urls[0]), others)
			end := b.trade(t, seed.Rand(t))
			for reads := 0; (reads < 30 || b.moves.Load() < 100) && !t.Failed(); reads++ {
				head, znodes := treeLines(t, b.get(b.root+"?tree").want(200).body)
				sum := 0
				for _, z := range znodes {
					sum += b.account(t, z["path"], z["data"])
				}
				if sum != bankTotal {
					t.Fatalf("read %d, of %v: the sum is %d, want %d", reads, head["zxid"], sum, bankTotal)
				}
			}
			end()
		})
	}
}

// A stream that begins with a listing hands over to the transactions behind it without a gap and without one twice: the
// sum is right after each of them, and at the end the client has what is there. So it is when it is cut off and
// continues, or begins again.
func TestTree_ListAndFollow(t *testing.T) {
	for name, others := range map[string]int{"small": 10, "large": 3000} {
		t.Run(name, func(t *testing.T) {
			r := seed.Rand(t)
			e := fresh(t, 1)
			b := openBank(t, newClient(t, e.urls[0]), others)
			end := b.trade(t, r)
			var have map[string]int
			last := ""
			for range 4 {
				if r.IntN(2) == 0 {
					last = "" // it has forgotten
				}
				have, last = b.follow(t, have, last, 20+r.IntN(40))
			}
			end()
			b.post(b.root+"/end", "").want(201)
			have, _ = b.follow(t, have, last, -1)
			_, znodes := treeLines(t, b.get(b.root+"?tree").want(200).body)
			n := 0
			for _, z := range znodes {
				if b.account(t, z["path"], z["data"]) != have[z["path"].(string)] {
					t.Errorf("the follower has %d for %v", have[z["path"].(string)], z)
				}
				if strings.HasPrefix(z["path"].(string), b.dir+"/w") {
					n++
				}
			}
			if n != len(have) {
				t.Errorf("the follower has %v, and there are %d", have, n)
			}
		})
	}
}

// The listing of a stream obeys its filter by type and needs a stream; a client that continues gets none.
func TestTree_List_Parameters(t *testing.T) {
	c := newClient(t, shared().urls[0])
	r := root(t, c)
	c.post(r+"/persistent", "").want(201)
	c.post(r+"/container?mode=container", "").want(201)
	s := c.stream(feedOf(r) + "?list&types=container")
	want := []string{"znode " + strings.TrimPrefix(r, "/v1/znodes") + "/container", "listed <nil>"}
	if got := s.changes(2); !slices.Equal(got, want) {
		t.Errorf("the listing is %q, want %q", got, want)
	}
	c.get(feedOf(r)+"?list").problem(400, "BADARGUMENTS").has("parameter", "list").contains("text/event-stream")
	stream := c.with("Accept: text/event-stream")
	stream.get(feedOf(r)+"?list&wait=1s").problem(400, "BADARGUMENTS").has("parameter", "wait")
	stream.get(feedOf(r)+"?list=x").problem(400, "BADARGUMENTS").has("parameter", "list")
	stream.get(feedOf(r)+"/none?list").problem(404, "NONODE")
}

// While a client reads nothing of 100,000 znodes, writers change them all, and take no longer; the client still gets
// the state that it has asked for. There is no place for a second one, and afterwards the memory is free, also of
// clients that have gone.
func TestTree_Large_WritersDoNotWait(t *testing.T) {
	const znodes, data = 100_000, 64
	e := fresh(t, 1)
	c := newClient(t, e.urls[0])
	r := root(t, c)
	dir := strings.TrimPrefix(r, "/v1/znodes")
	// HTTP would take some times as long, and the client that reads nothing is cut off after half a minute.
	all := func(op state.Op, text string) {
		t.Helper()
		multi := &state.Command{Op: state.OpMulti}
		for i := range znodes {
			multi.Ops = append(multi.Ops, state.Command{
				Op: op, Path: fmt.Sprintf("%s/%06d", dir, i), Data: bytes.Repeat([]byte(text), data),
				ACL: znode.OpenACL, Version: znode.AnyVersion,
			})
			if len(multi.Ops) < 5000 {
				continue
			}
			if x, err := e.nodes[0].Server().Do(t.Context(), multi); err != nil || x.Code != znode.OK {
				t.Fatalf("a transaction ends with %v, error %v, want success", x.Code, err)
			}
			multi = &state.Command{Op: state.OpMulti}
		}
	}
	all(state.OpCreate, "a")
	before := heap()
	open := func() *http.Response {
		t.Helper()
		resp, err := http.DefaultClient.Do(c.request("GET", r+"?tree", ""))
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("%v, error %v", resp, err)
		}
		return resp
	}
	resp := open()
	defer resp.Body.Close()
	in := bufio.NewReader(resp.Body)
	first, err := in.ReadString('\n')
	if err != nil || !strings.Contains(first, `"znodes":100001`) {
		t.Fatalf("the first line is %q, error %v, want 100001 znodes", first, err)
	}
	all(state.OpSetData, "b")
	during := heap()
	c.get(r+"?tree").problem(429, "THROTTLEDOP").contains("searches and trees")
	c.with("Accept: text/event-stream").get(feedOf(r) + "?list").want(429)
	rest, err := io.ReadAll(in)
	if err != nil {
		t.Fatal(err)
	}
	if _, lines := treeLines(t, slices.Concat([]byte(first), rest)); len(lines) != znodes+1 ||
		bytes.Count(rest, []byte(strings.Repeat("a", data))) != znodes {
		t.Errorf("%d znodes, want %d with the old values", len(lines), znodes+1)
	}
	for range 3 { // clients that go
		eventually(t, "a place for the next", func() bool {
			resp, err := http.DefaultClient.Do(c.request("GET", r+"?tree", ""))
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			return resp.StatusCode == http.StatusOK
		})
	}
	eventually(t, "an end of the last", func() bool { return c.once("GET", r+"?tree").status == 200 })
	all(state.OpSetData, "c") // in place of what the snapshot has kept
	after := heap()
	t.Logf("heap before %d MB, while the client waits %d MB, afterwards %d MB", before>>20, during>>20, after>>20)
	// Old and new values, and a pointer, a number and a copy for each znode, are at most 400 bytes each.
	if during > before+400*znodes+(32<<20) || after > before+(32<<20) {
		t.Errorf("the heap grew from %d to %d and %d bytes, want at most 72 MB, and 32 MB", before, during, after)
	}
}

// heap is how many bytes are in use.
func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
