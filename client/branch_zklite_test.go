//go:build !zookeeper

package client_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"strings"
	"sync"
	"testing"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/internal/testkit/seed"
)

// A Branch fills in the results of the list that was carried out, in the client's chroot.
func TestClient_Branch(t *testing.T) {
	servers := startServer(t)
	must(t, connect(t, servers).EnsurePath(t.Context(), "/app", client.Persistent))
	c, ctx := connect(t, servers+"/app"), t.Context()
	_, made, err := c.Create(ctx, "/a", []byte("m"), client.Persistent)
	must(t, err)
	unchanged := []client.Condition{
		{Path: "/a", Of: client.OfMzxid, Is: client.Equal, Number: int64(made.Mzxid)}, {Path: "/a", Of: client.OfData, Is: client.Less, Data: []byte("n")},
		{Path: "/b", Of: client.OfExistence, Is: client.Equal},
	}
	for _, want := range []bool{true, false} {
		then, otherwise := c.Multi(), c.Multi()
		set, created := then.Set("/a", []byte("o"), client.AnyVersion), then.Create("/b", nil, client.Persistent)
		got, names := then.Get("/a"), then.Children("/")
		other := otherwise.Get("/a")
		held, err := c.Branch(ctx, unchanged, then, otherwise)
		must(t, err)
		said := fmt.Sprint(set.Stat.Version, created.Path, string(got.Data), got.Stat.Version, names.Children, string(other.Data))
		if wantSaid := map[bool]string{true: "1/bo1 [a b]", false: "00 []o"}[want]; held != want || said != wantSaid {
			t.Errorf("held %v, %q, want %v, %q", held, said, want, wantSaid)
		}
	}
	if held, err := c.Branch(ctx, nil, nil, nil); !held || err != nil {
		t.Errorf("without conditions: %v, %v, want true", held, err)
	}
	fails := c.Multi()
	fails.Get("/a")
	fails.Delete("/none", -1)
	var failed *client.MultiError
	if held, err := c.Branch(ctx, unchanged[2:], nil, fails); held || !errors.As(err, &failed) || failed.Index != 1 || failed.Path != "/none" {
		t.Errorf("held %v, error %v, want one about operation 1", held, err)
	}
	if held, err := c.Branch(ctx, nil, fails, nil); !held || !errors.As(err, &failed) {
		t.Errorf("held %v, error %v, want one about an operation of the first list", held, err)
	}
	reads := c.Multi()
	reads.Get("/a")
	wantErr(t, reads.Commit(ctx), client.ErrBadArguments)
	_, err = c.Branch(ctx, []client.Condition{{Path: "a", Of: client.OfVersion, Is: client.Equal}}, nil, nil)
	wantErr(t, err, client.ErrBadArguments)
	_, err = c.SetACL(ctx, "/a", []client.ACL{{Perms: client.PermWrite, ID: client.ID{Scheme: "world", ID: "anyone"}}}, -1)
	must(t, err)
	_, err = c.Branch(ctx, unchanged[:1], nil, nil)
	wantErr(t, err, client.ErrNoAuth)
}

// The reads of a transaction see its own changes, which happen all or not at all.
func TestClient_Transact_SeesItsOwnChanges(t *testing.T) {
	c, ctx := connect(t, startServer(t)), t.Context()
	must(t, c.EnsurePath(ctx, "/d/old", client.Persistent))
	boom := errors.New("boom")
	for _, want := range []error{boom, nil} {
		err := c.Transact(ctx, func(tx *client.Tx) error {
			var said []string
			say := func(path string) {
				data, err := tx.Get(ctx, path)
				exists, _ := tx.Exists(ctx, path)
				names, listed := tx.Children(ctx, path)
				if exists == errors.Is(err, client.ErrNoNode) || exists == errors.Is(listed, client.ErrNoNode) {
					t.Errorf("%s exists: %v, but get and children: %v, %v", path, exists, err, listed)
				}
				said = append(said, fmt.Sprintf("%s %v %q %v", path, exists, data, names))
			}
			say("/d")
			say("/n")
			tx.Create("/n", []byte("1"), client.Persistent)
			tx.Create("/n/c", nil, client.Persistent)
			tx.Create("/d/new", nil, client.Persistent)
			tx.Delete("/d/old")
			tx.Set("/d", []byte("2"))
			tx.Set("/n", []byte("3"))
			say("/d")
			say("/n")
			say("/d/old")
			all := `/d true "" [old]; /n false "" []; /d true "2" [new]; /n true "3" [c]; /d/old false "" []`
			if got := strings.Join(said, "; "); got != all {
				t.Errorf("got %s, want %s", got, all)
			}
			return want
		})
		if !errors.Is(err, want) {
			t.Fatalf("error %v, want %v", err, want)
		}
		data, _, err := c.Get(ctx, "/n")
		if want != nil {
			wantErr(t, err, client.ErrNoNode)
		} else if names, _, _ := c.Children(ctx, "/d"); string(data) != "3" || fmt.Sprint(names) != "[new]" {
			t.Errorf("/n has %q, /d has %v", data, names)
		}
	}
	var failed *client.MultiError
	err := c.Transact(ctx, func(tx *client.Tx) error { tx.Set("/n", nil); tx.Delete("/none"); return nil })
	if !errors.As(err, &failed) || failed.Index != 1 || !errors.Is(err, client.ErrNoNode) {
		t.Errorf("a change of a znode that does not exist: %v", err)
	}
	err = c.Transact(ctx, func(tx *client.Tx) error { tx.Create("/s-", nil, client.PersistentSequential); return nil })
	wantErr(t, err, client.ErrBadArguments)
	must(t, c.Transact(ctx, func(*client.Tx) error { return nil }))
}

