package consensus

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/zk-lite/zk-lite/consensus/peerkeys"
	"github.com/zk-lite/zk-lite/consensus/selfcheck"
	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/consensus/transport/mux"
	"github.com/zk-lite/zk-lite/internal/testkit/tier"
	"github.com/zk-lite/zk-lite/internal/testkit/wait"
)

func byKeys(int, *peerkeys.Config) {}

// newKeyed starts an ensemble whose servers know each other by their keys.
func newKeyed(t *testing.T, n int) *testEnsemble {
	tier.Seconds(t)
	e := prepare(t, n, nil)
	e.keyed = byKeys
	for i := range n {
		e.mustStart(i)
	}
	return e
}

// waitBound waits until all servers that run have the same table, with a key for each of some.
func (e *testEnsemble) waitBound(ids ...int) {
	e.t.Helper()
	wait.Until(e.t, "one table of keys", func() bool {
		for _, x := range e.nodes {
			if x.Node == nil {
				continue
			}
			keys := x.cfg.Keys.Table().Keys
			if len(keys) != len(ids) {
				return false
			}
			for _, id := range ids {
				if y := e.nodes[id]; y.Node != nil && keys[state.ServerID(id)] != y.cfg.Keys.Own() {
					return false
				}
			}
		}
		return true
	})
}

// A formation binds the keys of all servers, and they find each other again by what is on their disks.
func TestKeys_Formation_AndRestartOfAll(t *testing.T) {
	t.Parallel()
	e := newKeyed(t, 3)
	e.must(0, "/a")
	e.waitBound(0, 1, 2)
	for _, x := range e.nodes {
		wait.Until(t, "the keys in the log", func() bool {
			all := x.Ensemble().Members()
			return len(all) == 3 && all[0].Key != [32]byte{} && all[1].Key != [32]byte{} && all[2].Key != [32]byte{}
		})
	}
	for i := range 3 {
		e.stop(i)
	}
	for i := range 3 {
		e.mustStart(i)
	}
	e.must(2, "/b")
	e.agree()
	info, err := os.Stat(filepath.Join(e.nodes[0].dir, "peer.key"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("peer.key: %v (%v), want mode 0600", info, err)
	}
}

// newStranger is a key pair that no member has.
func newStranger(t *testing.T) tls.Certificate {
	pub, own, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1)}
	der, err := x509.CreateCertificate(rand.Reader, c, c, pub, own)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: own}
}

// A stranger is shown the certificate, and is sent nothing that TLS has encrypted for it but an alert.
func TestKeys_Stranger_GetsTheCertificateAndNothingElse(t *testing.T) {
	t.Parallel()
	e := newKeyed(t, 3)
	e.must(0, "/a")
	e.waitBound(0, 1, 2)
	for name, cfg := range map[string]*tls.Config{
		"with a key of its own": {Certificates: []tls.Certificate{newStranger(t)}},
		"without a key":         {},
		"of an old version":     {MaxVersion: tls.VersionTLS12, Certificates: []tls.Certificate{newStranger(t)}},
		"without TLS":           nil,
	} {
		c, err := net.Dial("tcp", e.servers[0].Addr)
		if err != nil {
			t.Fatal(err)
		}
		_ = c.SetDeadline(time.Now().Add(time.Minute))
		if cfg != nil {
			cfg.InsecureSkipVerify = true
			c = tls.Client(c, cfg)
		}
		_, _ = c.Write([]byte(strings.Repeat("zkLP", 1000)))
		answer, err := io.ReadAll(c)
		answer = bytes.TrimPrefix(answer, []byte{21, 3, 1, 0, 2, 2}) // an alert in plain
		if len(answer) > 1 || cfg != nil && (err == nil || !strings.Contains(err.Error(), "tls: ")) {
			t.Errorf("a stranger %s gets %q, %v", name, answer, err)
		}
		_ = c.Close()
	}
	e.must(1, "/b")
}

// asServer0 takes the other side of a connection for server 0.
type asServer0 struct {
	mux.Credulous
	keys *peerkeys.Keys
}

func (g asServer0) Secure(ctx context.Context, c net.Conn, _ mux.Kind, _ string) (net.Conn, error) {
	return g.keys.Client(ctx, c, 0, false)
}

