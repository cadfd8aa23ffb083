package app

import (
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/app/config"
	"github.com/zk-lite/zk-lite/consensus"
	"github.com/zk-lite/zk-lite/consensus/membership"
)

// One setting turns all of it off.
func TestAutopilot_Settings(t *testing.T) {
	want := membership.Autopilot{StableTime: time.Second, RemoveAfter: time.Hour, MinVoters: 5}
	o := Options{Settings: config.Settings{Autopilot: true, Consensus: consensus.Config{Autopilot: want}}}
	if got := o.consensus().Autopilot; got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	o.Settings.Autopilot = false
	if got := o.consensus().Autopilot; got != (membership.Autopilot{}) {
		t.Errorf("turned off: %+v", got)
	}
}
