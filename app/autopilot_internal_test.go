package app

import (
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/app/config"
	"github.com/zk-lite/zk-lite/consensus/membership"
)

// One setting turns all of it off.
func TestAutopilot_Settings(t *testing.T) {
	c := config.Settings{
		Autopilot: true, AutopilotStableTime: time.Second, AutopilotRemoveAfter: time.Hour, AutopilotMinVoters: 5,
	}
	want := membership.Autopilot{StableTime: time.Second, RemoveAfter: time.Hour, MinVoters: 5}
	if got := autopilot(&c); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	c.Autopilot = false
	if got := autopilot(&c); got != (membership.Autopilot{}) {
		t.Errorf("turned off: %+v", got)
	}
}
