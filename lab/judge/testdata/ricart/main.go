// Command ricart is Ricart and Agrawala's lock for "zk-lite lab judge --task mutex". With
// -forgets it never sends the replies that it has kept back.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"os"
)

type event struct {
	Event string
	Self  int
	IDs   []int
	From  int
	Type  string
	Body  int // the clock of a request
}

type send struct {
	To   int    `json:"to"`
	Type string `json:"type"`
	Body int    `json:"body"`
}

type answer struct {
	Send      []send            `json:"send,omitempty"`
	Enter     bool              `json:"enter,omitempty"`
	Exit      bool              `json:"exit,omitempty"`
	Variables map[string]string `json:"variables,omitempty"`
}

type process struct {
	self       int
	others     []int
	state      string
	clock, own int
	replies    int
	kept       []int
}

func (p *process) step(e event, forgets bool) (a answer) {
	switch {
	case e.Event == "request":
		p.clock++
		p.state, p.own, p.replies = "WANTED", p.clock, 0
		for _, id := range p.others {
			a.Send = append(a.Send, send{id, "request", p.own})
		}
	case e.Event == "leave":
		p.state, a.Exit = "RELEASED", true
		for _, id := range p.kept {
			if !forgets {
				a.Send = append(a.Send, send{id, "reply", 0})
			}
		}
		p.kept = nil
	case e.Event == "message" && e.Type == "request":
		p.clock = max(p.clock, e.Body) + 1
		mine := p.own < e.Body || p.own == e.Body && p.self < e.From
		if p.state == "HELD" || p.state == "WANTED" && mine {
			p.kept = append(p.kept, e.From)
		} else {
			a.Send = append(a.Send, send{e.From, "reply", 0})
		}
	case e.Event == "message":
		p.replies++
	}
	if p.state == "WANTED" && p.replies == len(p.others) {
		p.state, a.Enter = "HELD", true
	}
	a.Variables = map[string]string{"state": p.state}
	return a
}

func main() {
	forgets := flag.Bool("forgets", false, "send no reply that was kept back")
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
			p = process{self: e.Self, state: "RELEASED"}
			for _, id := range e.IDs {
				if id != e.Self {
					p.others = append(p.others, id)
				}
			}
			_ = out.Encode(answer{})
			continue
		}
		_ = out.Encode(p.step(e, *forgets))
	}
}
