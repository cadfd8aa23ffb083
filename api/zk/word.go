package zk

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/zk-lite/zk-lite/server"
)

// notServing is the answer to most words while there is no majority
// (AbstractFourLetterCommand).
const notServing = "This ZooKeeper instance is not currently serving requests"

// telnetClose is what the telnet program sends when it is interrupted.
const telnetClose = 0xfff4fffd

// word is one four-letter word.
type word struct {
	// answer writes the answer.
	answer func(a *answer)
	// always: a server that is not serving answers it, too.
	always bool
	// argument is the number of bytes that follow the word.
	argument int
}

// answer is what a word writes to.
type answer struct {
	strings.Builder
	listener *Listener
	conn     *conn
	serving  bool
	readOnly bool // read-only mode is on
	argument []byte
}

// line writes a line.
func (a *answer) line(format string, args ...any) {
	fmt.Fprintf(a, format, args...)
	a.WriteByte('\n')
}

// look shows the state. It must be left quickly: the log waits.
func (a *answer) look(visit func(v *server.View)) { a.listener.srv.View(visit) }

// words is the table of all words (ZooKeeper's FourLetterCommands).
func words() map[string]word {
	return map[string]word{
		"conf": {answer: (*answer).conf},
		"cons": {answer: (*answer).cons},
		"crst": {answer: (*answer).crst},
		"dirs": {answer: (*answer).dirs},
		"dump": {answer: (*answer).dump},
		"envi": {answer: (*answer).envi, always: true},
		"gtmk": {answer: (*answer).gtmk, always: true},
		"hash": {answer: (*answer).hash},
		"isro": {answer: (*answer).isro, always: true},
		"mntr": {answer: (*answer).mntr},
		"ruok": {answer: (*answer).ruok, always: true},
		"srst": {answer: (*answer).srst},
		"srvr": {answer: (*answer).srvr},
		"stat": {answer: (*answer).stat},
		"stmk": {answer: (*answer).stmk, always: true, argument: 8},
		"wchc": {answer: (*answer).wchc},
		"wchp": {answer: (*answer).wchp},
		"wchs": {answer: (*answer).wchs},
	}
}

// wordOf returns the word that a connection starts with, if it is one. No word is a
// length that a frame may have.
func (ln *Listener) wordOf(head uint32) (name string, ok bool) {
	if head == telnetClose {
		return "", true
	}
	var b [4]byte
	binary.BigEndian.PutUint32(b[:], head)
	_, ok = ln.words[string(b[:])]
	return string(b[:]), ok
}

// serveWord answers a word and ends the connection.
func (c *conn) serveWord(name string) error {
	c.in.take(4)
	c.out.countReceived(4)
	if name == "" {
		return errors.New("telnet close")
	}
	srv := c.listener.srv
	w, a := c.listener.words[name], &answer{listener: c.listener, conn: c}
	a.readOnly = srv.ReadOnly.On()
	a.serving = a.readOnly || srv.Serving()
	switch {
	case !c.listener.allowed[name]:
		a.line("%s is not executed because it is not in the whitelist.", name)
	case !w.always && !a.serving:
		a.line(notServing)
		if h := srv.Status().Halt; h != nil {
			a.line("It is halted (%s): %s", h.Kind, h.Reason)
		}
	default:
		for c.in.have() < w.argument {
			if err := c.in.fill(); err != nil {
				return fmt.Errorf("waiting for the argument of %s: %w", name, err)
			}
		}
		a.argument = c.in.take(w.argument)
		w.answer(a)
	}
	if b, ok := c.out.begin(); ok {
		c.out.stats.sent()
		c.out.commit(append(b, a.String()...), false)
	}
	c.out.end("four-letter word " + name)
	return c.linger(nil)
}

// ruok shows that the process answers, and no more.
func (a *answer) ruok() { a.WriteString("imok") }

// isro shows whether writes are possible (rw) or reads alone (ro); null: neither.
func (a *answer) isro() {
	switch {
	case a.readOnly:
		a.WriteString("ro")
	case a.listener.srv.Source.TakesClients():
		a.WriteString("rw")
	default:
		a.WriteString("null")
	}
}

// gtmk prints the trace mask, which is kept and has no effect.
func (a *answer) gtmk() { a.WriteString(strconv.FormatInt(a.listener.trace.Load(), 10)) }

// stmk sets it.
func (a *answer) stmk() {
	a.listener.trace.Store(int64(binary.BigEndian.Uint64(a.argument)))
	a.gtmk()
}

// hash lists digests of the state.
func (a *answer) hash() {
	if a.listener.cfg.Digests == nil {
		return
	}
	for _, x := range a.listener.cfg.Digests() {
		a.line("%x: %d", x.Zxid, int64(x.Value))
	}
}