// dialAs connects to server 0 with the key of a member and the number of another.
func (e *testEnsemble) dialAs(key int, kind mux.Kind, number uint64) error {
	x := e.nodes[key]
	keys, err := peerkeys.Open(peerkeys.Config{Dir: x.dir})
	if err != nil {
		e.t.Fatal(err)
	}
	m := mux.New(mux.Config{
		Listener: mux.NoListener(), Dial: e.net.dial(key), Guard: asServer0{keys: keys},
	})
	defer m.Close()
	m.SetIdentity(e.nodes[0].ensemble.Identity().Ensemble, number)
	c, err := m.Dial(e.t.Context(), kind, e.servers[0].Addr, 0)
	if err != nil {
		return err
	}
	defer c.Close()
	if kind == mux.KindControl {
		fmt.Fprintln(c, `{"version":1,"op":"who"}`)
		line, _ := bufio.NewReader(c).ReadString('\n')
		if strings.Contains(line, `"error"`) {
			return errors.New(line)
		}
	}
	return nil
}

func TestKeys_MemberWithAnothersNumber_IsRefused(t *testing.T) {
	t.Parallel()
	e := newKeyed(t, 3)
	e.must(0, "/a")
	e.waitBound(0, 1, 2)
	for _, kind := range []mux.Kind{mux.KindRaft, mux.KindStream, mux.KindControl, mux.KindAppend, mux.KindSnapshot} {
		if err := e.dialAs(1, kind, 1); err != nil {
			t.Errorf("a %v connection: %v", kind, err)
		}
		for _, number := range []uint64{2, 9} {
			err := e.dialAs(1, kind, number)
			if err == nil || !strings.Contains(err.Error(), "member token") {
				t.Errorf("a %v connection of server 1 as server %d: %v", kind, number, err)
			}
		}
	}
}

// A server that is removed is cut off at once, and its key is worth nothing.
func TestKeys_Remove_Revokes(t *testing.T) {
	t.Parallel()
	e := newKeyed(t, 3)
	leader := e.leader()
	e.must(leader, "/a")
	e.waitBound(0, 1, 2)
	gone, other := (leader+1)%3, (leader+2)%3
	e.mustRemove(other, gone)
	for _, i := range []int{leader, other} {
		wait.Until(t, "the end of its key", func() bool {
			_, bound := e.nodes[i].cfg.Keys.Table().Keys[state.ServerID(gone)]
			open, _ := e.nodes[i].streams.Contact(state.ServerID(gone))
			return !bound && !open
		})
	}
	for _, kind := range []mux.Kind{mux.KindRaft, mux.KindStream, mux.KindAppend, mux.KindSnapshot} {
		if err := e.dialAs(gone, kind, uint64(gone)); err == nil && gone != 0 {
			t.Errorf("its key is still good for a %v connection", kind)
		}
	}
	wait.Until(t, "the server to hear that it was removed", func() bool { return e.nodes[gone].Status().Halt != nil })
	e.must(other, "/b")
}

// A server that was away while the keys of others have changed asks those that it knows.
func TestKeys_StaleTable_IsRefreshed(t *testing.T) {
	t.Parallel()
	e := newKeyed(t, 3)
	e.must(0, "/a")
	e.waitBound(0, 1, 2)
	e.stop(2)
	k, err := peerkeys.Open(peerkeys.Config{Dir: e.nodes[2].dir})
	if err != nil {
		t.Fatal(err)
	}
	old := k.Table()
	fresh := maps.Clone(old.Keys)
	delete(fresh, 0) // as if it had been added later
	old.Keys, old.Index = fresh, 1
	if err := k.Update(old); err != nil {
		t.Fatal(err)
	}
	e.handOver(1, 0)
	e.mustStart(2)
	e.must(2, "/b")
	e.waitBound(0, 1, 2)
}

