package load

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"
)

func TestConfig_Check_NamesWhatIsWrong(t *testing.T) {
	good := func() Config {
		c := Default()
		c.Hosts = []string{"127.0.0.1:2181"}
		return c
	}
	if c := good(); c.Check() != nil {
		t.Fatalf("a good configuration: %v, want no error", c.Check())
	}
	for want, breakIt := range map[string]func(*Config){
		"connections 0":     func(c *Config) { c.Connections = 0 },
		"in flight 100000":  func(c *Config) { c.InFlight = 100_000 },
		"no server":         func(c *Config) { c.Hosts = nil },
		"the mix is empty":  func(c *Config) { c.Mix = nil },
		"rate -1":           func(c *Config) { c.Rate = -1 },
		"zipf exponent -1":  func(c *Config) { c.Zipf = -1 },
		"zipf exponent NaN": func(c *Config) { c.Zipf = math.NaN() },
		"while they are":    func(c *Config) { c.Mix, c.Latest = Mix{{Get, 1}, {Delete, 1}}, true },
		"duration":          func(c *Config) { c.Duration = 0 },
		`prefix "/"`:        func(c *Config) { c.Prefix = "/" },
		`prefix "x"`:        func(c *Config) { c.Prefix = "x" },
		"value size -1":     func(c *Config) { c.ValueSize = -1 },
		"keys 0":            func(c *Config) { c.Keys = 0 },
		`address "here"`:    func(c *Config) { c.Local = "here" },
		"SCHEME:":           func(c *Config) { c.Auth = "digest" },
		"multi size 0":      func(c *Config) { c.MultiSize = 0 },
	} {
		c := good()
		breakIt(&c)
		if err := c.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

func TestResult_JSON_ReadsBack(t *testing.T) {
	r := Result{Kind: "load", Config: Default(), Elapsed: time.Second,
		Total: OpResult{Name: "total", PerSecond: 5, Latency: Latency{P50: Micros(1500 * time.Nanosecond)}}}
	text, err := json.Marshal(&r)
	var again Result
	if err == nil {
		err = json.Unmarshal(text, &again)
	}
	if err != nil || again.Total.Latency.P50 != r.Total.Latency.P50 ||
		again.Config.Mix.String() != r.Config.Mix.String() {
		t.Errorf("%s: %+v, %v, want %+v", text, again, err, r)
	}
	if !strings.Contains(string(text), `"p50_us":1.5`) {
		t.Errorf("%s has no p50 of 1.5 us", text)
	}
}

func TestResult_CPUPerOp(t *testing.T) {
	r := Result{Elapsed: 2 * time.Second, Total: OpResult{PerSecond: 50},
		Servers: []Process{{CPU: time.Second}, {CPU: time.Second}}}
	if got := r.CPUPerOp(); got != 20*time.Millisecond {
		t.Errorf("%v, want 20ms", got)
	}
	if got := (&Result{}).CPUPerOp(); got != 0 {
		t.Errorf("%v without answers", got)
	}
}

func TestParseZxid(t *testing.T) {
	if n, err := parseZxid("Mode: follower\nZxid: 0x20000000a\nNode count: 5\n"); n != 0x20000000a || err != nil {
		t.Errorf("%#x, %v, want 0x20000000a", n, err)
	}
	for _, wrong := range []string{"", "Zxid: none"} {
		if n, err := parseZxid(wrong); err == nil {
			t.Errorf("%q: %#x, want an error", wrong, n)
		}
	}
}
