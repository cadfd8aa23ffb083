//go:build soak

package soak_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/integration/cluster"
	"github.com/zk-lite/zk-lite/internal/testkit/network"
	"github.com/zk-lite/zk-lite/internal/testkit/wait"
)

// nemesis breaks an ensemble, one fault after the other.
type nemesis struct {
	t       *testing.T
	e       *cluster.Ensemble
	network *network.Network // nil: none, and no disks that fail
	rng     *rand.Rand
}

// fault is a way to break something. It ends when everything is as before, or will be by itself.
type fault struct {
	name  string
	needs bool // a network, or disks, of the test's own
	do    func(n *nemesis)
}

func faults() []fault {
	all := append(processFaults(), diskFaults()...)
	return append(all, networkFaults()...)
}

func processFaults() []fault {
	return []fault{
		{"kill -9 of a server", false, func(n *nemesis) { n.kill(n.any()) }},
		{"kill -9 of the leader", false, func(n *nemesis) { n.kill(n.e.Leader()) }},
		{"kill -9 of all", false, func(n *nemesis) { n.e.KillAll(); n.last(0, 1000); n.e.StartAll() }},
		{"kill -9 of two, one after the other", false, (*nemesis).killTwo},
		{"pause of a server", false, func(n *nemesis) { n.still(n.any()) }},
		{"pause of the leader", false, func(n *nemesis) { n.still(n.e.Leader()) }},
		{"rolling restart", false, (*nemesis).rolling},
		{"torn record", false, (*nemesis).torn},
		{"flipped byte in the log", false, (*nemesis).flipped},
		{"flipped byte in a snapshot", false, (*nemesis).flippedSnapshot},
		{"wiped disk, replaced member", false, (*nemesis).wiped},
		{"leadership transferred", false, (*nemesis).transfer},
	}
}

func networkFaults() (all []fault) {
	cut := network.Link{Cut: true}
	// a is one of the followers, at random.
	add := func(name string, do func(n *nemesis, w *network.Network, leader, a int, followers []int)) {
		all = append(all, fault{name, true, func(n *nemesis) {
			leader := n.e.Leader().ID
			followers := n.rng.Perm(len(n.e.Servers()))
			for i := range followers {
				followers[i]++
			}
			followers = slices.DeleteFunc(followers, func(id int) bool { return id == leader })
			do(n, n.network, leader, followers[0], followers)
			n.last(500, 4000)
			n.network.Heal()
		}})
	}
	type net = *network.Network
	add("leader cut off", func(_ *nemesis, w net, leader, _ int, _ []int) { w.Isolate(leader) })
	add("follower cut off", func(_ *nemesis, w net, _, a int, _ []int) { w.Isolate(a) })
	add("all cut off from each other", func(_ *nemesis, w net, _, _ int, _ []int) {
		w.SetServers(cut)
	})
	add("two sides, the leader with the fewer", func(_ *nemesis, w net, leader, _ int, followers []int) {
		few := len(followers)/2 - 1
		for _, id := range append(followers[:few:few], leader) {
			for _, other := range followers[few:] {
				w.SetBoth(id, other, cut)
			}
		}
	})
	add("one-way: the leader is not heard", func(_ *nemesis, w net, leader, _ int, followers []int) {
		for _, id := range followers {
			w.Set(leader, id, cut)
		}
	})
	add("one-way: the leader does not hear", func(_ *nemesis, w net, leader, _ int, followers []int) {
		for _, id := range followers {
			w.Set(id, leader, cut)
		}
	})
	add("leader and follower apart", func(_ *nemesis, w net, leader, a int, _ []int) {
		w.SetBoth(leader, a, cut)
	})
	add("slow network", func(n *nemesis, w net, _, _ int, _ []int) {
		w.SetServers(network.Link{Delay: time.Duration(5+n.rng.IntN(60)) * time.Millisecond,
			Jitter: time.Duration(1+n.rng.IntN(40)) * time.Millisecond})
	})
	add("lossy network", func(n *nemesis, w net, _, _ int, _ []int) {
		w.SetServers(network.Link{Loss: n.rng.Float64() / 10, Duplicate: n.rng.Float64() / 10})
	})
	add("clients cut off from a server", func(_ *nemesis, w net, _, a int, _ []int) {
		w.SetBoth(network.Host, a, cut)
	})
	add("answers of a server lost", func(_ *nemesis, w net, leader, _ int, _ []int) {
		w.Set(leader, network.Host, cut)
	})
	return all
}

// last waits between two numbers of milliseconds.
func (n *nemesis) last(least, most int) {
	d := time.Duration(least+n.rng.IntN(most-least+1)) * time.Millisecond
	<-time.After(d)
}

func (n *nemesis) any() *cluster.Server { return n.e.Servers()[n.rng.IntN(len(n.e.Servers()))] }

// after is the next server in the circle.
func (n *nemesis) after(s *cluster.Server) *cluster.Server {
	return n.e.Server(s.ID%len(n.e.Servers()) + 1)
}

func (n *nemesis) kill(s *cluster.Server) {
	s.Kill()
	n.last(0, 3000)
	s.Start()
}

func (n *nemesis) killTwo() {
	a := n.any()
	b := n.after(a)
	a.Kill()
	n.last(0, 500)
	b.Kill()
	n.last(0, 1500)
	a.Start()
	n.last(0, 500)
	b.Start()
}

func (n *nemesis) still(s *cluster.Server) {
	s.Pause()
	n.last(100, 4000)
	s.Resume()
}

// rolling stops and starts one server after the other, as an upgrade does.
func (n *nemesis) rolling() {
	for _, s := range n.e.Servers() {
		s.Stop()
		s.Start()
		n.e.WaitServing()
	}
}