// secretFile writes a secret that is read by a server's owner only.
func secretFile(t *testing.T, secret string) string {
	path := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(path, []byte(secret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

const joinSecret = "0123456789abcdef0123456789abcdef"

// newSecret starts an ensemble with a join secret.
func newSecret(t *testing.T, n int) *testEnsemble {
	tier.Seconds(t)
	e := prepare(t, n, nil)
	file := secretFile(t, joinSecret)
	e.keyed = func(_ int, c *peerkeys.Config) { c.SecretFile = file }
	for i := range n {
		e.mustStart(i)
	}
	return e
}

// withToken gives a server a one-time token, which another makes.
func (e *testEnsemble) withToken(through, i int) {
	e.t.Helper()
	secret, _, err := e.nodes[through].Ensemble().NewToken(e.longContext(), e.servers[i].ID)
	if err != nil {
		e.t.Fatal(err)
	}
	file, before := secretFile(e.t.(*testing.T), secret), e.keyed
	e.keyed = func(k int, c *peerkeys.Config) {
		if before(k, c); k == i {
			c.SecretFile = file
		}
	}
}

func TestKeys_AddServer_WithAToken(t *testing.T) {
	t.Parallel()
	e := newKeyed(t, 3)
	e.must(0, "/a")
	e.waitBound(0, 1, 2)
	newcomer := e.room()
	e.add(0, newcomer)
	e.withToken(0, newcomer)
	e.mustStart(newcomer)
	e.waitVoters(0, 1, 2, 3)
	e.waitBound(0, 1, 2, 3)
	e.must(newcomer, "/b")
	for i := range e.nodes {
		if m := e.nodes[i].Ensemble().Members()[3]; m.Token != [32]byte{} || m.TokenUntil != 0 {
			t.Error("the token has not been used up")
		}
	}
	e.stop(newcomer)
	e.mustStart(newcomer) // no longer needs a token
	e.must(newcomer, "/c")
	e.agree()
}

// A server with a new key, and its data, is the same voter as before; the old key is worth nothing.
func TestKeys_Rotation(t *testing.T) {
	t.Parallel()
	e := newKeyed(t, 3)
	e.must(0, "/a")
	e.waitBound(0, 1, 2)
	changed := (e.leader() + 1) % 3
	through := (changed + 1) % 3
	old := e.nodes[changed].cfg.Keys.Own()
	e.stop(changed)
	if err := os.Remove(filepath.Join(e.nodes[changed].dir, "peer.key")); err != nil {
		t.Fatal(err)
	}
	e.withToken(through, changed)
	e.mustStart(changed)
	e.must(changed, "/b")
	e.waitBound(0, 1, 2)
	e.waitVoters(0, 1, 2)
	if e.nodes[changed].cfg.Keys.Own() == old {
		t.Error("the key is the old one")
	}
	e.agree()
}

// A voter without its data comes back as a new member: by a token, or by the join secret.
func TestKeys_WipedServer_ComesBack(t *testing.T) {
	t.Parallel()
	for name, secret := range map[string]bool{"by a token": false, "by the join secret": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := (*testEnsemble)(nil)
			if secret {
				e = newSecret(t, 3)
			} else {
				e = newKeyed(t, 3)
			}
			e.must(0, "/a")
			e.waitFormed()
			e.waitBound(0, 1, 2)
			// A server whose first start is so late that the others have formed is added without a vote, first.
			e.waitVoters(0, 1, 2)
			for n, lost := range []int{(e.leader() + 1) % 3, 0} { // 0 is the one that would form
				e.stop(lost)
				e.wipe(lost)
				if !secret {
					e.withToken((lost+1)%3, lost)
				}
				e.mustStart(lost)
				e.waitVoters(0, 1, 2)
				e.waitBound(0, 1, 2)
				e.must(lost, fmt.Sprint("/n", n))
			}
			e.agree()
		})
	}
}

// A leader that let a server in, or had taken a wiped one's vote, and lost its place before the log said that the
// server is to vote, left it without a vote for good: the next leader found a member, and only noted its key. One that
// was let in again with its data, asked no more, as it was a member, and no one accepted its key.
func TestRegression_Keys_HalfJoined_VotesAtLast(t *testing.T) {
	t.Parallel()
	letIn := func(r *raft.Raft, id raft.ServerID) error {
		if err := r.RemoveServer(id, 0, 0).Error(); err != nil {
			return err
		}
		return r.AddNonvoter(id, raft.ServerAddress(id), 0, 0).Error()
	}
	demote := func(r *raft.Raft, id raft.ServerID) error { return r.DemoteVoter(id, 0, 0).Error() }
	for name, c := range map[string]struct {
		wiped bool
		half  func(r *raft.Raft, id raft.ServerID) error
	}{
		"let in":            {true, letIn},
		"without its vote":  {true, demote},
		"let in, with data": {false, letIn},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newSecret(t, 3)
			e.must(0, "/a")
			e.waitVoters(0, 1, 2)
			e.waitBound(0, 1, 2)
			lost := (e.leader() + 1) % 3
			e.stop(lost)
			if c.wiped {
				e.wipe(lost)
			}
			wait.Succeeds(t, "half of it", func() error { // again, if the leader loses its place meanwhile
				return c.half(e.nodes[e.leader()].raft, raft.ServerID(strconv.Itoa(lost)))
			})
			e.mustStart(lost)
			e.waitVoters(0, 1, 2)
			e.must(lost, "/b")
			e.agree()
		})
	}
}

