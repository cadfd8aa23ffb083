package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/zk-lite/zk-lite/internal/supervise"
	"github.com/zk-lite/zk-lite/recipes"
)

// healthCheck are the flags by which join finds out whether its member is healthy.
type healthCheck struct {
	command, url   string
	every, timeout time.Duration
	failures       int
	keep           bool
}

func (h *healthCheck) bind(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&h.command, "check", "", "be a member while this command, run by sh -c, exits with 0")
	f.StringVar(&h.url, "check-http", "", "be a member while GET of this URL answers with 2xx")
	f.DurationVar(&h.every, "every", 5*time.Second, "time from one check to the next")
	f.DurationVar(&h.timeout, "check-timeout", 0, "time that a check may take (default that of --every)")
	f.IntVar(&h.failures, "failures", 1, "checks that must fail in a row before the member is not healthy")
	f.BoolVar(&h.keep, "keep", false, "mark a member that is not healthy, instead of leaving")
}

func (h *healthCheck) wanted() bool { return h.command != "" || h.url != "" }

// validate checks the flags, and fills in the default of --check-timeout.
func (h *healthCheck) validate(c *cobra.Command) error {
	if !h.wanted() {
		for _, name := range []string{"every", "check-timeout", "failures", "keep"} {
			if c.Flags().Changed(name) {
				return usagef("--%s: want --check or --check-http, too", name)
			}
		}
		return nil
	}
	if h.timeout == 0 {
		h.timeout = h.every
	}
	u, err := url.Parse(h.url)
	switch {
	case h.command != "" && h.url != "":
		return usagef("--check and --check-http: want one of them; a command can do both, with curl")
	case h.url != "" && (err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == ""):
		return usagef("--check-http %q: want a URL such as http://localhost:8080/health", h.url)
	case h.every <= 0 || h.timeout <= 0:
		return usagef("--every %v, --check-timeout %v: want more than 0", h.every, h.timeout)
	case h.failures < 1:
		return usagef("--failures %d: want 1 or more", h.failures)
	}
	return nil
}

// check checks once. The error is why the member is not healthy, with what the check has said.
func (h *healthCheck) check(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, h.timeout)
	defer cancel()
	check := h.get
	if h.command != "" {
		check = h.run
	}
	problem, said := check(ctx)
	switch {
	case problem == "":
		return nil
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		problem = fmt.Sprintf("no result within %v", h.timeout)
	}
	if said = strings.TrimSpace(strings.ToValidUTF8(said, "")); said != "" {
		problem += ": " + said
	}
	return errors.New(problem)
}

// run runs the command; no problem is "". When the command ends, or ctx does, the processes that it has started are
// killed.
func (h *healthCheck) run(ctx context.Context) (problem, said string) {
	r, w, err := os.Pipe()
	if err != nil {
		return err.Error(), ""
	}
	defer r.Close()
	output := make(chan string, 1)
	go func() { output <- readLast(r) }()
	code, err := supervise.Run(ctx, &supervise.Command{
		Args: []string{"sh", "-c", h.command}, OwnGroup: true, NoRest: true, Files: [3]*os.File{nil, w, w},
	})
	_ = w.Close()
	_ = r.SetReadDeadline(time.Now().Add(outputGrace)) // a process in another group may have the pipe open
	said = <-output
	switch {
	case err != nil:
		return err.Error(), said
	case code != 0:
		return fmt.Sprintf("exit code %d", code), said
	}
	return "", said
}

// get asks the URL; no problem is "".
func (h *healthCheck) get(ctx context.Context) (problem, said string) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, h.url, nil)
	if err != nil {
		return err.Error(), ""
	}
	resp, err := checkClient.Do(req)
	if err != nil {
		return err.Error(), ""
	}
	defer resp.Body.Close()
	if resp.StatusCode/100 == 2 {
		return "", ""
	}
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxOutput)) // as much as there is
	return "GET " + h.url + ": " + resp.Status, string(body)
}

// checkClient makes a connection for each check, because it is also a check that one can be made, and asks no proxy.
var checkClient = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

const (
	// maxOutput is how many bytes of a check's output become part of the reason: the last, where errors are, or the
	// first of an HTTP reply.
	maxOutput = 4 << 10
	// outputGrace is for how long the output is read after the command has ended.
	outputGrace = time.Second
)

// readLast reads to the end, and returns the last bytes.
func readLast(r io.Reader) string {
	var last []byte
	for part := make([]byte, maxOutput); ; {
		n, err := r.Read(part)
		last = append(last[max(0, len(last)+n-maxOutput):], part[:n]...)
		if err != nil {
			return string(last)
		}
	}
}

// checkedMember is a member of a group as long as a check succeeds.
type checkedMember struct {
	healthCheck
	group *recipes.Group
	name  string
	data  []byte
	say   func(format string, args ...any) // a line for the user

	m       *recipes.Membership // nil: it is no member
	sick    bool                // it has left, or is marked, or has not joined, because checks failed
	failing int                 // checks that have failed since the last that succeeded
}

// run checks and joins, leaves or marks until ctx ends, or until the membership cannot be kept, which it returns.
func (k *checkedMember) run(ctx context.Context) error {
	defer func() {
		if k.m != nil {
			k.leave(context.WithoutCancel(ctx))
		}
	}()
	for tick := time.NewTicker(k.every); ; {
		failure := k.check(ctx)
		if ctx.Err() != nil {
			return nil // the check was ended
		}
		if err := k.take(ctx, failure); err != nil && ctx.Err() == nil {
			return err
		}
		var lost <-chan struct{}
		if k.m != nil {
			lost = k.m.Done()
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		case <-lost:
			return notMember(k.m)
		}
	}
}

// take acts on a check's result.
func (k *checkedMember) take(ctx context.Context, failure error) (err error) {
	if k.failing++; failure == nil {
		k.failing = 0
	}
	was := k.sick
	switch {
	case failure == nil && k.m == nil:
		k.sick = false
		return k.join(ctx, k.data)
	case failure == nil && was:
		k.sick = false
		k.say("healthy: %s", k.m.Path())
		return k.m.Set(ctx, k.data)
	case was || k.failing < k.failures: // as before; not 0, if it was healthy
		return nil
	}
	k.sick = true
	k.say("not healthy: %v", failure)
	switch marked := recipes.Unhealthy(k.data, failure.Error()); {
	case k.keep && k.m == nil:
		err = k.join(ctx, marked)
	case k.keep:
		err = k.m.Set(ctx, marked)
	case k.m != nil:
		k.leave(ctx)
	}
	return err
}

func (k *checkedMember) join(ctx context.Context, data []byte) (err error) {
	if k.m, err = k.group.Join(ctx, k.name, data); err == nil {
		k.say("joined: %s", k.m.Path())
	}
	return err
}

func (k *checkedMember) leave(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, releaseTimeout)
	defer cancel()
	if err := k.m.Leave(ctx); err != nil && !errors.Is(err, recipes.ErrLost) {
		k.say("not left yet: %s: %v", k.m.Path(), err)
	} else {
		k.say("left: %s", k.m.Path())
	}
	k.m = nil
}
