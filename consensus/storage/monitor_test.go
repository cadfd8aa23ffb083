package storage

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/zk-lite/zk-lite/internal/testkit/clock"
)

// A leader whose log had refused a write stepped down and campaigned at once, won, and stepped down again, for several
// terms.
func TestRegression_LogRefuses_DoesNotCampaign(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const timeout = time.Second
		m := NewMonitor(MonitorConfig{ElectionTimeout: timeout})
		clock.Sleep(time.Minute)
		if !m.MayCampaign() {
			t.Error("a server with a good disk does not campaign")
		}
		m.noteRefusal(true, m.now())
		if m.MayCampaign() {
			t.Error("a server whose log refuses campaigns at once")
		}
		clock.Sleep(campaignPause*timeout - 1)
		if m.MayCampaign() {
			t.Error("a server whose log refuses campaigns")
		}
		clock.Sleep(1)
		if !m.MayCampaign() {
			t.Error("it never campaigns again")
		}
		m.noteRefusal(true, m.now())
		m.noteRefusal(false, m.now())
		if !m.MayCampaign() {
			t.Error("a server whose log has taken a write again does not campaign")
		}
	})
}