// Two of three without their data: they form nothing, whatever secret they know.
func TestKeys_WipedMajority_FormsNothing(t *testing.T) {
	t.Parallel()
	e := newSecret(t, 3)
	e.must(0, "/a")
	e.waitFormed()
	e.waitBound(0, 1, 2)
	for _, i := range []int{0, 1} {
		e.stop(i)
		e.wipe(i)
	}
	for _, i := range []int{0, 1} {
		e.mustStart(i)
	}
	asked := e.net.dialled(2)
	wait.Until(t, "many questions to the server that has the data", func() bool { return e.net.dialled(2) > asked+20 })
	if e.formed(0) || e.formed(1) {
		t.Error("servers without data have formed an ensemble")
	}
}

// While the ensemble was formed, a server that had not heard of it yet took the word of one that had for that of a
// running ensemble, joined it as if its disk had been replaced, and lost its vote. A leader that died just then left
// two servers that could not elect another.
func TestRegression_Keys_FirstFormation_TakesNoVote(t *testing.T) {
	tier.Seconds(t)
	t.Parallel()
	e := prepare(t, 3, nil)
	file := secretFile(t, joinSecret)
	e.keyed = func(_ int, c *peerkeys.Config) { c.SecretFile = file }
	var reaches atomic.Bool // whether server 0 reaches server 2 once it has begun to form
	joins := &counter{text: "a server has joined"}
	e.change = func(c *Config) {
		c.Logger = slog.New(joins)
		if c.ID != 0 {
			return
		}
		dial := c.Dial
		c.Dial = func(ctx context.Context, addr string) (net.Conn, error) {
			_, err := os.Stat(filepath.Join(e.nodes[0].dir, "identity.json"))
			if err == nil && addr == e.servers[2].Addr && !reaches.Load() {
				return nil, errors.New("cut off")
			}
			return dial(ctx, addr)
		}
	}
	for i := range 3 {
		e.mustStart(i)
	}
	wait.Until(t, "a leader of two", func() bool { return e.nodes[1].Status().Leader != state.NoServer })
	asked := e.net.dialled(1)
	wait.Until(t, "many questions to the server that knows", func() bool {
		return e.net.dialled(1) > asked+20 || e.formed(2)
	})
	reaches.Store(true)
	e.waitFormed()
	e.waitVoters(0, 1, 2)
	e.must(2, "/a")
	e.agree()
	if joins.lines.Load() > 0 {
		t.Error("a server that took part in the formation has joined as if it had been away")
	}
}

// A server that was removed halts, and lets itself in again when it starts, with its data of before.
func TestKeys_JoinSecret_RemovedServer_ComesBack(t *testing.T) {
	t.Parallel()
	e := newSecret(t, 3)
	e.must(0, "/a")
	e.waitBound(0, 1, 2)
	gone := (e.leader() + 1) % 3
	e.mustRemove((gone+1)%3, gone)
	e.waitHalted(gone, selfcheck.Removed)
	e.must((gone+1)%3, "/b")
	e.stop(gone)
	e.mustStart(gone)
	e.waitVoters(0, 1, 2)
	e.must(gone, "/c")
	e.agree()
}

// A server with the data of a former ensemble, as of a volume that was kept, asked its operator for a token, and
// with the token reported that its data is of another ensemble.
func TestRegression_Keys_FormerEnsemble_IsNamed(t *testing.T) {
	t.Parallel()
	former := newKeyed(t, 3)
	former.must(0, "/a")
	former.waitFormed()
	for i := range 3 {
		former.stop(i)
	}
	e := newKeyed(t, 3)
	e.must(0, "/b")
	e.waitFormed()
	e.stop(2)
	e.nodes[2].dir = former.nodes[2].dir
	right, wrong := &counter{text: "is of a former ensemble"}, &counter{text: "`zk-lite member token` makes a token"}
	e.change = func(c *Config) { c.Logger = slog.New(slog.NewMultiHandler(right, wrong)) }
	e.mustStart(2)
	wait.Until(t, "a word about the data", func() bool { return right.lines.Load() > 0 })
	if wrong.lines.Load() > 0 {
		t.Error("it was told to get a token")
	}
}

