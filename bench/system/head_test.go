package system

import (
	"errors"
	"strings"
	"testing"
	"time"
)

func TestSite_Head_MachineVersionsAndWhatIsMissing(t *testing.T) {
	s := &Site{Machine: []string{"2 x processor", "Linux"}}
	h := &Head{Began: time.Now().Add(-time.Minute), How: "medians of 3 rounds",
		Versions: []string{"etcd: 3.7"}}
	text := s.Head(h)
	if want := ": medians of 3 rounds.\n\n- 2 x processor\n- Linux\n- etcd: 3.7\n\n"; !strings.HasPrefix(text, "\nMeasured on ") ||
		!strings.HasSuffix(text, want) {
		t.Errorf("no %q in:\n%s", want, text)
	}
	h.End = errors.New("interrupted")
	if text := s.Head(h); !strings.Contains(text, "\n\n**Not complete** (interrupted).\n\n- 2 x") {
		t.Errorf("does not say that it is not complete:\n%s", text)
	}
}
