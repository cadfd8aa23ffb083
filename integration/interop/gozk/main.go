// Command gozk checks a zk-lite ensemble with the client github.com/go-zookeeper/zk. It is a
// module of its own, so that zk-lite does not depend on that client. The argument is the
// connect string; the output is described at the type message in integration/cluster. With the
// arguments "queue", the connect string and a path it queues for a lock.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"
)

const (
	patience = 30 * time.Second // for events that should happen soon
	session  = 10 * time.Second // longer than an election on a busy machine
)

var open = zk.WorldACL(zk.PermAll)

func (s *suite) operations() {
	c := s.connect()
	defer c.Close()
	equal(must(c.Create("/ops", []byte("x"), 0, open)), "/ops")
	equal(must(c.Create("/ops/e", nil, zk.FlagEphemeral, open)), "/ops/e")
	equal(must(c.Create("/ops/s-", nil, zk.FlagSequence, open)), "/ops/s-0000000001")
	equal(must(c.Create("/ops/es-", nil, zk.FlagEphemeral|zk.FlagSequence, open)), "/ops/es-0000000002")
	equal(must(c.Create("/ops/c", nil, 0, open)), "/ops/c")
	equal(must(c.Create("/ops/t", nil, 0, open)), "/ops/t")
	protected := must(c.CreateProtectedEphemeralSequential("/ops/p-", nil, open))
	equal(strings.HasPrefix(protected, "/ops/_c_") && strings.HasSuffix(protected, "p-0000000005"), true)
	_, err := c.Create("/ops", nil, 0, open)
	fails(err, zk.ErrNodeExists)
	_, err = c.Create("/none/x", nil, 0, open)
	fails(err, zk.ErrNoNode)
	_, err = c.Create("/ops/e/x", nil, 0, open)
	fails(err, zk.ErrNoChildrenForEphemerals)
	_, err = c.Create("/ops/acl", nil, 0, []zk.ACL{{Perms: 1, Scheme: "what", ID: "x"}})
	fails(err, zk.ErrInvalidACL)
	stat := must(c.Set("/ops", []byte("yy"), 0))
	equal([]int32{stat.Version, stat.DataLength, stat.NumChildren}, []int32{1, 2, 6})
	_, err = c.Set("/ops", nil, 0)
	fails(err, zk.ErrBadVersion)
	data, got, err := c.Get("/ops")
	ok(err)
	equal(string(data), "yy")
	equal(got, stat)
	_, _, err = c.Get("/none")
	fails(err, zk.ErrNoNode)
	there, got, err := c.Exists("/ops/e")
	ok(err)
	equal([]any{there, got.EphemeralOwner}, []any{true, c.SessionID()})
	there, _, err = c.Exists("/none")
	equal([]any{there, err}, []any{false, nil})
	names, _, err := c.Children("/ops")
	ok(err)
	equal(len(names), 6)
	fails(c.Delete("/ops", -1), zk.ErrNotEmpty)
	fails(c.Delete("/ops/t", 5), zk.ErrBadVersion)
	fails(c.Delete("/none", -1), zk.ErrNoNode)
	ok(c.Delete("/ops/t", 0))
	equal(must(c.Sync("/ops")), "/ops")
	large := strings.Repeat("x", 1_000_000)
	must(c.Set("/ops", []byte(large), -1))
	equal(text(c.Get("/ops")) == large, true)
	_, err = c.IncrementalReconfig(nil, []string{"1"}, -1)
	fails(err, zk.ErrReconfigDisabled)
	_, err = c.Set("/ops", make([]byte, 1_200_000), -1)
	fails(err, zk.ErrBadArguments)
	equal(text(c.Get("/ops")) == large, true)
}

// kinds are what the client has since it left github.com/samuel/go-zookeeper. Its early versions had no name for the
// flags 4 and 5.
type kinds interface {
	CreateContainer(path string, data []byte, flags int32, acl []zk.ACL) (string, error)
	CreateTTL(path string, data []byte, flags int32, acl []zk.ACL, ttl time.Duration) (string, error)
}

func (s *suite) newKinds() {
	c := s.connect()
	defer c.Close()
	k, has := any(c.Conn).(kinds)
	if !has {
		panic(absent("CreateContainer and CreateTTL"))
	}
	equal(must(k.CreateContainer("/container", nil, 4, open)), "/container")
	equal(must(k.CreateTTL("/ttl", nil, 5, open, time.Hour)), "/ttl")
}

// persistentWatches finds out whether the client has come to know them.
func (s *suite) persistentWatches() {
	if _, has := reflect.TypeFor[*zk.Conn]().MethodByName("AddWatch"); !has {
		panic(absent("AddWatch"))
	}
	failf("the client has AddWatch, and it is not tried here")
}