// segment returns the newest part of a killed server's log, and where its records end (consensus/raftlog/FORMAT.md).
func (n *nemesis) segment(s *cluster.Server) (path string, b []byte, end int) {
	const first, header, align = 4096, 64, 8
	all, err := filepath.Glob(filepath.Join(s.DataDir, "raftlog", "*.seg*"))
	if err != nil {
		n.t.Fatal(err)
	}
	slices.Sort(all)
	for _, name := range all {
		x, err := os.ReadFile(name)
		if err != nil {
			n.t.Fatal(err)
		}
		off := first
		for off+header <= len(x) && binary.LittleEndian.Uint16(x[off+10:]) == 0x4c5a {
			length := header + int(binary.LittleEndian.Uint32(x[off+4:]))
			off += (length + align - 1) / align * align
		}
		if off > first && off < len(x) {
			path, b, end = name, x, off
		}
	}
	return path, b, end
}

// torn leaves the beginning of a record after the last one.
func (n *nemesis) torn() {
	s := n.any()
	s.Kill()
	path, b, end := n.segment(s)
	if path != "" {
		copy(b[end:], b[4096:4096+1+n.rng.IntN(60)])
		n.write(s, path, b)
	}
	s.Start()
}

// flipped damages durable data: the server must refuse to start, and start when the damage is undone.
func (n *nemesis) flipped() {
	s := n.any()
	s.Kill()
	path, b, end := n.segment(s)
	if path != "" {
		// The last records may not have been durable; then they would be cut off.
		at := 4096 + n.rng.IntN((end-4096)*3/4)
		good := bytes.Clone(b)
		b[at] ^= 1 << n.rng.IntN(8)
		n.write(s, path, b)
		n.refuses(s, path, at)
		n.write(s, path, good)
	}
	s.Start()
}

func (n *nemesis) flippedSnapshot() {
	s := n.any()
	s.Kill()
	files := s.Snapshots()
	good := map[string][]byte{}
	for _, path := range files {
		b, err := os.ReadFile(path)
		if err != nil {
			n.t.Fatal(err)
		}
		good[path] = bytes.Clone(b)
		b[n.rng.IntN(len(b))] ^= 1 << n.rng.IntN(8)
		n.write(s, path, b)
	}
	if len(files) > 0 {
		n.refuses(s, filepath.Join(s.DataDir, "snapshots"), -1)
	}
	for path, b := range good {
		n.write(s, path, b)
	}
	s.Start()
}

// write changes a file of a server that is down, on its disk too.
func (n *nemesis) write(s *cluster.Server, path string, b []byte) {
	n.t.Helper()
	if err := os.WriteFile(path, b, 0o640); err != nil {
		n.t.Fatal(err)
	}
	if s.Disk != nil {
		s.Disk.Settle()
	}
}

// refuses starts a damaged server, which must end with an error that names the
// file. A flip in the padding between records is no damage: then it serves.
func (n *nemesis) refuses(s *cluster.Server, path string, at int) {
	n.t.Helper()
	before := len(s.Log())
	s.Start()
	ended := make(chan error, 1)
	go func() { ended <- s.WaitEnd() }()
	select {
	case err := <-ended:
		if said := s.Log()[before:]; err == nil || !strings.Contains(said, path) {
			n.t.Errorf("the guarantee %q is broken: server %d with a flipped bit at %d of %s ended "+
				"with %v and says:\n%s", "Damage", s.ID, at, path, err, said)
		}
	case <-time.After(wait.Patience / 2):
		n.t.Errorf("the guarantee %q is broken: server %d serves with a flipped bit at %d of %s",
			"Damage", s.ID, at, path)
		s.Kill()
		<-ended
	}
}

// wiped gives a server a new disk: it is removed from the ensemble and taken in
// again, and catches up by a snapshot.
func (n *nemesis) wiped() {
	s := n.any()
	n.e.WaitServing()
	s.Kill()
	n.last(0, 1000)
	other := n.after(s)
	n.cluster(other, http.MethodDelete, fmt.Sprintf("/members/%d?force=true", s.ID), "", http.StatusNotFound)
	s.Wipe()
	s.Start()
	n.cluster(other, http.MethodPost, "/members",
		fmt.Sprintf(`{"id": %d, "address": %q}`, s.ID, s.PeerAddr()), 0)
	n.e.WaitServing()
}

func (n *nemesis) transfer() {
	n.cluster(n.any(), http.MethodPost, "/transfer",
		fmt.Sprintf(`{"to": %d}`, n.any().ID), http.StatusConflict)
}

// cluster asks for a change of the ensemble until it has happened.
func (n *nemesis) cluster(s *cluster.Server, method, path, body string, enough int) {
	n.t.Helper()
	client := &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	wait.Succeeds(n.t, method+" "+path+" at server "+fmt.Sprint(s.ID), func() error {
		q, err := http.NewRequest(method, "http://"+s.HTTPAddr()+"/v1/cluster"+path, strings.NewReader(body))
		if err != nil {
			return err
		}
		user, password, _ := strings.Cut(cluster.SuperCredentials, ":")
		q.SetBasicAuth(user, password)
		r, err := client.Do(q)
		if err != nil {
			return err
		}
		defer r.Body.Close()
		text, _ := io.ReadAll(r.Body)
		if r.StatusCode >= 300 && r.StatusCode != enough {
			return fmt.Errorf("%s: %s", r.Status, text)
		}
		return nil
	})
}

// heal makes everything as it was.
func (n *nemesis) heal() {
	if n.network != nil {
		n.network.Heal()
	}
	n.e.StartAll()
	n.e.WaitServing()
}
