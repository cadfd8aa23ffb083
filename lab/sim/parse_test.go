package sim

import (
	"testing"
	"time"
)

func TestParseTime_Forms(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"0": 0, "2": 2 * Unit, "2.5": 5 * Unit / 2, "2ms": 2 * Unit, "1500us": 3 * Unit / 2,
		" 3 ": 3 * Unit,
	} {
		if got, err := ParseTime(text); err != nil || got != want {
			t.Errorf("%q: %v, %v; want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "-1", "x", "1e300", "NaN", "-2ms", "Inf"} {
		if got, err := ParseTime(text); err == nil {
			t.Errorf("%q parses as %v", text, got)
		}
	}
}

// FuzzParse gives every parser of user input the same text: none may panic, and
// what is accepted must make sense and, for times, survive being written out.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{"1", "2.5", "0.5-2", "80@0", "1,2|3@0-40", "token@3", "token@3=2", "S@1", "S-1@4", "3-5@2",
		"3,32,5", "1500us", "N6", "", "@", "-", "|@-", "9e99", "NaN", "1-", "1@-1"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if at, err := ParseTime(text); err == nil {
			again, err := ParseTime(FormatTime(at))
			if err != nil || again-at > grain || at-again > grain || at < 0 {
				t.Errorf("%q is %v, written %q, read as %v, %v", text, at, FormatTime(at), again, err)
			}
		}
		if d, err := ParseDelay(text); err == nil && (d.Min <= 0 || d.Max < d.Min) {
			t.Errorf("%q parses as delay %v", text, d)
		}
		if fault, err := ParseFault(text, false); err == nil && (fault.ID < 0 && fault.ID != Service || fault.At < 0) {
			t.Errorf("%q parses as fault %v", text, fault)
		}
		if p, err := ParsePartition(text); err == nil && (len(p.Groups) == 0 || p.Until <= p.From) {
			t.Errorf("%q parses as partition %v", text, p)
		}
		if n, err := ParseNth(text); err == nil && (n.K < 1 || n.Type == "") {
			t.Errorf("%q parses as %v", text, n)
		}
		if l, err := ParseLate(text); err == nil && (l.Delay <= 0 || l.K < 1) {
			t.Errorf("%q parses as %v", text, l)
		}
		if l, err := ParseSlowLink(text); err == nil && l.Delay <= 0 {
			t.Errorf("%q parses as slow link %v", text, l)
		}
		if ids, err := ParseIDs(text); err == nil && len(ids) == 0 {
			t.Errorf("%q parses as no ids", text)
		}
	})
}