// A run whose reads another client has overtaken does not see two states: the read that would be of another state fails,
// and the function runs again; so it does if the conflict comes later. One that never ends in time ends with ctx.
func TestClient_Transact_Conflicts(t *testing.T) {
	servers := startServer(t)
	c, other, ctx := connect(t, servers), connect(t, servers), t.Context()
	for _, path := range []string{"/a", "/b"} {
		_, _, err := c.Create(ctx, path, []byte("0"), client.Persistent)
		must(t, err)
	}
	change := map[string]func() error{
		"set": func() error { _, err := other.Set(ctx, "/a", []byte("1"), -1); return err },
		"again": func() error {
			return errors.Join(other.Delete(ctx, "/a", -1), other.EnsurePath(ctx, "/a", client.Persistent))
		},
		"create": func() error { return other.EnsurePath(ctx, "/a/child", client.Persistent) },
		"delete": func() error { return other.Delete(ctx, "/a/child", -1) },
	}
	for _, name := range []string{"set", "again", "create", "delete"} {
		for _, second := range []string{"/b", "/none", "at the end", "an error"} {
			if name == "create" && second != "/b" {
				must(t, other.Delete(ctx, "/a/child", -1))
			}
			if name == "delete" && second != "/b" {
				must(t, other.EnsurePath(ctx, "/a/child", client.Persistent))
			}
			runs := 0
			err := c.Transact(ctx, func(tx *client.Tx) error {
				runs++
				var err error
				if name == "set" || name == "again" {
					_, err = tx.Get(ctx, "/a")
				} else {
					_, err = tx.Children(ctx, "/a")
				}
				must(t, err)
				if runs == 1 {
					must(t, change[name]())
					if _, err := other.Set(ctx, "/b", []byte(name), -1); err != nil {
						t.Fatal(err)
					}
				}
				switch {
				case second == "at the end":
					tx.Set("/b", []byte("mine"))
					return nil
				case second == "an error" && runs == 1:
					return errors.New("of an old state")
				case second == "an error":
					return nil
				}
				_, err = tx.Exists(ctx, second)
				if runs == 1 {
					wantErr(t, err, client.ErrConflict)
				}
				return err
			})
			if err != nil || runs != 2 {
				t.Errorf("%s, and %s: %d runs, error %v, want 2 and none", name, second, runs, err)
			}
		}
	}
	short, cancel := context.WithCancel(ctx)
	runs := 0
	err := c.Transact(short, func(tx *client.Tx) error {
		_, err := tx.Get(ctx, "/a")
		must(t, err)
		must(t, change["set"]())
		if runs++; runs == 5 {
			cancel()
		}
		tx.Set("/b", nil)
		return nil
	})
	if !errors.Is(err, context.Canceled) || runs != 5 {
		t.Errorf("after %d runs error %v, want %v after 5", runs, err, context.Canceled)
	}
}

// Clients that transfer at random between accounts, at different servers, never lose or find money, and no run of a
// transaction sees another sum.
func TestClient_Transact_Transfers(t *testing.T) {
	const accounts, each, clients = 4, 100, 3
	rnd := seed.Of(t)
	servers := startServer(t)
	ctx := t.Context()
	path := func(i int) string { return fmt.Sprint("/", i) }
	first := connect(t, servers)
	for i := range accounts {
		_, _, err := first.Create(ctx, path(i), []byte("100"), client.Persistent)
		must(t, err)
	}
	sum := func(tx *client.Tx) (all [accounts]int, err error) {
		total := 0
		for i := range all {
			data, err := tx.Get(ctx, path(i))
			if err != nil {
				return all, err
			}
			_, _ = fmt.Sscan(string(data), &all[i])
			total += all[i]
		}
		if total != accounts*100 {
			t.Errorf("a transaction sees %v, which is %d in all, want %d", all, total, accounts*100)
		}
		return all, nil
	}
	var running sync.WaitGroup
	for n := range clients {
		c := connect(t, servers)
		running.Go(func() {
			for k := range each {
				from := int(rnd+uint64(n+k)) % accounts
				to := (from + 1 + k%(accounts-1)) % accounts
				if err := c.Transact(ctx, func(tx *client.Tx) error {
					all, err := sum(tx)
					if err != nil {
						return err
					}
					tx.Set(path(from), fmt.Append(nil, all[from]-k))
					tx.Set(path(to), fmt.Append(nil, all[to]+k))
					return nil
				}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	running.Wait()
	must(t, first.Transact(ctx, func(tx *client.Tx) error { _, err := sum(tx); return err }))
}

func ExampleClient_Transact() {
	ctx, cancel := exampleContext()
	defer cancel()
	c, err := client.Connect(ctx, servers())
	if err != nil {
		log.Panic(err)
	}
	defer c.Close()

	// The owner of a task changes only if the new one has room. Others may change both at the same time.
	give := func(task, to string) error {
		return c.Transact(ctx, func(tx *client.Tx) error {
			tasks, err := tx.Children(ctx, to)
			if err != nil {
				return err
			}
			if len(tasks) >= 2 {
				return errors.New(to + " has no room")
			}
			tx.Delete("/waiting/" + task)
			tx.Create(to+"/"+task, nil, client.Persistent)
			return nil
		})
	}
	for _, path := range []string{"/ann", "/waiting/1", "/waiting/2", "/waiting/3"} {
		if err := c.EnsurePath(ctx, path, client.Persistent); err != nil {
			log.Panic(err)
		}
	}
	fmt.Println(give("1", "/ann"), give("2", "/ann"), give("3", "/ann"))
	// Output:
	// <nil> <nil> /ann has no room
}