// A removed server that started while there was no leader took the silence for a refusal: it halted for good, with the
// advice to empty its data directories.
func TestRegression_Keys_RemovedServer_AsksUntilThereIsALeader(t *testing.T) {
	t.Parallel()
	e := newSecret(t, 3)
	e.must(0, "/a")
	e.waitBound(0, 1, 2)
	leads := e.leader()
	gone, other := (leads+1)%3, (leads+2)%3
	e.stop(gone)
	e.mustRemove(other, gone)
	wait.Until(t, "the removal in both logs", func() bool {
		return len(e.nodes[leads].cfg.Keys.Table().Keys) == 2 && len(e.nodes[other].cfg.Keys.Table().Keys) == 2
	})
	e.stop(leads)
	answers := &counter{text: "is not let in again"}
	e.change = func(c *Config) { c.Logger = slog.New(answers) }
	e.mustStart(gone)
	wait.Until(t, "an answer", func() bool { return answers.lines.Load() > 0 })
	if h := e.nodes[gone].Status().Halt; h != nil {
		t.Fatalf("it has halted: %+v", h)
	}
	e.change = nil
	e.mustStart(leads)
	e.waitVoters(0, 1, 2)
	e.must(gone, "/c")
	e.agree()
}

// counter is the handler of a log that counts the lines that hold a text.
type counter struct {
	slog.Handler
	text  string
	lines atomic.Int64
}

func (c *counter) Enabled(context.Context, slog.Level) bool { return true }
func (c *counter) WithAttrs([]slog.Attr) slog.Handler       { return c }
func (c *counter) WithGroup(string) slog.Handler            { return c }
func (c *counter) Handle(_ context.Context, r slog.Record) error {
	if strings.Contains(r.Message, c.text) {
		c.lines.Add(1)
	}
	return nil
}

// An ensemble of one can have others, if it has a peer port.
func TestKeys_JoinSecret_EnsembleOfOne_Grows(t *testing.T) {
	t.Parallel()
	e := newSecret(t, 1)
	e.must(0, "/a")
	newcomer := e.room()
	e.mustStart(newcomer)
	e.waitVoters(0, 1)
	e.must(newcomer, "/b")
	e.agree()
}

// With the join secret a server that no one has added adds itself.
func TestKeys_JoinSecret_UnknownServer(t *testing.T) {
	t.Parallel()
	e := newSecret(t, 3)
	e.must(0, "/a")
	newcomer := e.room()
	e.mustStart(newcomer)
	e.waitVoters(0, 1, 2, 3)
	e.must(newcomer, "/b")
	e.agree()
}

// A server that does not prove to know the secret neither joins nor forms.
func TestKeys_Join_WithoutAGoodProof(t *testing.T) {
	t.Parallel()
	e := newSecret(t, 3)
	e.must(0, "/a")
	e.waitFormed()
	other := e.servers[1].ID
	secret, _, err := e.nodes[0].Ensemble().NewToken(e.longContext(), other)
	if err != nil {
		t.Fatal(err)
	}
	for name, file := range map[string]string{
		"no secret":           "",
		"another secret":      secretFile(t, strings.Repeat("x", 32)),
		"another one's token": secretFile(t, secret),
	} {
		newcomer := e.room()
		e.keyed = func(_ int, c *peerkeys.Config) { c.SecretFile = file }
		e.mustStart(newcomer)
		_, waiting, err := e.nodes[newcomer].founder.Round()
		if err != nil || !strings.Contains(waiting, "to let it in") && !strings.Contains(waiting, "has not proved") {
			t.Errorf("%s: waits for %q (%v), want to be let in, or proved", name, waiting, err)
		}
		if e.formed(newcomer) {
			t.Errorf("%s: it has joined", name)
		}
		e.stop(newcomer)
	}
	e.must(1, "/b")
}

