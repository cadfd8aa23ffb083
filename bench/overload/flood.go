package overload

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/zk-lite/zk-lite/bench/load"
	"github.com/zk-lite/zk-lite/bench/system"
)

// flood is the process that offers too much.
type flood struct {
	cmd        *exec.Cmd
	out, words bytes.Buffer
}

// start begins a flood of a rate and a length.
func (s *Scenario) start(
	ctx context.Context, binary string, hosts []string, rate float64, length time.Duration,
) (*flood, error) {
	f := &flood{cmd: exec.CommandContext(ctx, "nice", "-n", "19", binary, "bench", "--server", strings.Join(hosts, ","),
		"--mix", "get=1,set=1", "--prefix", "/flood", "--keep", "--return", "-q", "-o", "json",
		"--connections", strconv.Itoa(s.connections), "--in-flight", strconv.Itoa(s.inFlight),
		"--rate", strconv.FormatFloat(rate, 'f', 0, 64), "--warm-up", "0s", "--duration", length.String(),
		"--local-address", s.address, "--auth", s.auth)}
	f.cmd.Stdout, f.cmd.Stderr = &f.out, &f.words
	if err := f.cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting the flood: %w", err)
	}
	return f, nil
}

// end waits for the flood's own end. A flood whose last connection was refused has a result, too.
func (f *flood) end() (*load.Result, error) {
	err := f.cmd.Wait()
	r := &load.Result{}
	if jsonErr := json.Unmarshal(f.out.Bytes(), r); jsonErr != nil {
		return nil, errors.Join(fmt.Errorf("the flood has no result: %w: %.500s", jsonErr, f.words.Bytes()), err)
	}
	return r, nil
}

// liveness is how quickly servers said that they live.
type liveness struct {
	Asked   int         `json:"asked"`
	Late    int         `json:"late"` // or never
	Longest load.Micros `json:"longest_us"`
}

const (
	// livesEvery is the pause between two questions to a server.
	livesEvery = 100 * time.Millisecond
	// livesWithin is when an answer is late, as for the probes of Kubernetes by default.
	livesWithin = time.Second
	// livesAtMost ends the wait for an answer.
	livesAtMost = 10 * time.Second
)

// watchLives asks all servers, on a new connection each time as probes do, until the function that it returns is
// called.
func watchLives(ctx context.Context, e *system.Ensemble) (finish func() liveness) {
	ctx, stop := context.WithCancel(ctx)
	var mu sync.Mutex // protects all
	var all liveness
	var asking sync.WaitGroup
	for i := range e.Hosts {
		asking.Go(func() {
			for tick := time.NewTicker(livesEvery); ; {
				select {
				case <-ctx.Done():
					tick.Stop()
					return
				case <-tick.C:
				}
				start := time.Now()
				err := lives(e, i)
				took := time.Since(start)
				mu.Lock()
				all.Asked++
				all.Longest = max(all.Longest, load.Micros(took))
				if err != nil || took > livesWithin {
					all.Late++
				}
				mu.Unlock()
			}
		})
	}
	return func() liveness {
		stop()
		asking.Wait()
		return all
	}
}

// lives asks one server: GET /livez, or ruok where there is no HTTP.
func lives(e *system.Ensemble, i int) error {
	ctx, cancel := context.WithTimeout(context.Background(), livesAtMost)
	defer cancel()
	if len(e.HTTP) == 0 {
		text, err := load.FourLetter(ctx, e.Hosts[i], "ruok")
		if err == nil && text != "imok" {
			err = fmt.Errorf("ruok: %q", text)
		}
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+e.HTTP[i]+"/livez", nil)
	if err != nil {
		return fmt.Errorf("asking for /livez: %w", err)
	}
	request.Close = true
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("asking for /livez: %w", err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("/livez: %s", answer.Status)
	}
	return nil
}
