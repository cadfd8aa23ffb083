package ensemble_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/app"
	"github.com/zk-lite/zk-lite/app/config"
	"github.com/zk-lite/zk-lite/internal/testkit/tier"
	"github.com/zk-lite/zk-lite/lab/election"
	"github.com/zk-lite/zk-lite/lab/ensemble"
)

// start runs a server and returns its address.
func start(t *testing.T) string {
	t.Helper()
	s, _, err := config.Load(nil, func(string) (string, bool) { return "", false })
	if err != nil {
		t.Fatal(err)
	}
	s.DataDir, s.DataLogDir = t.TempDir(), t.TempDir()
	s.ClientPortAddress, s.ClientPort = "127.0.0.1", 0
	s.AdminEnabled = false
	s.Server.Tick = 100 * time.Millisecond
	s.Server.MinSessionTimeout, s.Server.MaxSessionTimeout = time.Second, time.Second
	n, err := app.Open(app.Options{
		Settings: s, Version: "test", Logger: slog.New(slog.DiscardHandler),
		Fatal: func(err error) { t.Errorf("the server has failed: %v", err) },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Close(); err != nil {
			t.Errorf("closing the server: %v", err)
		}
	})
	return n.ClientAddr().String()
}

// The simulator and the servers must see the same: what the recipe promises.
func TestRunner_KillLeader_EqualsTheSimulator(t *testing.T) {
	tier.Seconds(t)
	servers := start(t)
	for _, k := range []election.KillLeader{
		{Candidates: 2}, {Candidates: 2, Herd: true},
		{Candidates: 24}, {Candidates: 24, Herd: true},
	} {
		simulated, err := election.ScenarioRunner{Seed: 1}.KillLeader(t.Context(), k)
		if err != nil {
			t.Fatal(err)
		}
		real, err := ensemble.Runner{Servers: servers}.KillLeader(t.Context(), k)
		if err != nil {
			t.Fatalf("%+v: %v", k, err)
		}
		if err := k.Judge(real); err != nil {
			t.Errorf("%+v: %v", k, err)
		}
		if real.Events != simulated.Events || real.Requests < real.Events {
			t.Errorf("%+v: the servers %+v, the simulator %+v", k, real, simulated)
		}
	}
}

func TestRunner_KillLeader_RefusesNonsense(t *testing.T) {
	_, err := ensemble.Runner{Servers: "127.0.0.1:1"}.KillLeader(
		t.Context(), election.KillLeader{Candidates: 1})
	if err == nil {
		t.Error("an election of one candidate was performed")
	}
}

// The stories that the page repeats on servers: another leads, by one event, and each message
// of the run is drawn.
func TestRunner_Trace_FaultsOfTheLeader(t *testing.T) {
	tier.Seconds(t)
	servers := start(t)
	for _, line := range []string{"ensemble --fault kill --n 4", "ensemble --fault cut --n 3", "ensemble --fault expire --n 3",
		"ensemble --n 4 --herd"} {
		e, err := ensemble.ParseExperiment(strings.Fields(line))
		if err != nil {
			t.Fatal(err)
		}
		tr, err := ensemble.Runner{Servers: servers}.Trace(t.Context(), e)
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		events, leads, last := 0, 0, 0.0
		for _, m := range tr.Messages {
			if m.Type == "event" {
				events++
			}
			if m.Ends < m.Sent {
				t.Errorf("%s: a message ends before it is sent: %+v", line, m)
			}
		}
		for _, s := range tr.Spans {
			if s.What == "leads" {
				leads++
			}
		}
		for _, s := range tr.Steps {
			if s.At < last || s.Kind == "started" {
				t.Errorf("%s: a step is out of place: %+v", line, s)
			}
			last = s.At
		}
		if float64(events) != tr.Bounds[0].Value || leads != 2 || !tr.Safe || len(tr.Messages) < 20 {
			t.Errorf("%s: %d events, want %g; %d times somebody leads; %d messages", line, events, tr.Bounds[0].Value, leads, len(tr.Messages))
		}
	}
}

func TestParseExperiment_Errors_NameTheWord(t *testing.T) {
	for line, want := range map[string]string{
		"ensemble --fault burn": "want kill, cut or expire", "ensemble --n 1": "2", "ensemble --n 99": "at most 16",
		"ensemble --crash 1@2": "crash", "ensemble now": "now",
	} {
		if _, err := ensemble.ParseExperiment(strings.Fields(line)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", line, err, want)
		}
	}
}

// Every candidate fails for the same reason, which is reported once.
func TestRunner_KillLeader_NobodyThere_SaysItOnce(t *testing.T) {
	ctx, cancel := context.WithTimeoutCause(t.Context(), 200*time.Millisecond,
		errors.New("the test waits no longer"))
	defer cancel()
	_, err := ensemble.Runner{Servers: "127.0.0.1:1"}.KillLeader(
		ctx, election.KillLeader{Candidates: 3})
	if err == nil {
		t.Fatal("an election without servers was performed")
	}
	text := err.Error()
	if !strings.Contains(text, "3 of 3 candidates have no session") ||
		strings.Count(text, "the test waits no longer") != 1 {
		t.Errorf("the error is %q", text)
	}
}
