//go:build interop

package interop_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/zk-lite/zk-lite/integration/cluster"
	"github.com/zk-lite/zk-lite/internal/testkit/wait"
)

// peer is a Java process with Curator's recipes (testdata/CuratorPeer.java) that executes
// commands.
type peer struct {
	t       *testing.T
	program *cluster.Program

	mu  sync.Mutex // protects the fields below
	ids int
	got map[string][]string // output of each id that no one has asked for yet
}

// deed is something that the peer does.
type deed struct {
	p  *peer
	id string
}

// startPeer compiles and starts the process. It ends with the test.
func startPeer(t *testing.T, e *cluster.Ensemble) *peer {
	t.Helper()
	p := &peer{t: t, got: map[string][]string{}}
	p.program = cluster.StartProgram(t, func(line string) {
		id, text, _ := strings.Cut(line, " ")
		p.mu.Lock()
		defer p.mu.Unlock()
		p.got[id] = append(p.got[id], text)
	}, append(cluster.Java(t, "CuratorPeer.java"), "CuratorPeer", e.ConnectString())...)
	return p
}

// begin has the peer begin something.
func (p *peer) begin(words ...any) *deed {
	p.t.Helper()
	p.mu.Lock()
	p.ids++
	d := &deed{p, fmt.Sprint(p.ids)}
	p.mu.Unlock()
	d.say(words...)
	return d
}

func (d *deed) say(words ...any) {
	d.p.t.Helper()
	d.p.program.Say(append([]any{d.id}, words...)...)
}

// next waits for the next output of a deed.
func (d *deed) next() (text string) {
	d.p.t.Helper()
	wait.Succeeds(d.p.t, "the peer says something of "+d.id, func() error {
		d.p.mu.Lock()
		defer d.p.mu.Unlock()
		if len(d.p.got[d.id]) == 0 {
			return fmt.Errorf("it has said nothing")
		}
		text = d.p.got[d.id][0]
		d.p.got[d.id] = d.p.got[d.id][1:]
		return nil
	})
	return text
}

// expect waits for words of the peer, which must be these.
func (d *deed) expect(want string) {
	d.p.t.Helper()
	if got := d.next(); got != want {
		d.p.t.Fatalf("the peer says %q, want %q", got, want)
	}
}

// silent fails the test if the peer has printed something.
func (d *deed) silent() {
	d.p.t.Helper()
	d.p.mu.Lock()
	defer d.p.mu.Unlock()
	if said := d.p.got[d.id]; len(said) > 0 {
		d.p.t.Fatalf("the peer says %q, want nothing yet", said)
	}
}

// release makes the peer release what it holds.
func (d *deed) release() {
	d.p.t.Helper()
	d.say("do release")
	d.expect("released")
}

// eventually asks the peer again and again until the answer is the one that is wanted.
func (d *deed) eventually(question, want string) {
	d.p.t.Helper()
	wait.Succeeds(d.p.t, "the peer sees "+want, func() error {
		d.say("do", question)
		if got := d.next(); got != want {
			return fmt.Errorf("it sees %q", got)
		}
		return nil
	})
}