func (s *suite) acls() {
	c, other := s.connect(), s.connect()
	defer c.Close()
	defer other.Close()
	ok(c.AddAuth("digest", []byte("user:secret")))
	own := zk.AuthACL(zk.PermAll)
	if os.Getenv(tlsVariable) != "" { // the certificate, which the other client has too, is another identity
		must(c.Create("/x509", nil, 0, own))
		acl, _, err := c.GetACL("/x509")
		ok(err)
		equal(acl[0], zk.ACL{Perms: zk.PermAll, Scheme: "x509", ID: "CN=client"})
		own = zk.DigestACL(zk.PermAll, "user", "secret")
	}
	must(c.Create("/acl", []byte("mine"), 0, own))
	acl, _, err := c.GetACL("/acl")
	ok(err)
	equal(acl, zk.DigestACL(zk.PermAll, "user", "secret"))
	other.sync() // its server may not have heard of the znode yet
	_, _, err = other.Get("/acl")
	fails(err, zk.ErrNoAuth)
	ok(other.AddAuth("digest", []byte("user:wrong")))
	_, _, err = other.Get("/acl")
	fails(err, zk.ErrNoAuth)
	stat := must(c.SetACL("/acl", append(acl, zk.WorldACL(zk.PermRead)...), 0))
	equal(stat.Aversion, int32(1))
	_, err = c.SetACL("/acl", open, 0)
	fails(err, zk.ErrBadVersion)
	other.sync()
	equal(text(other.Get("/acl")), "mine")
	_, err = other.Set("/acl", nil, -1)
	fails(err, zk.ErrNoAuth)
	ok(other.AddAuth("digest", []byte("user:secret")))
	must(other.Set("/acl", nil, -1))
}

func (s *suite) multi() {
	c := s.connect()
	defer c.Close()
	results := must(c.Multi(&zk.CreateRequest{Path: "/multi", Data: []byte("m"), Acl: open},
		&zk.CreateRequest{Path: "/multi/s-", Acl: open, Flags: zk.FlagSequence},
		&zk.SetDataRequest{Path: "/multi", Data: []byte("n"), Version: 0},
		&zk.CheckVersionRequest{Path: "/multi", Version: 1},
		&zk.DeleteRequest{Path: "/multi/s-0000000000", Version: -1}))
	equal([]any{results[0].String, results[1].String, results[2].Stat.Version},
		[]any{"/multi", "/multi/s-0000000000", int32(1)})
	results, err := c.Multi(&zk.CreateRequest{Path: "/multi/never", Acl: open},
		&zk.CheckVersionRequest{Path: "/multi", Version: 7})
	fails(err, zk.ErrBadVersion)
	equal(len(results), 2)
	there, _, err := c.Exists("/multi/never")
	equal([]any{there, err}, []any{false, nil})
}

func (s *suite) watches() {
	c, other := s.connect(), s.connect(s.hosts[1])
	defer c.Close()
	must(c.Create("/watch", nil, 0, open))
	_, _, data, err := c.GetW("/watch")
	ok(err)
	_, _, children, err := c.ChildrenW("/watch")
	ok(err)
	_, _, there, err := c.ExistsW("/watch")
	ok(err)
	_, _, missing, err := c.ExistsW("/watch/e")
	ok(err)
	other.sync()
	must(other.Set("/watch", []byte("1"), -1))
	must(other.Create("/watch/e", nil, zk.FlagEphemeral, open))
	event(data, zk.EventNodeDataChanged, "/watch")
	event(there, zk.EventNodeDataChanged, "/watch")
	event(children, zk.EventNodeChildrenChanged, "/watch")
	event(missing, zk.EventNodeCreated, "/watch/e")
	c.sync()
	_, _, data, err = c.GetW("/watch/e")
	ok(err)
	_, _, children, err = c.ChildrenW("/watch")
	ok(err)
	other.Close() // and with it, its ephemeral
	event(data, zk.EventNodeDeleted, "/watch/e")
	event(children, zk.EventNodeChildrenChanged, "/watch")
}

func (s *suite) pipeline() {
	c := s.connect()
	defer c.Close()
	must(c.Create("/count", []byte("0"), 0, open))
	var all sync.WaitGroup
	var failed atomic.Value
	for i := range 20 {
		all.Go(func() {
			for range 10 {
				path, err := c.Create("/count/n-", nil, zk.FlagSequence|zk.FlagEphemeral*int32(i%2), open)
				if err == nil {
					_, err = c.Set(path, []byte("x"), 0)
				}
				if err != nil {
					failed.Store(err)
				}
			}
		})
	}
	all.Wait()
	equal(failed.Load(), nil)
	names, stat, err := c.Children("/count")
	ok(err)
	slices.SortFunc(names, func(a, b string) int { return strings.Compare(a, b) })
	equal([]any{len(names), names[0], names[199], stat.Cversion},
		[]any{200, "n-0000000000", "n-0000000199", int32(200)})
}

