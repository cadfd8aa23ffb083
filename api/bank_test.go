package api_test

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// bank is znodes with numbers whose sum no transaction changes: each moves an amount, and may create or delete one.
type bank struct {
	*client
	root, dir string
	moves     atomic.Int64
}

const bankTotal = 4 * 1000 // of four writers

// openBank creates a bank with so many other znodes.
func openBank(t *testing.T, c *client, others int) *bank {
	b := &bank{client: c, root: root(t, c)}
	b.dir = strings.TrimPrefix(b.root, "/v1/znodes")
	var ops []string
	for i := range others {
		ops = append(ops, fmt.Sprintf(`{"op":"create","path":"%s/other%05d"}`, b.dir, i))
	}
	for part := range slices.Chunk(ops, 5000) {
		c.transaction(part)
	}
	return b
}

// trade makes transactions until the returned function is called.
func (b *bank) trade(t *testing.T, r *rand.Rand) (end func()) {
	var ended atomic.Bool
	var writers sync.WaitGroup
	for i := range 4 {
		r := rand.New(rand.NewPCG(r.Uint64(), 0))
		have := map[string]int{fmt.Sprintf("%s/w%d", b.dir, i): bankTotal / 4}
		for path, amount := range have {
			b.post("/v1/znodes"+path, fmt.Sprint(amount)).want(201)
		}
		writers.Go(func() {
			for !ended.Load() && t.Context().Err() == nil {
				b.move(r, have, fmt.Sprintf("%s/w%d", b.dir, i))
			}
		})
	}
	end = sync.OnceFunc(func() { ended.Store(true); writers.Wait() })
	t.Cleanup(end)
	return end
}

// move makes one transaction of a writer, whose first znode stays.
func (b *bank) move(r *rand.Rand, have map[string]int, first string) {
	var ops []string
	op := func(verb, path string) {
		ops = append(ops, fmt.Sprintf(`{"op":%q,"path":%q,"data":"%d"}`, verb, path, have[path]))
	}
	other := fmt.Sprintf("%s-%d", first, r.IntN(8))
	amount, there := have[other]
	switch {
	case !there:
		amount = r.IntN(have[first] + 1)
		have[first], have[other] = have[first]-amount, amount
		op("set", first)
		op("create", other)
	case r.IntN(3) == 0:
		have[first] += amount
		delete(have, other)
		op("set", first)
		ops = append(ops, fmt.Sprintf(`{"op":"delete","path":%q}`, other))
	default:
		part := r.IntN(amount + 1)
		have[first], have[other] = have[first]+part, amount-part
		op("set", first)
		op("set", other)
	}
	b.transaction(ops)
	b.moves.Add(1)
}

// transaction makes a transaction, and does not compare the answer with the document, which takes longer than all else.
func (c *client) transaction(ops []string) {
	c.Helper()
	resp, err := http.DefaultClient.Do(c.request("POST", "/v1/multi", `{"ops":[`+strings.Join(ops, ",")+"]}"))
	if err != nil {
		c.Fatal(err)
	}
	defer resp.Body.Close()
	if text, err := io.ReadAll(resp.Body); err != nil || resp.StatusCode != http.StatusOK {
		c.Fatalf("%s %s, error %v, want 200", resp.Status, text, err)
	}
}

// account adds a znode's number to the sums.
func (b *bank) account(t testing.TB, path, data any) int {
	t.Helper()
	if !strings.HasPrefix(path.(string), b.dir+"/w") {
		return 0
	}
	n, err := strconv.Atoi(data.(string))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// follow reads a stream from the event with the id last, or with a listing if there is none, for so many transactions,
// or, with -1, until /end is there.
func (b *bank) follow(t *testing.T, have map[string]int, last string, transactions int) (map[string]int, string) {
	t.Helper()
	c, listed := b.client, last != ""
	if listed {
		c = c.with("Last-Event-ID: " + last)
	} else {
		have = map[string]int{}
	}
	s := c.stream(feedOf(b.root) + "?list")
	defer s.close()
	for {
		e, err := s.next()
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case e.name == "znode":
			if listed || e.id != "" {
				t.Fatalf("a znode of a listing after its end, or with an id: %+v", e)
			}
			if path := e.json["path"].(string); strings.HasPrefix(path, b.dir+"/w") {
				have[path] = b.account(t, path, e.json["data"])
			}
			continue
		case e.name == "listed":
			listed = true
		case e.name == "transaction":
			for _, x := range e.json["changes"].([]any) {
				change := x.(map[string]any)
				path := change["path"].(string)
				_, there := have[path]
				switch kind := change["event"]; {
				case transactions < 0 && path == b.dir+"/end":
					return have, e.id
				case (kind == "created") == there:
					t.Fatalf("%v %s, of which the follower has: %v", kind, path, there)
				case kind == "deleted":
					delete(have, path)
				default:
					have[path] = b.account(t, path, change["data"])
				}
			}
			transactions--
		}
		sum := 0
		for _, n := range have {
			sum += n
		}
		if !listed || sum != bankTotal {
			t.Fatalf("after %s %s: listed %v, and the sum is %d, want %d", e.name, e.data, listed, sum, bankTotal)
		}
		if last = e.id; transactions == 0 {
			return have, last
		}
	}
}
