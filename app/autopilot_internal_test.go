package app

import (
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/app/config"
	"github.com/zk-lite/zk-lite/consensus"
)

// One setting turns all of it off.
func TestAutopilot_Settings(t *testing.T) {
	c := config.Settings{
		Autopilot: true, AutopilotStableTime: time.Second, AutopilotRemoveAfter: time.Hour, AutopilotMinVoters: 5,
	}
	want := consensus.Autopilot{StableTime: time.Second, RemoveAfter: time.Hour, MinVoters: 5}
	if got := autopilot(&c); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	c.Autopilot = false
	if got := autopilot(&c); got != (consensus.Autopilot{}) {
		t.Errorf("turned off: %+v", got)
	}
}