// locks has clients of different servers add to a znode under the lock recipe; no addition may
// be lost.
func (s *suite) locks() {
	c := s.connect()
	defer c.Close()
	must(c.Create("/locked", []byte("0"), 0, open))
	var all sync.WaitGroup
	var failed atomic.Value
	for i := range 3 {
		k := s.connect(s.hosts[i])
		defer k.Close()
		all.Go(func() {
			lock := zk.NewLock(k.Conn, "/lock", open)
			for range 10 {
				if err := add(k, lock); err != nil {
					failed.Store(err)
				}
			}
		})
	}
	all.Wait()
	equal(failed.Load(), nil)
	c.sync()
	equal(text(c.Get("/locked")), "30")
	lock := zk.NewLock(c.Conn, "/lock", open)
	fails(lock.Unlock(), zk.ErrNotLocked)
	ok(lock.Lock())
	fails(lock.Lock(), zk.ErrDeadlock)
	ok(lock.Unlock())
}

func add(k *client, lock *zk.Lock) error {
	if err := lock.Lock(); err != nil {
		return err
	}
	if _, err := k.Sync("/locked"); err != nil {
		return err
	}
	data, stat, err := k.Get("/locked")
	if err != nil {
		return err
	}
	var n int
	if _, err := fmt.Sscan(string(data), &n); err != nil {
		return err
	}
	if _, err := k.Set("/locked", fmt.Append(nil, n+1), stat.Version); err != nil {
		return err
	}
	return lock.Unlock()
}

// moves kills the server of a client, each of the three in turn.
func (s *suite) moves() {
	for i := range 3 {
		root := fmt.Sprintf("/move-%d", i)
		c, other := s.connect(), s.connect()
		ok(c.AddAuth("digest", []byte("user:secret")))
		must(c.Create(root, nil, 0, open))
		must(c.Create(root+"/mine", []byte("x"), zk.FlagEphemeral, zk.AuthACL(zk.PermAll)))
		_, _, data, err := c.GetW(root)
		ok(err)
		_, _, children, err := c.ChildrenW(root)
		ok(err)
		_, _, missing, err := c.ExistsW(root + "/missing")
		ok(err)
		id, server := c.SessionID(), c.Server()
		disturbed := other.Server() == server
		for len(c.events) > 0 {
			<-c.events
		}
		s.ask(map[string]any{"kill": server})
		c.await(zk.StateDisconnected)
		c.await(zk.StateHasSession)
		equal(c.SessionID(), id)
		equal(c.Server() != server, true)
		equal(text(c.Get(root+"/mine")), "x") // the credentials moved, too
		if disturbed {
			// It may not have noticed yet.
			other.await(zk.StateDisconnected)
			other.await(zk.StateHasSession)
		}
		other.sync()
		must(other.Set(root, nil, -1))
		must(other.Create(root+"/missing", nil, 0, open))
		event(data, zk.EventNodeDataChanged, root)
		event(children, zk.EventNodeChildrenChanged, root)
		event(missing, zk.EventNodeCreated, root+"/missing")
		c.Close()
		other.sync()
		there, _, err := other.Exists(root + "/mine")
		equal([]any{there, err}, []any{false, nil})
		other.Close()
		s.ask(map[string]any{"heal": true})
	}
}

// words reads the answers that this client parses. It leaves out cons: it does not take the
// line of a connection without a session, of ZooKeeper neither.
func (s *suite) words() {
	equal(zk.FLWRuok(s.hosts, patience), []bool{true, true, true})
	stats, all := zk.FLWSrvr(s.hosts, patience)
	leaders := 0
	for _, x := range stats {
		ok(x.Error)
		if x.Mode == zk.ModeLeader {
			leaders++
		}
	}
	equal([]any{all, leaders}, []any{true, 1})
}

// result runs a check and returns the text of its failure.
func result(check func()) (detail string, lacks bool) {
	defer func() {
		switch x := recover().(type) {
		case nil:
		case failure:
			detail = string(x)
		case absent:
			detail, lacks = string(x), true
		default:
			panic(x)
		}
	}()
	check()
	return "", false
}

func main() {
	if len(os.Args) == 4 && os.Args[1] == "queue" {
		if err := queue(os.Args[2], os.Args[3]); err != nil {
			log.Fatal(err)
		}
		return
	}
	s := &suite{hosts: strings.Split(os.Args[1], ","), in: bufio.NewReader(os.Stdin),
		out: json.NewEncoder(os.Stdout)}
	checks := []struct {
		name  string
		check func()
	}{
		{"operations", s.operations}, {"ACLs and auth", s.acls}, {"multi", s.multi},
		{"watches", s.watches}, {"concurrent requests", s.pipeline}, {"recipe: lock", s.locks},
		{"a session moves when its server dies", s.moves}, {"four-letter words", s.words},
		{"containers and TTL", s.newKinds}, {"persistent watches", s.persistentWatches},
	}
	for _, c := range checks {
		detail, lacks := result(c.check)
		s.say(map[string]any{"check": c.name, "ok": detail == "", "absent": lacks, "detail": detail})
	}
	s.say(map[string]any{"end": len(checks)})
}
