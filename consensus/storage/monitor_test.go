package storage

import (
	"testing"
	"time"
)

// A leader whose log had refused a write stepped down and stood for election at once, won, and
// stepped down again, for several terms.
func TestRegression_LogRefuses_DoesNotCampaign(t *testing.T) {
	t.Parallel()
	const timeout = time.Second
	now := int64(time.Minute)
	m := NewMonitor(MonitorConfig{ElectionTimeout: timeout, Now: func() int64 { return now }})
	if !m.MayCampaign() {
		t.Error("a server with a good disk does not campaign")
	}
	m.noteRefusal(true, now)
	if m.MayCampaign() {
		t.Error("a server whose log refuses campaigns at once")
	}
	now += int64(campaignPause*timeout) - 1
	if m.MayCampaign() {
		t.Error("a server whose log refuses campaigns")
	}
	now++
	if !m.MayCampaign() {
		t.Error("it never campaigns again")
	}
	m.noteRefusal(true, now)
	m.noteRefusal(false, now)
	if !m.MayCampaign() {
		t.Error("a server whose log has taken a write again does not campaign")
	}
}
