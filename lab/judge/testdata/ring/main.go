// Command ring is the ring election for "zk-lite lab judge --task election". With -wrong it
// forgets to swallow the smaller ids of processes that start later: every message of every
// starter goes round.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"os"
	"slices"
)

type event struct {
	Event string
	Self  int
	Ring  []int
	From  int
	Type  string
	Body  int
}

type send struct {
	To   int    `json:"to"`
	Type string `json:"type"`
	Body int    `json:"body"`
}

type answer struct {
	Send   []send `json:"send,omitempty"`
	Leader *int   `json:"leader,omitempty"`
}

type process struct {
	self, next int
	takesPart  bool
}

func (p *process) step(e event, wrong bool) (a answer) {
	pass := func(kind string, id int) { a.Send = append(a.Send, send{p.next, kind, id}) }
	switch {
	case e.Event == "elect" && !p.takesPart:
		p.takesPart = true
		pass("election", p.self)
	case e.Event != "message":
	case e.Type == "elected" && e.Body != p.self:
		p.takesPart = false
		a.Leader = &e.Body
		pass("elected", e.Body)
	case e.Type == "elected":
	case e.Body == p.self:
		a.Leader = &p.self
		pass("elected", p.self)
	case e.Body > p.self:
		p.takesPart = true
		pass("election", e.Body)
	case wrong || !p.takesPart:
		p.takesPart = true
		pass("election", p.self)
	}
	return a
}

func main() {
	wrong := flag.Bool("wrong", false, "swallow nothing")
	flag.Parse()
	var p process
	lines := bufio.NewScanner(os.Stdin)
	out := json.NewEncoder(os.Stdout)
	for lines.Scan() {
		var e event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			os.Exit(1)
		}
		if e.Event == "init" {
			at := slices.Index(e.Ring, e.Self)
			p = process{self: e.Self, next: e.Ring[(at+1)%len(e.Ring)]}
			_ = out.Encode(answer{})
			continue
		}
		_ = out.Encode(p.step(e, *wrong))
	}
}