// flood has strangers begin a thousand connections a second to every peer port, until it is stopped.
func (e *testEnsemble) flood(cfg *tls.Config) (stop func() (begun int64)) {
	ctx, cancel := context.WithCancel(e.t.Context())
	var all sync.WaitGroup
	var begun atomic.Int64
	places := make(chan struct{}, 512)
	all.Go(func() {
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for i := 0; ; i++ {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			for _, s := range e.servers {
				select {
				case places <- struct{}{}:
				default:
					continue
				}
				all.Go(func() {
					defer func() { <-places }()
					var d net.Dialer
					c, err := d.DialContext(ctx, "tcp", s.Addr)
					if err != nil {
						return
					}
					defer c.Close()
					begun.Add(1)
					if i%2 == 0 { // the other half says nothing, and stays
						_ = tls.Client(c, cfg).HandshakeContext(ctx)
						return
					}
					select {
					case <-ctx.Done():
					case <-time.After(200 * time.Millisecond):
					}
				})
			}
		}
	})
	return func() int64 { cancel(); all.Wait(); return begun.Load() }
}

// Strangers without end neither keep a member out nor stop an election. The machine plays the strangers too, so how
// long it takes is logged, and not judged, and the election timeout is the product's.
func TestKeys_Strangers_DoNotKeepMembersOut(t *testing.T) {
	tier.Seconds(t)
	e := prepare(t, 3, func(c *Config) { c.ElectionTimeout = defaultElectionTimeout })
	e.keyed = byKeys
	for i := range 3 {
		e.mustStart(i)
	}
	e.must(0, "/a")
	e.waitBound(0, 1, 2)
	stop := e.flood(&tls.Config{InsecureSkipVerify: true, Certificates: []tls.Certificate{newStranger(t)}})
	start := time.Now()
	old := e.leader()
	e.crash(old)
	through := (old + 1) % 3
	e.must(through, "/b")
	elected := time.Since(start)
	start = time.Now()
	e.mustStart(old)
	e.must(old, "/c")
	back := time.Since(start)
	begun := stop()
	t.Logf("%d connections of strangers; a write after the leader's death took %v, through the server that came back %v",
		begun, elected, back)
}

// With a join secret, the formation believes no server that does not know it.
func TestKeys_Formation_DemandsTheSecret(t *testing.T) {
	t.Parallel()
	tier.Seconds(t)
	e := prepare(t, 3, nil)
	good, bad := secretFile(t, joinSecret), secretFile(t, strings.Repeat("x", 32))
	e.keyed = func(i int, c *peerkeys.Config) {
		if c.SecretFile = good; i == 2 {
			c.SecretFile = bad
		}
	}
	for i := range 3 {
		e.mustStart(i)
	}
	wait.Until(t, "a question to be answered", func() bool {
		_, waiting, err := e.nodes[0].founder.Round()
		return err == nil && strings.HasPrefix(waiting, "for server 2 ") && strings.Contains(waiting, "to prove that it knows")
	})
	if e.formed(0) || e.formed(1) || e.formed(2) {
		t.Error("an ensemble was formed with a server that does not know the secret")
	}
	e.stop(2)
	e.keyed = func(_ int, c *peerkeys.Config) { c.SecretFile = good }
	e.mustStart(2)
	e.must(2, "/a")
}

// A newcomer whose table is newer than the log that it begins with catches up by a snapshot.
func TestKeys_Newcomer_CatchesUpBySnapshot(t *testing.T) {
	t.Parallel()
	tier.Seconds(t)
	e := prepare(t, 3, func(c *Config) { c.SnapshotCommands, c.TrailingLogs = 50, 1 })
	e.keyed = byKeys
	for i := range 3 {
		e.mustStart(i)
	}
	for n := range 200 {
		e.must(0, fmt.Sprint("/n", n))
	}
	for _, x := range e.nodes { // any of them may lead
		wait.Until(t, "a log without its beginning", func() bool {
			first, err := x.cfg.Storage.Log.FirstIndex()
			return first > 1 && err == nil
		})
	}
	newcomer := e.room()
	e.add(0, newcomer)
	e.withToken(0, newcomer)
	e.mustStart(newcomer)
	e.waitVoters(0, 1, 2, 3)
	e.waitBound(0, 1, 2, 3)
	e.must(newcomer, "/b")
	if n := e.nodes[newcomer].handler.restored.Load(); n < 2 {
		t.Errorf("it has read no snapshot: %d states", n)
	}
	e.agree()
}
