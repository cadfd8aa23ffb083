package race

import (
	"fmt"
	"testing"
)

func TestRun_AllSchedules(t *testing.T) {
	for _, c := range []struct {
		config Config
		want   string // value: schedules
		safe   bool
	}{
		// Of the 20 two run one thread after the other; both read before a write in 18.
		{Config{Program: "counter"}, "map[4:9 5:2 6:9]", false},
		{Config{Program: "deposits"}, "map[18:18 19:2]", false},
		{Config{Program: "counter", Atomic: true}, "map[5:2]", true},
		{Config{Program: "deposits", Atomic: true}, "map[19:2]", true},
	} {
		r, err := Run(c.config)
		if err != nil {
			t.Fatal(err)
		}
		got := map[int]int{}
		for _, f := range r.Finals {
			got[f.Value] = f.Schedules
		}
		if fmt.Sprint(got) != c.want || r.Safe != c.safe || (len(r.Violations) == 0) != c.safe {
			t.Errorf("%+v: %v safe %v %v, want %s safe %v", c.config, got, r.Safe, r.Violations, c.want, c.safe)
		}
	}
}

// TestRun_Slide: the order that the slide shows ends with 4, the other one with 6.
func TestRun_Slide(t *testing.T) {
	for schedule, want := range map[string]string{"112212": "4", "112221": "6"} {
		r, err := Run(Config{Program: "counter", Schedule: schedule})
		if err != nil {
			t.Fatal(err)
		}
		last := ""
		for _, record := range r.Records {
			for _, v := range record.Variables {
				if v.Name == "counter" {
					last = v.Value
				}
			}
		}
		if last != want {
			t.Errorf("%s ends with %s, want %s", schedule, last, want)
		}
	}
}

func TestRun_Errors(t *testing.T) {
	for _, c := range []Config{{Program: "cat"}, {Program: "counter", Schedule: "12"},
		{Program: "counter", Schedule: "111222x"}, {Program: "counter", Schedule: "121212", Atomic: true}} {
		if _, err := Run(c); err == nil {
			t.Errorf("%+v ran", c)
		}
	}
}
