package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/examples/internal/testserver"
	"github.com/zk-lite/zk-lite/internal/testkit/tier"
	"github.com/zk-lite/zk-lite/internal/testkit/wait"
)

func TestMain(m *testing.M) {
	os.Exit(testserver.Main(m, map[string]testserver.Role{"processor": processorRole}))
}

// processorRole answers mails through the outbox at a URL.
func processorRole(ctx context.Context, c *client.Client, name, at string) error {
	p := &Processor{
		Client: c, Name: name, Outbox: remoteOutbox(at), Log: os.Stdout,
		Write: func(_ context.Context, mail string) (string, error) {
			<-time.After(20 * time.Millisecond) // so that some are in the middle of it
			return "to " + mail, nil
		},
	}
	return p.Run(ctx)
}

// remoteOutbox is an Outbox in another process.
type remoteOutbox string

func (o remoteOutbox) Begin(mail string, token int64) error {
	return o.ask("begin", mail, token, "")
}

func (o remoteOutbox) Send(mail string, token int64, answer string) error {
	return o.ask("send", mail, token, answer)
}

func (o remoteOutbox) ask(what, mail string, token int64, answer string) error {
	response, err := http.Get(fmt.Sprintf("%s/%s?mail=%s&token=%d&answer=%s",
		string(o), what, url.QueryEscape(mail), token, url.QueryEscape(answer)))
	if err != nil {
		return err
	}
	defer response.Body.Close()
	switch response.StatusCode {
	case http.StatusOK:
		return nil
	case http.StatusConflict:
		return ErrStale
	case http.StatusGone:
		return ErrAnswered
	}
	return errors.New(response.Status)
}

// serveOutbox is the other side of it.
func serveOutbox(o *Outbox) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		token, err := strconv.ParseInt(r.FormValue("token"), 10, 64)
		mail := r.FormValue("mail")
		switch {
		case err != nil:
		case r.URL.Path == "/begin":
			err = o.Begin(mail, token)
		default:
			err = o.Send(mail, token, r.FormValue("answer"))
		}
		switch {
		case errors.Is(err, ErrStale):
			w.WriteHeader(http.StatusConflict)
		case errors.Is(err, ErrAnswered):
			w.WriteHeader(http.StatusGone)
		case err != nil:
			w.WriteHeader(http.StatusBadRequest)
		}
	}
}

// Processors and servers are processes, and are killed and paused in the middle of it.
// Every mail has one answer in the end, and none has two.
func TestMailers_ProcessesKilled(t *testing.T) {
	tier.Seconds(t)
	t.Parallel() // it mostly waits for sessions to expire
	p := testserver.StartProcesses(t)
	outbox := new(Outbox)
	web := httptest.NewServer(serveOutbox(outbox))
	t.Cleanup(web.Close) // after the end of those who use it
	all := make([]*testserver.Child, 4)
	for i := range all {
		all[i] = p.Run("processor", web.URL)
	}
	const rounds, mails = 3, 15
	for round := range rounds {
		for i := range mails {
			if err := Submit(p.Context, p.Client, fmt.Sprintf("mail %d", round*mails+i)); err != nil {
				t.Fatal(err)
			}
		}
		dies, sleeps := all[p.Rand.IntN(2)], all[2+p.Rand.IntN(2)]
		dies.Kill()
		sleeps.Pause()
		if round == 1 {
			p.PauseServer()
		} else {
			p.RestartServer()
		}
		sleeps.Resume()
		for i := range all {
			if all[i] == dies {
				all[i] = p.Run("processor", web.URL)
			}
		}
	}
	wait.Until(t, "all mails are answered", func() bool {
		n, err := Waiting(p.Context, p.Client)
		return err == nil && n == 0
	})
	answered := map[string]int{}
	for mail, answers := range outbox.Answers() {
		if len(answers) != 1 {
			t.Errorf("%s has %d answers: %v", mail, len(answers), answers)
		}
		answered[answers[0]]++
	}
	for i := range rounds * mails {
		if name := fmt.Sprintf("to mail %d", i); answered[name] != 1 {
			t.Errorf("%d answers go %s", answered[name], name)
		}
	}
	stale, repeated := outbox.Refused()
	t.Logf("%d mails answered; refused: %d stale claims, %d repetitions", len(answered), stale, repeated)
}
